"""What an engine is: it moves a batch of cars on one kind of device. All engines give the same bits."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.ribbon import Ribbons
from hotlap.sim.step import Batch

ALL_FINE = -1  # no car had a bad action


class Setting(NamedTuple):
    """What does not change while cars drive: the tracks, the car's parameters and the rules, as records."""

    ribbons: Ribbons
    cars: NDArray[np.void]  # (1,) CAR_DTYPE
    rules: NDArray[np.void]  # (1,) RULES_DTYPE


class Engine(Protocol):
    """Resets, steps and observes the cars of a batch."""

    def make_batch(self, num_cars: int) -> Batch:
        """Room for `num_cars` cars, all zero."""

    def reset(self, mask: NDArray[np.bool_], setting: Setting, batch: Batch) -> None:
        """Begin an episode for every car in `mask`."""

    def step(
        self, actions: NDArray[np.float32], setting: Setting, batch: Batch, *, autoreset: bool, repeat: int
    ) -> int:
        """Up to `repeat` ticks with one action for every car.

        Returns ALL_FINE, or the first car whose action is not finite; then no car moved.
        """

    def observe(self, setting: Setting, batch: Batch) -> None:
        """Fill the observations of every car from its state."""
