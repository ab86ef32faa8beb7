"""The random orders in which an update passes over a rollout's rows."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from hotlap.learning.distributed.processes import Processes


def draw_orders(
    num_steps: int, num_cars: int, n_epochs: int, rng: np.random.RandomState, processes: Processes
) -> Iterator[Tensor]:
    """A permutation of the rows of a rollout for each epoch; row `step * num_cars + car` is one decision.

    Alone, they are those that stable-baselines3's buffer draws from the same generator. Several processes draw other
    permutations each; the generator stays the same in all of them, so a checkpoint holds one state for all.
    """
    num_rows = num_steps * num_cars
    # The library's buffer counts environment by environment; our rows go step by step.
    rows = np.arange(num_rows).reshape(num_steps, num_cars).T.ravel()
    for _ in range(n_epochs):
        if processes.is_alone:
            yield torch.from_numpy(rows[rng.permutation(num_rows)])
        else:
            own = np.random.default_rng((int(rng.randint(2**31)), processes.rank))
            yield torch.from_numpy(own.permutation(num_rows))
