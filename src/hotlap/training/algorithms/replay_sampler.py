"""Draws minibatches from a replay buffer of stable-baselines3 as tensors, with returns over several decisions."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from torch import Tensor

from hotlap.training.algorithms.tensor_normalizer import NoNormalizer, TensorNormalizer


@dataclass(frozen=True)
class Minibatch:
    """Decisions drawn from a replay buffer, normalized."""

    observations: Tensor  # (n, num_obs)
    actions: Tensor  # (n, num_actions), from -1 to 1
    next_observations: Tensor  # (n, num_obs)
    rewards: Tensor  # (n,), discounted and added up
    discounts: Tensor  # (n,), of the value of the next observation; 0 where the episode terminated


class ReplaySampler:
    """Draws what the buffer itself would draw from the same random numbers; its tensors share the buffer's memory.

    A return ends early with its episode, and at the newest decision of the buffer.
    """

    def __init__(
        self, buffer: ReplayBuffer, normalizer: TensorNormalizer | NoNormalizer, gamma: float, n_steps: int
    ) -> None:
        self._buffer, self._normalizer, self._gamma, self._n_steps = buffer, normalizer, gamma, n_steps
        arrays = (buffer.observations, buffer.actions, buffer.next_observations)
        self._observations, self._actions, self._next_observations = (_rows(array) for array in arrays)
        self._rewards, self._dones, self._timeouts = map(_rows, (buffer.rewards, buffer.dones, buffer.timeouts))

    def draw(self, batch_size: int) -> Minibatch:
        """A minibatch of decisions, each as probable as any other."""
        buffer = self._buffer
        filled = buffer.buffer_size if buffer.full else buffer.pos
        steps = np.random.randint(0, filled, size=batch_size)  # noqa: NPY002 (as the library)
        cars = np.random.randint(0, buffer.n_envs, size=batch_size)  # noqa: NPY002
        rows = self._rows_at(steps, cars)
        last_rows, rewards, discounts = rows, self._rewards_of(rows), torch.full((batch_size,), self._gamma)
        newest = (buffer.pos - 1) % buffer.buffer_size
        goes_on = torch.ones(batch_size, dtype=torch.bool)
        for _ in range(1, self._n_steps):
            goes_on &= (self._dones[last_rows] == 0.0) & torch.from_numpy(steps != newest)
            steps = (steps + 1) % buffer.buffer_size
            then = self._rows_at(steps, cars)
            rewards += self._rewards_of(then).mul_(discounts).mul_(goes_on)
            last_rows = torch.where(goes_on, then, last_rows)
            discounts = torch.where(goes_on, discounts * self._gamma, discounts)
        has_terminated = self._dones[last_rows] * (1.0 - self._timeouts[last_rows])
        return Minibatch(
            self._normalized(self._observations, rows),
            self._actions.index_select(0, rows),
            self._normalized(self._next_observations, last_rows),
            rewards,
            discounts.mul_(1.0 - has_terminated),
        )

    def _rows_at(self, steps: NDArray[np.int64], cars: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(steps * self._buffer.n_envs + cars)

    def _rewards_of(self, rows: Tensor) -> Tensor:
        found = self._rewards.index_select(0, rows)
        return self._normalizer.normalize_rewards(found, out=found)

    def _normalized(self, observations: Tensor, rows: Tensor) -> Tensor:
        found = observations.index_select(0, rows)
        return self._normalizer.normalize_obs(found, out=found)


def _rows(array: NDArray[np.float32]) -> Tensor:
    """An array (steps, cars, …) as a tensor with one row per decision."""
    return torch.from_numpy(array).flatten(0, 1)
