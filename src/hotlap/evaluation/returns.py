"""Measures the returns and lengths of a policy's episodes in any Gymnasium environment."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.envs.gym_registry import make_env
from hotlap.errors import ActionError, ConfigError

MAX_ENVS = 100  # at once, to limit memory

# Observations (num_envs, …), or a dict of them, to actions (num_envs, …).
Predict = Callable[[Any], NDArray[Any]]


@dataclass(frozen=True)
class Returns:
    """Returns and lengths of episodes, in the order of their seeds."""

    returns: NDArray[np.float64]  # (episodes,)
    lengths: NDArray[np.int64]  # (episodes,), steps

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Population standard deviation of the returns."""
        return float(self.returns.std())

    @property
    def length_mean(self) -> float:
        """Mean length in steps."""
        return float(self.lengths.mean())


def evaluate_returns(
    predict: Predict,
    env_id: str,
    env_args: Mapping[str, Any],
    *,
    episodes: int,
    seed: int,
    max_steps: int = 100_000,
) -> Returns:
    """Play whole episodes of at most `max_steps` steps; episode j has its own environment, seeded `seed + j`.

    `MAX_ENVS` environments are stepped together. The policy always sees as many rows as there are environments: the
    row of an episode that has ended keeps its last observation, and its action is ignored. If the batch shrank instead,
    the rounding of matrix products could change, and returns would depend on the lengths of other episodes.
    """
    for name, value, least in (("episodes", episodes, 1), ("max_steps", max_steps, 1), ("seed", seed, 0)):
        if value < least:
            raise ConfigError(f"{name} must be {least} or more, got {value}.")
    returns, lengths = np.zeros(episodes), np.zeros(episodes, np.int64)
    for first in range(0, episodes, MAX_ENVS):
        here = slice(first, min(first + MAX_ENVS, episodes))
        envs = [make_env(env_id, env_args) for _ in range(here.start, here.stop)]
        try:
            _play(predict, envs, seed + first, max_steps, returns[here], lengths[here])
        finally:
            for env in envs:
                env.close()
    return Returns(returns, lengths)


def _play(
    predict: Predict,
    envs: list[gym.Env[Any, Any]],
    seed: int,
    max_steps: int,
    returns: NDArray[np.float64],
    lengths: NDArray[np.int64],
) -> None:
    """One episode in each environment; adds to `returns` and `lengths`."""
    batch = _Batch(envs[0].observation_space, len(envs))
    for index, env in enumerate(envs):
        batch.put(index, env.reset(seed=seed + index)[0])
    running = list(range(len(envs)))
    for _ in range(max_steps):
        actions = predict(batch.rows())
        if len(actions) != len(envs):
            raise ActionError(f"the policy was asked for {len(envs)} actions and gave {len(actions)}.")
        still_running = []
        for index in running:
            obs, reward, terminated, truncated, _ = envs[index].step(actions[index])
            batch.put(index, obs)
            returns[index] += float(reward)
            lengths[index] += 1
            if not (terminated or truncated):
                still_running.append(index)
        running = still_running
        if not running:
            break


class _Batch:
    """Batched observations: one array, or one for each key of a Dict."""

    def __init__(self, space: spaces.Space[Any], num_envs: int) -> None:
        parts = space.spaces if isinstance(space, spaces.Dict) else {None: space}
        self._columns = {key: np.zeros((num_envs, *(part.shape or ())), part.dtype) for key, part in parts.items()}

    def put(self, index: int, observation: Any) -> None:
        """Set row `index` to this observation."""
        for key, column in self._columns.items():
            column[index] = observation if key is None else observation[key]

    def rows(self) -> Any:
        """A copy, so that the policy may keep or change it."""
        if None in self._columns:
            return self._columns[None].copy()
        return {key: column.copy() for key, column in self._columns.items()}
