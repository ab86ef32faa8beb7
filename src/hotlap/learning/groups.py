"""Groups of cars that begin each episode at the same place, so that a car's luck there is that of its group.

The simulator is deterministic: what tells the cars of a group apart is the noise of their actions alone. An advantage
less the mean of the others' therefore no longer contains what the value network gets wrong about the place. The mean
of the others does not depend on a car's own action, so it is a baseline like any other: the gradient has no bias.
"""

import torch
from torch import Tensor

from hotlap.envs.tensor_engines import columns_of
from hotlap.sim.world import STATE_DTYPE


class Groups:
    """Neighbouring cars in groups of `size`; `states` are the words of their states, see `CarEngine`."""

    def __init__(self, states: Tensor, size: int) -> None:
        if len(states) % size:
            raise ValueError(f"{len(states)} cars do not fill groups of {size}")
        self.size = size
        self._states = states
        self._clocks = tuple(columns_of(states, STATE_DTYPE, ("episode", "tick")).values())
        cars = torch.arange(len(states), device=states.device)
        self._leaders = cars - cars % size

    def gather(self, *columns: Tensor) -> Tensor:
        """Put cars out of step where the first of their group is; returns which ones, (N,).

        A car is out of step after an episode that ended before the others'. `columns` are what else belongs to a car,
        each with one row per car.
        """
        strays = torch.zeros(len(self._states), dtype=torch.bool, device=self._states.device)
        for clock in self._clocks:
            strays.logical_or_(clock != clock[self._leaders])
        for rows in (self._states, *columns):
            rows.copy_(torch.where(strays.view(-1, *[1] * (rows.dim() - 1)), rows[self._leaders], rows))
        return strays


def compare_in_groups(advantages: Tensor, terminated: Tensor, size: int) -> None:
    """Subtract from each advantage (T, N) the mean of those of the others of the group at the same step.

    All cars are in step at the first step. One that has `terminated` (T, N) is compared no longer: it is elsewhere.
    """
    num_steps, num_cars = advantages.shape
    in_step = torch.ones(num_cars // size, size, dtype=advantages.dtype, device=advantages.device)
    for step in range(num_steps):
        own = advantages[step].view_as(in_step)
        counted = own * in_step
        others = (counted.sum(1, keepdim=True) - counted) / (in_step.sum(1, keepdim=True) - 1.0).clamp(min=1.0)
        own.sub_(others * in_step)
        in_step.masked_fill_(terminated[step].view_as(in_step), 0.0)
