"""Prints tables of simulating and learning on a GPU: python benchmarks/gpu.py [engine] [speed] [learning].

`--json FILE.json` writes the figures, too. `--small` runs everything at a size that a CPU can do, to test the program;
its figures mean nothing.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hotlap.atomic_files import writable
from hotlap.bench.simulator import cuda_rate, measure_sim
from hotlap.errors import HotlapError
from hotlap.runs.recipe import resolve_config
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.device import choose_device
from hotlap.training.learners import Learner, build_learner, policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import PolicyEvaluator
from results_file import write_results

RECIPE = "racer-ppo-cuda"
ACTION_REPEAT = 4  # as the recipes drive
ROLLOUTS = 20
SEEDS = (1, 2, 3, 4, 5)
CHECK_S = (10.0, 30.0, 60.0)  # seconds of training after which the policy is evaluated
ENDLESS = 10**12


class SpeedCase(NamedTuple):
    """The sizes of one line of the table of speeds."""

    num_cars: int
    width: int  # of the two hidden layers
    num_epochs: int
    num_batches: int


SPEED_CASES = (
    SpeedCase(16_384, 128, 4, 8),
    SpeedCase(32_768, 128, 4, 8),
    SpeedCase(65_536, 128, 4, 8),
    SpeedCase(131_072, 64, 1, 8),
)
SMALL_CASES = (SpeedCase(64, 16, 2, 4),)


def train_rollout(learner: Learner) -> None:
    """Collect a rollout and learn from it; on a GPU the figures of the update are waited for."""
    learner.collect(lambda _: True)
    learner.update()


def rollout_times(learner: Learner, num_rollouts: int) -> list[float]:
    """Seconds of each rollout with its update; the first two, which warm up, are not counted."""
    times_s = []
    for number in range(2 + num_rollouts):
        begun_s = time.perf_counter()
        train_rollout(learner)
        if number >= 2:
            times_s.append(time.perf_counter() - begun_s)
    return times_s


def learning_checks(learner: Learner, evaluator: PolicyEvaluator, check_s: Sequence[float]) -> list[dict[str, float]]:
    """Evaluations after some seconds of training; neither evaluations nor the first rollout count."""
    found, trained_s = list[dict[str, float]](), 0.0
    train_rollout(learner)
    for until_s in check_s:
        while trained_s < until_s and learner.plan.num_steps:
            begun_s = time.perf_counter()
            train_rollout(learner)
            trained_s += time.perf_counter() - begun_s
        figures = evaluator.score(learner.policy()).figures
        found.append({**figures, "trained_s": trained_s, "decisions": learner.num_timesteps})
    return found


def print_engine(device: str, is_small: bool) -> list[dict[str, Any]]:
    """The simulator alone; returns its steps per second by ticks per step."""
    num_cars = 256 if is_small else 1 << 20
    found = measure_sim(num_cars, None, device, "track-01", 1.0 if is_small else 3.0)
    print(f"\n{num_cars:,} cars on {device}: {found.steps_per_sec / 1e6:.1f} million steps/s of one tick", flush=True)
    rows = [{"cars": num_cars, "ticks_per_step": 1, "steps_per_s": found.steps_per_sec}]
    if device == "cuda":
        rate = cuda_rate(num_cars, "track-01", 3.0, ACTION_REPEAT) / 1e6
        print(f"{ACTION_REPEAT} ticks per step: {rate:.1f} million steps/s, {ACTION_REPEAT * rate:.1f} million ticks/s")
        rows.append({"cars": num_cars, "ticks_per_step": ACTION_REPEAT, "steps_per_s": 1e6 * rate})
    return rows


def print_speed(device: str, is_small: bool) -> list[dict[str, Any]]:
    """Decisions per second, learning included; returns them by the sizes of a case."""
    rows = []
    print("\n| cars | net | epochs | minibatches | million decisions/s | million samples trained/s | ms per rollout |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for case in SMALL_CASES if is_small else SPEED_CASES:
        num_rows = case.num_cars * 32
        asked = {"device": device, "num_envs": case.num_cars, "steps": ENDLESS, "policy.net_arch": [case.width] * 2}
        asked |= {"ppo.n_epochs": case.num_epochs, "ppo.batch_size": num_rows // case.num_batches}
        learner = build_learner(resolve_config(RECIPE, asked))
        times_s = rollout_times(learner, 3 if is_small else ROLLOUTS)
        learner.close()
        median_s = statistics.median(times_s)
        rate = num_rows / median_s / 1e6
        sizes = f"{case.num_cars:,} | {case.width}-{case.width} | {case.num_epochs} | {case.num_batches}"
        print(f"| {sizes} | {rate:.1f} | {rate * case.num_epochs:.1f} | {median_s * 1e3:.1f} |", flush=True)
        rows.append({**case._asdict(), "decisions_per_s": 1e6 * rate, "rollout_s": times_s})
    return rows


def print_learning(device: str, is_small: bool) -> list[dict[str, Any]]:
    """Completion and gap to the optimal lap after some seconds of training; returns the evaluations of each seed."""
    rows = []
    seeds, check_s = (SEEDS[:1], (1.0,)) if is_small else (SEEDS, CHECK_S)
    print("\n| seed | " + " | ".join(f"after {seconds:.0f} s: completed, clean, gap" for seconds in check_s) + " |")
    print("| ---: |" + " --- |" * len(check_s))
    gaps: list[list[float]] = [[] for _ in check_s]
    for seed in seeds:
        asked = {"device": device, "seed": seed, "num_envs": 64 if is_small else None}
        config = resolve_config(RECIPE, asked | ({"ppo.batch_size": 512} if is_small else {}))
        learner = build_learner(config)
        evaluator = PolicyEvaluator(config, make_card(config, policy_spaces(config, learner)))
        checks = learning_checks(learner, evaluator, check_s)
        learner.close()
        rows.append({"seed": seed, "checks": checks})
        cells = []
        for index, figures in enumerate(checks):
            gap = figures.get("eval/gap_to_optimal")
            clean = figures.get("eval/clean_lap_rate", 0.0)
            if gap is not None:
                gaps[index].append(gap)
            shown = "-" if gap is None else f"{100 * gap:.1f} %"
            cells.append(f"{100 * figures['eval/completion_rate']:.1f} %, {100 * clean:.0f} %, {shown}")
        print(f"| {seed} | " + " | ".join(cells) + " |", flush=True)
    for seconds, found in zip(check_s, gaps, strict=True):
        if found:
            median, worst = 100 * statistics.median(found), 100 * max(found)
            print(f"\nafter {seconds:.0f} s: median gap {median:.1f} %, worst {worst:.1f} %")
    return rows


def describe_device(device: str) -> str:
    """The name of the GPU, or the CPU's."""
    return torch.cuda.get_device_name() if device == "cuda" else device


PARTS = {"engine": print_engine, "speed": print_speed, "learning": print_learning}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu with --small")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures, too")
    parser.add_argument("--small", action="store_true", help="test the program; the figures mean nothing")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        print(f"gpu: {unknown[0]!r} is no part of it. Parts: {', '.join(PARTS)}.", file=sys.stderr)
        return 2
    try:
        device = choose_device(options.device) or "cuda"
        warm_up()
        found = {name: PARTS[name](device, options.small) for name in options.parts or PARTS}
        if options.json is not None:
            write_results(writable(options.json), {"device": describe_device(device), **found})
    except HotlapError as error:
        print(f"gpu: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
