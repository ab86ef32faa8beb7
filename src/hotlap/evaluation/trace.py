"""Record what one car did, tick by tick."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.laps import Lap, Progress, drive, measuring_fleet

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """A drive, one value per tick, and the laps in it."""

    x_m: Floats
    y_m: Floats
    speed_mps: Floats
    arc_m: Floats
    laps: list[Lap]


class _Recorder:
    """A driver that notes where its car is before it hands the wheel to another."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self._driver = driver
        self.rows: list[tuple[float, float, float, float]] = []

    def begin(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._driver.begin(fleet, seed)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        car = self._fleet.states[0]
        speed_mps = float(np.hypot(car["forward_mps"], car["left_mps"]))
        self.rows.append((float(car["x_m"]), float(car["y_m"]), speed_mps, float(car["arc_m"])))
        return self._driver.act(obs)


def record_laps(
    driver: Driver, track_id: str, *, num_laps: int, seed: int = 0, progress: Progress | None = None
) -> Trace:
    """Let one car do `num_laps` laps from a standing start, or fewer if it gets stuck."""
    fleet = measuring_fleet(track_id, num_cars=1)
    fleet.seed(np.array([seed % 2**64], np.uint64))
    fleet.reset(start="line")
    recorder = _Recorder(driver)
    recorder.begin(fleet, seed)
    counter = drive(recorder, fleet, num_laps, progress)
    x_m, y_m, speed_mps, arc_m = np.array(recorder.rows).T
    return Trace(x_m, y_m, speed_mps, arc_m, list(counter.laps))
