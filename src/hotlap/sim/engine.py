"""The interfaces of engines, which step cars or races on one kind of device. All engines are bit-identical."""

from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.race import Field
from hotlap.sim.ribbon import Ribbons
from hotlap.sim.step import Batch
from hotlap.sim.world import NUM_OBSERVATIONS

DeviceName = Literal["cpu", "cuda"]
ALL_FINE = -1  # no car had a bad action


class Scenario(NamedTuple):
    """What is constant while cars drive: tracks, car parameters and episode rules, as records."""

    ribbons: Ribbons
    cars: NDArray[np.void]  # (1,) CAR_DTYPE, or one more than there are cars that differ (`domain.py`)
    rules: NDArray[np.void]  # (1,) RULES_DTYPE


class Engine(Protocol):
    """Resets, steps and observes the cars of a batch."""

    def make_batch(self, num_cars: int, num_observations: int = NUM_OBSERVATIONS) -> Batch:
        """A batch of `num_cars` cars, all zero."""

    def reset(self, mask: NDArray[np.bool_], scenario: Scenario, batch: Batch) -> None:
        """Begin an episode for every car in `mask`."""

    def step(
        self, actions: NDArray[np.float32], scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int
    ) -> int:
        """Step every car by up to `repeat` ticks with its action; `actions` is (N, 3), or wider where they arrive late.

        Returns ALL_FINE, or the first car whose action is not finite, in which case no car moved.
        """

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        """Fill the observations of every car from its state."""


class Races(NamedTuple):
    """Races that an engine steps: what is constant, their rules, their cars, and the cars' parts in them."""

    scenario: Scenario
    race_rules: NDArray[np.void]  # (1,) RACE_RULES_DTYPE
    batch: Batch
    field: Field

    @property
    def cars_per_race(self) -> int:
        """The number of cars of each race."""
        return int(self.race_rules["num_cars"][0])


class RaceEngine(Protocol):
    """Resets, steps and observes the cars of races."""

    def reset(self, mask: NDArray[np.bool_], races: Races) -> None:
        """Begin every race in `mask` (one flag a race)."""

    def step(self, actions: NDArray[np.float32], races: Races, *, autoreset: bool, repeat: int) -> int:
        """Step every race by up to `repeat` ticks; returns what `Engine.step` does."""

    def observe(self, races: Races) -> None:
        """Show every car to the others as its state is, and fill all observations."""
