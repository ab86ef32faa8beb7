"""Compares what `TensorPPO` and `HotlapPPO` learn per decision: python benchmarks/learners.py [--workers 2].

Both train the recipe racer-ppo from the same seeds. Each policy is evaluated without noise at the same decisions; the
interval is that of the interquartile mean over the seeds. One JSON object per run goes to stderr, the table to stdout.
"""

import argparse
import json
import math
import multiprocessing
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.utils import set_random_seed

from hotlap.reports.statistics import summarise
from hotlap.runs.recipe import resolve_config
from hotlap.sim.batch_cpu import warm_up
from hotlap.training.algorithms import registry
from hotlap.training.algorithms.ppo import HotlapPPO
from hotlap.training.algorithms.tensor_ppo import TensorPPO
from hotlap.training.model_card import make_card
from hotlap.training.policy_evaluation import PolicyEvaluator
from hotlap.training.vec_envs.factory import TrainingEnvs

LEARNERS = {"TensorPPO": TensorPPO, "HotlapPPO": HotlapPPO}
FIGURES = {"return": "eval/mean_reward", "completed": "eval/completion_rate", "gap": "eval/gap_to_optimal"}


@dataclass(frozen=True)
class Job:
    """One run: a learner, a seed, its decisions, and how often and from how many starts it is evaluated."""

    learner: str
    seed: int
    steps: int
    num_checks: int
    episodes: int


class Checks(BaseCallback):
    """Evaluates the policy at evenly spaced decisions, between two rollouts."""

    def __init__(self, job: Job, evaluator: PolicyEvaluator) -> None:
        super().__init__()
        self._job, self._evaluator = job, evaluator
        self.found: list[dict[str, float]] = []

    def _on_rollout_start(self) -> None:
        while self.num_timesteps >= (len(self.found) + 1) * self._job.steps // self._job.num_checks:
            self.check()

    def check(self) -> None:
        """Evaluate now."""
        figures = self._evaluator.score_learner(self.model).figures  # type: ignore[arg-type]
        self.found.append({name: figures.get(key, math.nan) for name, key in FIGURES.items()})

    def _on_step(self) -> bool:
        return True


def train(job: Job) -> dict[str, Any]:
    """Train a run and return its figures at each check."""
    asked = {"seed": job.seed, "steps": job.steps, "evaluation.episodes": job.episodes}
    config = resolve_config("racer-ppo", asked)
    warm_up()  # numba sets the number of torch's threads too when it starts its own, so this comes first
    torch.set_num_threads(config.torch_threads)
    set_random_seed(config.seed)
    registry.LEARNERS = {"ppo": registry.LearnerSpec(LEARNERS[job.learner])}
    envs = TrainingEnvs(config)
    learner = registry.build_learner(config, envs.env)
    learner.set_logger(Logger(None, []))
    checks = Checks(job, PolicyEvaluator(config, make_card(config, envs.env, 0, "")))
    begun_s = time.perf_counter()
    learner.learn(job.steps, callback=checks)
    if len(checks.found) < job.num_checks:
        checks.check()
    envs.close()
    return {"learner": job.learner, "seed": job.seed, "seconds": time.perf_counter() - begun_s, "checks": checks.found}


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
