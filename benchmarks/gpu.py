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
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from hotlap.atomic_files import writable
from hotlap.bench.simulator import cuda_rate, measure_sim
from hotlap.errors import HotlapError
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.algorithms.registry import build_learner
from hotlap.training.device import choose_device
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.vec_envs.factory import TrainingEnvs
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


class RolloutClock(BaseCallback):
    """Seconds of each rollout with its update; the first two, which warm up, are not counted."""

    def __init__(self, num_rollouts: int) -> None:
        super().__init__()
        self._num_rollouts, self._begun_s, self.times_s = num_rollouts, [], list[float]()

    def _on_rollout_start(self) -> None:
        self._begun_s.append(time.perf_counter())
        if len(self._begun_s) > 3:
            self.times_s.append(self._begun_s[-1] - self._begun_s[-2])

    def _on_step(self) -> bool:
        return len(self.times_s) < self._num_rollouts


class LearningClock(BaseCallback):
    """Evaluates the policy after some seconds of training; neither evaluations nor the first rollout count."""

    def __init__(self, evaluator: PolicyEvaluator, check_s: Sequence[float]) -> None:
        super().__init__()
        self._evaluator, self._check_s, self.found = evaluator, list(check_s), list[dict[str, float]]()
        self._trained_s, self._last_s, self._num_rollouts = 0.0, 0.0, 0

    def _on_rollout_start(self) -> None:
        now_s = time.perf_counter()
        self._num_rollouts += 1
        if self._num_rollouts > 2:
            self._trained_s += now_s - self._last_s
        if self._check_s and self._trained_s >= self._check_s[0]:
            self._check_s.pop(0)
            figures = self._evaluator.score_learner(self.model).figures  # type: ignore[arg-type]
            self.found.append({**figures, "trained_s": self._trained_s, "decisions": self.num_timesteps})
        self._last_s = time.perf_counter()

    def _on_step(self) -> bool:
        return bool(self._check_s)


def make_learner(config: RunConfig) -> tuple[Any, TrainingEnvs]:
    """A seeded learner that logs to nowhere."""
    set_random_seed(config.seed, using_cuda=config.device == "cuda")
    envs = TrainingEnvs(config)
    learner = build_learner(config, envs.env)
    learner.set_logger(Logger(None, []))
    return learner, envs


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
        learner, envs = make_learner(resolve_config(RECIPE, asked))
        clock = RolloutClock(3 if is_small else ROLLOUTS)
        learner.learn(ENDLESS, callback=clock)
        envs.close()
        median_s = statistics.median(clock.times_s)
        rate = num_rows / median_s / 1e6
        sizes = f"{case.num_cars:,} | {case.width}-{case.width} | {case.num_epochs} | {case.num_batches}"
        print(f"| {sizes} | {rate:.1f} | {rate * case.num_epochs:.1f} | {median_s * 1e3:.1f} |", flush=True)
        rows.append({**case._asdict(), "decisions_per_s": 1e6 * rate, "rollout_s": clock.times_s})
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
        learner, envs = make_learner(config)
        clock = LearningClock(PolicyEvaluator(config, make_card(config, envs.env, 0, "")), check_s)
        learner.learn(config.steps, callback=clock)
        envs.close()
        rows.append({"seed": seed, "checks": clock.found})
        cells = []
        for index, figures in enumerate(clock.found):
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
