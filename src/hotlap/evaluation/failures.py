"""Where random starts fail: the places at which cars left the road or stopped."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.evaluate import Evaluation, LapCounter, PolicyDriver, drive, start_cars
from hotlap.tracks.registry import Track

_COLUMNS = ("x_m", "y_m", "arc_m")


@dataclass(frozen=True)
class TrackPlace:
    """A place on a track; `arc_m` is along the centreline."""

    x_m: float
    y_m: float
    arc_m: float


@dataclass(frozen=True)
class Failures:
    """Where cars stopped for good, and where those without a clean lap left the road or touched a wall first."""

    stopped: tuple[TrackPlace, ...] = ()
    left_road: tuple[TrackPlace, ...] = ()


class _PlaceCounter(LapCounter):
    """Also notes where each car was last, and where its lap was spoiled."""

    def __init__(self, num_cars: int) -> None:
        super().__init__(num_cars)
        self.last = np.zeros((num_cars, len(_COLUMNS)))
        self.spoiled = np.full((num_cars, len(_COLUMNS)), np.nan)
        self._was_spoiled = np.zeros(num_cars, np.bool_)

    def add_tick(self, fleet: Fleet, running: NDArray[np.bool_]) -> None:
        super().add_tick(fleet, running)
        places = np.stack([fleet.states[name] for name in _COLUMNS], axis=1)
        is_spoiled = fleet.states["lap_spoiled"] != 0
        self.last[running] = places[running]
        # Each lap begins unspoiled, so the place is that of the last lap.
        is_new = running & is_spoiled & ~self._was_spoiled
        self.spoiled[is_new] = places[is_new]
        self._was_spoiled = is_spoiled


def find_failures(driver: Driver, track: Track, found: Evaluation) -> Failures:
    """Where the cars of an evaluation from random starts failed; they are driven again, tick by tick."""
    if not found.failed_cars:
        return Failures()
    # Only a policy drives a car alone as it does among others.
    cars = found.failed_cars if isinstance(driver, PolicyDriver) else range(found.episodes)
    fleet = start_cars(driver, track, [found.seed + car for car in cars], found.start)
    counter = _PlaceCounter(fleet.num_cars)
    driver.begin(fleet, found.seed)
    drive(driver, fleet, 1, counter=counter)
    clean = {lap.car for lap in counter.laps if lap.is_clean}
    stopped = sorted(set(range(fleet.num_cars)) - {lap.car for lap in counter.laps})
    failed = [car for car in range(fleet.num_cars) if car not in clean and not np.isnan(counter.spoiled[car, 0])]
    return Failures(_places(counter.last[stopped]), _places(counter.spoiled[failed]))


def _places(rows: NDArray[np.float64]) -> tuple[TrackPlace, ...]:
    return tuple(TrackPlace(*row) for row in rows.tolist())
