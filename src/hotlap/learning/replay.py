"""A replay buffer in main memory: the decisions of all cars, and minibatches with returns over several of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.errors import StateError
from hotlap.learning.normalizer import Normalizer

_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@dataclass(frozen=True)
class Minibatch:
    """Decisions drawn from a replay buffer, normalized."""

    observations: Tensor  # (n, num_obs)
    actions: Tensor  # (n, num_actions), from -1 to 1
    next_observations: Tensor  # (n, num_obs)
    rewards: Tensor  # (n,), discounted and added up
    discounts: Tensor  # (n,), of the value of the next observation; 0 where the episode terminated


class ReplayBuffer:
    """The newest decisions of N cars, step by step, raw; the oldest are overwritten.

    `draw` gives what stable-baselines3's buffer draws from the same random numbers. A return ends early with its
    episode, and at the newest decision of the buffer.
    """

    def __init__(self, num_decisions: int, num_cars: int, num_obs: int, num_actions: int) -> None:
        self.num_steps = max(num_decisions // num_cars, 1)
        rows = self.num_steps, num_cars
        self.observations, self.next_observations = torch.zeros(2, *rows, num_obs)
        self.actions = torch.zeros(*rows, num_actions)
        # Whether the episode ended, and whether the time limit ended it; as float32, like the rewards.
        self.rewards, self.dones, self.timeouts = torch.zeros(3, *rows)
        self.position, self.is_full = 0, False

    @property
    def num_filled(self) -> int:
        """The steps that hold decisions."""
        return self.num_steps if self.is_full else self.position

    @property
    def num_bytes(self) -> int:
        """The size of the arrays."""
        return sum(getattr(self, name).nbytes for name in _ARRAYS)

    def add(
        self, obs: Tensor, next_obs: Tensor, actions: Tensor, rewards: Tensor, ended: Tensor, cut_off: Tensor
    ) -> None:
        """Add one decision of every car; `next_obs` is the last observation where an episode ended."""
        given = (obs, next_obs, actions, rewards, ended, cut_off)
        for name, value in zip(_ARRAYS, given, strict=True):
            getattr(self, name)[self.position] = value
        self.position += 1
        if self.position == self.num_steps:
            self.position, self.is_full = 0, True

    def draw(
        self, batch_size: int, n_steps: int, gamma: float, normalizer: Normalizer, rng: np.random.RandomState
    ) -> Minibatch:
        """A minibatch of decisions, each as probable as any other, with returns over `n_steps` decisions."""
        steps = rng.randint(0, self.num_filled, size=batch_size)
        cars = rng.randint(0, self.rewards.shape[1], size=batch_size)
        dones, timeouts = self.dones.flatten(), self.timeouts.flatten()

        def rewards_of(rows: Tensor) -> Tensor:
            found = self.rewards.flatten().index_select(0, rows)
            return normalizer.normalize_rewards(found, out=found)

        def normalized(observations: Tensor, rows: Tensor) -> Tensor:
            found = observations.flatten(0, 1).index_select(0, rows)
            return normalizer.normalize_obs(found, out=found)

        rows = self._rows_at(steps, cars)
        last_rows, rewards, discounts = rows, rewards_of(rows), torch.full((batch_size,), gamma)
        newest = (self.position - 1) % self.num_steps
        goes_on = torch.ones(batch_size, dtype=torch.bool)
        for _ in range(1, n_steps):
            goes_on &= (dones[last_rows] == 0.0) & torch.from_numpy(steps != newest)
            steps = (steps + 1) % self.num_steps
            then = self._rows_at(steps, cars)
            rewards += rewards_of(then).mul_(discounts).mul_(goes_on)
            last_rows = torch.where(goes_on, then, last_rows)
            discounts = torch.where(goes_on, discounts * gamma, discounts)
        has_terminated = dones[last_rows] * (1.0 - timeouts[last_rows])
        return Minibatch(
            normalized(self.observations, rows),
            self.actions.flatten(0, 1).index_select(0, rows),
            normalized(self.next_observations, last_rows),
            rewards,
            discounts.mul_(1.0 - has_terminated),
        )

    def _rows_at(self, steps: NDArray[np.int64], cars: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(steps * self.rewards.shape[1] + cars)

    def state_dict(self) -> dict[str, Any]:
        """The filled rows of every array; not copies."""
        rows = {name: getattr(self, name)[: self.num_filled] for name in _ARRAYS}
        return {"position": self.position, "is_full": self.is_full, "rows": rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name in _ARRAYS:
            own, rows = getattr(self, name), torch.as_tensor(state["rows"][name])
            if rows.shape[1:] != own.shape[1:] or len(rows) > len(own):
                raise StateError(
                    f"state: its replay buffer has {name} of shape {tuple(rows.shape)}; this run's {tuple(own.shape)}."
                )
            own[: len(rows)] = rows
        self.position, self.is_full = int(state["position"]), bool(state["is_full"])
