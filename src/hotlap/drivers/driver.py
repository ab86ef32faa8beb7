"""What a driver is, and how to get one by its name."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError, InputFileError


class Driver(Protocol):
    """Drives every car of a fleet. `begin` is called after the cars were reset, `act` once a tick."""

    name: str

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Take the wheel of `fleet`'s cars; whatever is random about the driver comes from `seed`."""

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Actions (num_cars, 3) for observations (num_cars, 14)."""


def make_driver(name: str) -> Driver:
    """The built-in driver of this name, or the one learned by a run or in a model file."""
    if name == "casual":
        from hotlap.drivers.casual import CasualDriver

        return CasualDriver()
    if name == "optimal":
        try:
            from hotlap.drivers.optimal_follower import OptimalDriver
        except ImportError:
            raise DriverError("the optimal driver needs CasADi. Install it: pip install 'hotlap[optimal]'.") from None
        return OptimalDriver()
    from hotlap.models.model_file import find_model, read_model

    try:
        path = find_model(name)
    except InputFileError as error:
        raise DriverError(f"driver {error} Built in: casual, optimal.") from None
    # What is wrong with the file comes before the learning library, which takes seconds to load.
    model = read_model(path)
    from hotlap.drivers.learned import LearnedDriver

    return LearnedDriver.from_file(model)
