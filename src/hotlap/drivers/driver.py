"""The `Driver` protocol, and drivers made of a name or of a model."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import DriverError
from hotlap.models.model_file import ModelFile
from hotlap.models.shipped_models import SHIPPED_NAMES

BUILT_IN = ("casual", "optimal")  # they need no model


class Driver(Protocol):
    """Drives every car of a fleet. `begin` is called after a reset of the cars, `act` once per tick."""

    name: str

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Prepare to drive `fleet`; all randomness of the driver comes from `seed`."""

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (num_cars, 3) for the fleet's observations."""


def observation_of(driver: Driver) -> ObservationName:
    """What a fleet has to observe for this driver: its attribute `observation`, or `rays` if it has none."""
    wanted: ObservationName = getattr(driver, "observation", DEFAULT_OBSERVATION)
    return wanted


def make_driver(name: str, model: ModelFile | None = None) -> Driver:
    """The driver of a model, which a shipped driver's name is given to; without a model the built-in one of the name.

    `hotlap.runs.find_driver` finds the model that a name means.
    """
    if model is not None:
        from hotlap.drivers.packed import PackedDriver

        return PackedDriver.from_model(model, name if name in SHIPPED_NAMES else None)
    if name == "casual":
        from hotlap.drivers.casual import CasualDriver

        return CasualDriver()
    if name == "optimal":
        try:
            from hotlap.drivers.optimal_follower import OptimalDriver
        except ImportError:
            raise DriverError("the optimal driver needs CasADi. Install it: pip install 'hotlap[optimal]'.") from None
        return OptimalDriver()
    raise DriverError(f"driver {name!r:.80} is not built in. Give its model, or use {' or '.join(BUILT_IN)}.")
