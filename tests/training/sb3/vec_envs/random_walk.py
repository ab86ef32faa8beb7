"""Shared by the tests of `ReplayableEnv`: a random walk, and drives of it."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from hotlap.training.sb3.vec_envs.replayable_env import ReplayableEnv


class Walk(gym.Env):
    """A random walk: start and noise are drawn from the generator; the reward is the position."""

    action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)

    def __init__(self) -> None:
        self.seen = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = (options or {}).get("place", self.np_random.normal())
        return self.look(), {}

    def step(self, action):
        self.seen.append(action)
        self.place += float(action[0]) + self.noise()
        return self.look(), self.place, False, False, {}

    def noise(self) -> float:
        return self.np_random.normal()

    def look(self):
        return np.array([self.place])


def pair(kind: type[gym.Env] = Walk, other: type[gym.Env] | None = None, seed: int | None = 3) -> list[ReplayableEnv]:
    """An environment that was reset, and a fresh one to restore it into, of the same kind unless another is given."""
    envs = [ReplayableEnv(kind()), ReplayableEnv((other or kind)())]
    envs[0].reset(seed=seed)
    return envs


def play(env: gym.Env, num_steps: int, seed: int = 1) -> list:
    rng = np.random.default_rng(seed)
    return [env.step(rng.uniform(-1, 1, 1).astype(np.float32))[:2] for _ in range(num_steps)]


def as_bytes(steps: list) -> list:
    return [(obs.tobytes(), reward) for obs, reward in steps]
