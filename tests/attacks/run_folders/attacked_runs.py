"""Tiny runs of an environment that goes wrong where a test wants, and what they are compared with."""

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from tiny_runs import assert_same_run, tiny_config

RUN = Path("results") / "experiments" / "ppo_seed42"
SECRET = "precious\n"
needs_posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX links, pipes or signals")


class PoisonEnv(gym.Env):
    """Counts to 20; the test decides what goes wrong at which step of a process."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)
    poison = None  # "reward", "observation" or "last observation"
    poison_at = 70
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.count = 0
        return self._obs(), {}

    def step(self, action):
        type(self).steps += 1
        self.count += 1
        is_end = self.count == 20
        is_now = self.steps >= self.poison_at
        is_last = is_end and self.poison == "last observation"
        obs = self._obs() * (np.nan if is_now and (self.poison == "observation" or is_last) else 1.0)
        reward = np.nan if is_now and self.poison == "reward" else float(action[0])
        return obs.astype(np.float32), reward, False, is_end, {}

    def _obs(self):
        return np.float32([self.count / 20, self.np_random.random()])


gym.register("attacks/Poison-v0", entry_point=PoisonEnv, disable_env_checker=True)


def write_recipe(algo="ppo", env="attacks/Poison-v0", **changes):
    Path("tiny.toml").write_text(tiny_config(algo, env, **changes).to_toml())
    return "tiny.toml"


def content(path):
    return {str(file): file.read_bytes() for file in sorted(Path(path).rglob("*")) if file.is_file()}


class KeptRuns:
    """Copies of runs that several tests need, each trained once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str, run: Path, train: Callable[[], None]) -> Path:
        """A copy of the run that `train` makes at `run`, which exists only after the first call."""
        kept = self._folder / hashlib.sha256(name.encode()).hexdigest()
        if not kept.exists():
            train()
            shutil.copytree(run, kept)
        return kept


def assert_as_in_peace(hotlap, run=RUN, **changes):
    """Compare with the same run, trained undisturbed."""

    def train():
        assert hotlap("train", "--recipe", recipe, "--run-name", "./peace")[0] == 0

    recipe = write_recipe(**changes)
    peace = hotlap.kept_runs.get(Path(recipe).read_text(), Path("peace"), train)
    assert_same_run(run, peace, tiny_config(env="attacks/Poison-v0", **changes))
