"""Compares what our PPO and stable-baselines3's learn per decision: python benchmarks/learners.py [--workers 2].

Both train the recipe racer-ppo from the same seeds. Each policy is evaluated without noise at the same decisions; the
interval is that of the interquartile mean over the seeds. One JSON object per run goes to stderr, the table to stdout.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from hotlap.reports.statistics import summarise
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.learners import Learner, build_learner, policy_spaces
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.sb3.learner import SB3Learner

LEARNERS: Mapping[str, Callable[[RunConfig], Learner]] = {"PPO": build_learner, "SB3Learner": SB3Learner}
FIGURES = {"return": "eval/mean_reward", "completed": "eval/completion_rate", "gap": "eval/gap_to_optimal"}


@dataclass(frozen=True)
class Job:
    """One run: a learner, a seed, its decisions, and how often and from how many starts it is evaluated."""

    learner: str
    seed: int
    steps: int
    num_checks: int
    episodes: int


def train(job: Job) -> dict[str, Any]:
    """Train a run and return its figures at evenly spaced checks, between two rollouts."""
    asked = {"seed": job.seed, "steps": job.steps, "evaluation.episodes": job.episodes}
    config = resolve_config("racer-ppo", asked)
    warm_up()  # numba sets the number of torch's threads too when it starts its own, so this comes first
    torch.set_num_threads(config.torch_threads)
    learner = LEARNERS[job.learner](config)
    evaluator = PolicyEvaluator(config, make_card(config, policy_spaces(config, learner)))
    found: list[dict[str, float]] = []
    begun_s = time.perf_counter()
    while len(found) < job.num_checks:
        learner.collect(lambda _: True)
        learner.update()
        while learner.num_timesteps >= (len(found) + 1) * job.steps // job.num_checks and len(found) < job.num_checks:
            figures = evaluator.score(learner.policy()).figures
            found.append({name: figures.get(key, math.nan) for name, key in FIGURES.items()})
    learner.close()
    return {"learner": job.learner, "seed": job.seed, "seconds": time.perf_counter() - begun_s, "checks": found}


def print_table(runs: Sequence[dict[str, Any]], steps: int, num_checks: int) -> None:
    """For each check and learner the figures of every seed and the interval over the seeds."""
    print("| million decisions | figure | learner | seeds | interval |\n| ---: | --- | --- | --- | --- |")
    for check in range(num_checks):
        for figure in FIGURES:
            for learner in LEARNERS:
                values = [run["checks"][check][figure] for run in runs if run["learner"] == learner]
                summary = summarise(values, is_higher_better=figure != "gap", rng=np.random.default_rng(0))
                interval = "-" if summary.interval is None else " to ".join(f"{end:.3f}" for end in summary.interval)
                shown = ", ".join(f"{value:.3f}" for value in values)
                millions = (check + 1) * steps / num_checks / 1e6
                print(f"| {millions:.2f} | {figure} | {learner} | {shown} | {interval} |")


def positive(text: str) -> int:
    """A whole number of 1 or more, from the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Train all runs and print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=positive, default=5, help="seeds 1 to this")
    parser.add_argument("--steps", type=positive, default=3_000_000, help="decisions of each run")
    parser.add_argument("--checks", type=positive, default=3, help="evaluations of each run")
    parser.add_argument("--episodes", type=positive, default=500, help="starts of each evaluation")
    parser.add_argument("--workers", type=positive, default=1, help="runs at a time, a process each")
    options = parser.parse_args(arguments)
    jobs = [
        Job(learner, seed, options.steps, options.checks, options.episodes)
        for seed in range(1, options.seeds + 1)
        for learner in LEARNERS
    ]
    warm_up()  # compiles once, for all processes
    runs = []
    with multiprocessing.get_context("spawn").Pool(options.workers, maxtasksperchild=1) as pool:
        for run in pool.imap(train, jobs, chunksize=1):
            print(json.dumps(run), file=sys.stderr, flush=True)
            runs.append(run)
    print_table(runs, options.steps, options.checks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
