"""Speed of training over the bridge: python benchmarks/bridge_training.py [--rollouts 10].

Starts a bridge of its own and measures, in this order and in one run:

- the recipe racer-ppo over the bridge and in this process, by turns;
- plain stable-baselines3 PPO with its own defaults on one environment: over the bridge, in this process, and on an
  environment that does nothing, which shows what the library itself takes.

Rates are decisions per second of the median rollout with its update; `cpu_ms_per_decision` is processor time of this
process, `bridge_cpu_ms_per_decision` that of the bridge, which other load does not change. One JSON object goes to
stdout.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import psutil
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import hotlap
from hotlap.envs.infos import STEP_KEYS
from hotlap.envs.spaces import action_space, observation_space
from hotlap.hyperparameters import MAX_STEPS
from hotlap.learning.events import StepEvents
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import RunConfig, in_process
from hotlap.runs.run_folder import RunFolder
from hotlap.training.learners import Learner
from hotlap.training.trainer import Observer, Trainer

RECIPE = "racer-ppo"


@dataclass
class Rollouts(BaseCallback):
    """Times `count` rollouts with their updates, after one that warms up; then the training ends."""

    count: int
    bridge: psutil.Process
    times_s: list[float] = field(default_factory=list)
    own_cpu_s: list[float] = field(default_factory=list)
    bridge_cpu_s: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self._last: tuple[float, float, float] | None = None
        self._is_warm = False

    def __hash__(self) -> int:
        """By identity, as any callback."""
        return id(self)

    def _on_rollout_start(self) -> None:
        now = time.perf_counter(), time.process_time(), sum(self.bridge.cpu_times()[:2])
        if self._last is not None:
            if self._is_warm:
                for found, since, until in zip(
                    (self.times_s, self.own_cpu_s, self.bridge_cpu_s), self._last, now, strict=True
                ):
                    found.append(until - since)
            self._is_warm = True
        self._last = now

    def _on_step(self) -> bool:
        return len(self.times_s) < self.count

    def figures(self, num_decisions: int) -> dict[str, float]:
        """The rate, and the processor time of a decision, for rollouts of so many decisions."""
        return {
            "decisions_per_sec": num_decisions / statistics.median(self.times_s),
            "cpu_ms_per_decision": 1000.0 * statistics.median(self.own_cpu_s) / num_decisions,
            # The operating system counts it in hundredths of a second, so the mean is more exact than the median.
            "bridge_cpu_ms_per_decision": 1000.0 * statistics.fmean(self.bridge_cpu_s) / num_decisions,
        }


class RunRollouts(Observer):
    """Tells the rollouts of a run to a callback of stable-baselines3."""

    def __init__(self, rollouts: Rollouts) -> None:
        self._rollouts = rollouts

    def on_rollout_start(self, learner: Learner) -> None:
        """Note the times."""
        self._rollouts._on_rollout_start()

    def on_step(self, events: StepEvents) -> bool:
        """Go on until there are enough rollouts."""
        return self._rollouts._on_step()


class IdleEnv(gym.Env[Any, Any]):
    """Has the racer's spaces and infos and does nothing, so what a training with it takes is the library's."""

    def __init__(self) -> None:
        self.observation_space, self.action_space = observation_space(), action_space()
        self._obs = np.zeros(self.observation_space.shape, np.float32)
        self._num_steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The same observation every time."""
        super().reset(seed=seed)
        self._num_steps = 0
        return self._obs, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Nothing happens; an episode ends after as many steps as one of a racer that stands still."""
        self._num_steps += 1
        return self._obs, 0.0, False, self._num_steps == 200, dict.fromkeys(STEP_KEYS, 0.0)


@contextmanager
def running_bridge() -> Iterator[tuple[str, psutil.Process]]:
    """A bridge in a process of its own: its URL and the process."""
    command = [sys.executable, "-m", "hotlap", "bridge", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = re.search(r"listening on (ws://\S+)", line)
            if found is None:
                raise RuntimeError(f"the bridge did not start: {line!r}")
            yield found[1], psutil.Process(process.pid)
        finally:
            process.terminate()


def measure_recipe(config: RunConfig, rollouts: Rollouts) -> dict[str, float]:
    """Train a complete run with its log, metrics and checkpoints, but without evaluations."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as place:
        Trainer(config, RunFolder(Path(place), config.experiment_id), observers=[RunRollouts(rollouts)]).run()
    return rollouts.figures(config.num_envs * config.ppo.n_steps)


def measure_library(env: gym.Env[Any, Any], rollouts: Rollouts, num_steps: int) -> dict[str, float]:
    """Train stable-baselines3's PPO with its defaults, but for the length of a rollout."""
    learner = PPO("MlpPolicy", env, n_steps=num_steps, device="cpu", seed=0)
    learner.learn(MAX_STEPS, callback=rollouts)
    env.close()
    return rollouts.figures(learner.n_steps)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    num_cars, num_rollouts = options.cars, options.rollouts
    with running_bridge() as (url, bridge):
        asked = {"num_envs": num_cars, "steps": MAX_STEPS, "evaluation.interval": 0, "evaluation.final_episodes": 1}
        asked |= {"env": "hotlap/RemoteRacer-v0", "env_args.bridge_url": url}
        config = resolve_config(RECIPE, asked)
        recipe = {
            "bridge": measure_recipe(config, Rollouts(num_rollouts, bridge)),
            "local": measure_recipe(in_process(config), Rollouts(num_rollouts, bridge)),
        }
        torch.set_num_threads(options.torch_threads)
        environments = {
            "bridge": lambda: gym.make("hotlap/RemoteRacer-v0", bridge_url=url),
            "local": lambda: gym.make("hotlap/Racer-v0"),
            "idle": IdleEnv,
        }
        library = {
            name: measure_library(make(), Rollouts(options.library_rollouts, bridge), options.library_steps)
            for name, make in environments.items()
        }
    return {
        "physics": hotlap.PHYSICS_VERSION,
        "recipe": RECIPE,
        "num_cars": num_cars,
        "recipe_rollouts": num_rollouts,
        "library_rollouts": options.library_rollouts,
        "library_torch_threads": options.torch_threads,
        "load_average": psutil.getloadavg()[0],
        "recipe_figures": recipe,
        "library_figures": library,
    }


def positive(text: str) -> int:
    """A whole number of 1 or more, from the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be 1 or more, got {number}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=positive, default=512, help="cars of the recipe's run")
    parser.add_argument("--rollouts", type=positive, default=10, help="measured rollouts of the recipe")
    parser.add_argument("--library-rollouts", type=positive, default=3, help="measured rollouts of the library's PPO")
    parser.add_argument("--library-steps", type=positive, default=2048, help="steps of a rollout of the library's PPO")
    parser.add_argument("--torch-threads", type=positive, default=1, help="threads of torch for the library's PPO")
    options = parser.parse_args(arguments)
    print(json.dumps(measure(options)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
