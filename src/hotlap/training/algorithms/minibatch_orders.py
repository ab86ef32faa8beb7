"""The random orders in which an update passes over a rollout's rows."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from hotlap.learning.distributed.processes import Processes
from hotlap.training.algorithms.tensor_rollout import TensorRollout


def draw_orders(rollout: TensorRollout, n_epochs: int, processes: Processes) -> Iterator[Tensor]:
    """Permutations of the rows of a rollout, drawn from the library's generator."""
    return _library_orders(rollout, n_epochs) if processes.is_alone else _own_orders(rollout, n_epochs, processes.rank)


def _library_orders(rollout: TensorRollout, n_epochs: int) -> Iterator[Tensor]:
    """The minibatches that stable-baselines3's buffer would draw."""
    num_steps, num_envs = rollout.rewards.shape
    # The library's buffer counts environment by environment; our rows go step by step.
    rows = np.arange(num_steps * num_envs).reshape(num_steps, num_envs).T.ravel()
    for _ in range(n_epochs):
        yield torch.from_numpy(rows[np.random.permutation(len(rows))])  # noqa: NPY002 (as the library)


def _own_orders(rollout: TensorRollout, n_epochs: int, rank: int) -> Iterator[Tensor]:
    """Other permutations in each process.

    The library's generator stays the same in all of them, so a checkpoint holds one state for all.
    """
    for _ in range(n_epochs):
        seed = int(np.random.randint(2**31))  # noqa: NPY002 (as the library)
        order = np.random.default_rng((seed, rank)).permutation(rollout.rewards.numel())
        yield torch.from_numpy(order).to(rollout.rewards.device)
