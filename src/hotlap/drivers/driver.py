"""The `Driver` protocol, and drivers by name."""

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.envs.racer import DEFAULT_TRACK
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import DriverError, InputFileError

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


def make_driver(name: str, track_id: str = DEFAULT_TRACK) -> Driver:
    """The built-in driver of this name, or the learned driver of a run or a model file.

    The track chooses among the champions; no other driver depends on it.
    """
    if name == "casual":
        from hotlap.drivers.casual import CasualDriver

        return CasualDriver()
    if name == "optimal":
        try:
            from hotlap.drivers.optimal_follower import OptimalDriver
        except ImportError:
            raise DriverError("the optimal driver needs CasADi. Install it: pip install 'hotlap[optimal]'.") from None
        return OptimalDriver()
    from hotlap.drivers.packed import PackedDriver
    from hotlap.models.model_file import read_model
    from hotlap.models.shipped_models import SHIPPED_NAMES

    path = find_driver_file(name, track_id)
    return PackedDriver.from_model(read_model(path), name if name in SHIPPED_NAMES else None)


def find_driver_file(name: str, track_id: str = DEFAULT_TRACK) -> Path:
    """The model file that a driver's name means: a shipped one's for the track, a run's, or the file of this name."""
    from hotlap.models.model_file import find_model
    from hotlap.models.shipped_models import SHIPPED_NAMES, find_shipped

    if name in SHIPPED_NAMES:
        return find_shipped(name, track_id)
    try:
        return find_model(name)
    except InputFileError as error:
        raise DriverError(f"driver {error} Or {', '.join((*BUILT_IN, *SHIPPED_NAMES))}.") from None
