"""Measures one training over several processes of this machine: python benchmarks/processes.py speed|learning.

speed     decisions/s of one process on one core and on all cores, and of several processes that divide its cars or have
          as many cars each, in turns
learning  the same recipe in one process and in several, over seeds: do they learn alike?
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import tomli_w

from hotlap.config import read_mapping
from hotlap.reports.statistics import summarise


def train(place: Path, options: Sequence[str], num_processes: int, core: int | None = None) -> dict[str, Any]:
    """Train in a process of its own, or in several; returns the figures, with the last episodes' mean return."""
    command = [sys.executable, "-m"]
    if num_processes > 1:
        command += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(num_processes), "-m"]
    folder = Path(tempfile.mkdtemp(dir=place)) / "run"
    command += ["hotlap", "train", "--run-name", str(folder), "-q", *options]
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=pin, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(command)}\n{done.stderr}")
    [results], [metrics] = (list(folder.glob(f"*_{name}.json")) for name in ("results", "metrics"))
    found: dict[str, Any] = json.loads(results.read_text())["experiment_results"]["metrics"]
    last = json.loads(metrics.read_text())["training_metrics"]["time_series"][-1]
    return {**found, "training_return": last["reward"]}


def measure_speed(place: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Decisions per second of training, in turns: other load meets all of them."""
    several = options.processes
    # Processes, the core that they are bound to, and how many times the recipe's cars and minibatch they have.
    kinds: dict[str, tuple[int, int | None, int]] = {
        "one core": (1, min(os.sched_getaffinity(0)), 1),
        "one process": (1, None, 1),
        "divided": (several, None, 1),
        "as many each": (several, None, several),
    }
    speeds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(options.rounds):
        for kind, (num_processes, core, times) in kinds.items():
            recipe = write_recipe(place, options.recipe, times)
            found = train(place, ["--recipe", str(recipe), "--steps", str(options.steps)], num_processes, core)
            speeds[kind].append(options.steps / found["training_time_seconds"])
    ratios = {
        f"{kind} / {base}": median(one / other for one, other in zip(speeds[kind], speeds[base], strict=True))
        for kind in ("divided", "as many each")
        for base in ("one core", "one process")
    }
    return {"decisions_per_s": speeds, "ratios": ratios}


def measure_learning(place: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Returns over seeds, of the last 100 episodes of training, with the interval of their interquartile mean."""
    recipe = write_recipe(place, options.recipe)
    found: dict[str, Any] = {}
    for num_processes in (1, options.processes):
        returns = []
        for seed in range(1, options.seeds + 1):
            arguments = ["--recipe", str(recipe), "--steps", str(options.steps), "--seed", str(seed)]
            returns.append(train(place, arguments, num_processes)["training_return"])
            print(f"{num_processes} processes, seed {seed}: return {returns[-1]:.2f}", file=sys.stderr)
        summary = summarise(returns, is_higher_better=True, rng=np.random.default_rng(0))
        found[f"{num_processes} processes"] = {"returns": returns, "interval": summary.interval}
    return found


def write_recipe(place: Path, recipe: Path, times: int = 1) -> Path:
    """The recipe with `times` as many cars and as large minibatches, and no evaluations and checkpoints in training."""
    data = dict(read_mapping(recipe))
    data["num_envs"] *= times
    data["ppo"] = {**data["ppo"], "batch_size": data["ppo"]["batch_size"] * times}
    data["checkpoint"] = {"interval": 0}
    data["evaluation"] = {"interval": 0, "final_episodes": 1}
    path = place / "recipe.toml"
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one JSON object; returns the exit code."""
    recipe = Path(__file__).resolve().parent.parent / "src/hotlap/runs/recipes/racer-ppo.toml"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("speed", "learning"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3_000_000, help="decisions of each run")
    parser.add_argument("--rounds", type=int, default=3, help="of `speed`")
    parser.add_argument("--seeds", type=int, default=5, help="of `learning`")
    parser.add_argument("--recipe", type=Path, default=recipe)
    options = parser.parse_args(arguments)
    measure = measure_speed if options.what == "speed" else measure_learning
    with tempfile.TemporaryDirectory() as place:
        found = measure(Path(place), options)
    print(json.dumps({**found, "steps": options.steps, "cores": os.cpu_count(), "load": os.getloadavg()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
