"""Records one car tick by tick."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.evaluate import Lap, OnProgress, drive, start_cars
from hotlap.tracks.registry import Track

Floats = NDArray[np.float64]

# Steer, throttle and brake are those applied by the car, after the lag of its actuators.
_COLUMNS = ("x_m", "y_m", "arc_m", "lateral_m", "steer", "throttle", "brake")


@dataclass(frozen=True)
class Telemetry:
    """A drive from the start line, one value per tick, and its laps.

    Row k is the car at k / 60 s; row 0 is before the first tick.
    `lateral_m` is positive left of the centreline, `steer` positive to the right.
    """

    x_m: Floats
    y_m: Floats
    speed_mps: Floats
    arc_m: Floats  # along the centreline, restarting at 0 on each lap
    lateral_m: Floats
    steer: Floats
    throttle: Floats
    brake: Floats
    laps: list[Lap]

    @property
    def line(self) -> tuple[Floats, Floats, Floats]:
        """The whole drive: x (m), y (m), speed (m/s)."""
        return self.x_m, self.y_m, self.speed_mps


class _Recorder:
    """A driver that records its car before it passes the call to another driver."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self._driver = driver
        self.rows: list[tuple[float, ...]] = []

    def begin(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._driver.begin(fleet, seed)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        self.record()
        return self._driver.act(obs)

    def record(self) -> None:
        car = self._fleet.states[0]
        speed_mps = float(np.hypot(car["forward_mps"], car["left_mps"]))
        self.rows.append((speed_mps, *(float(car[name]) for name in _COLUMNS)))


def record_laps(
    driver: Driver, track: str | Track, *, num_laps: int, seed: int = 0, progress: OnProgress | None = None
) -> Telemetry:
    """Record one car over `num_laps` laps from a standing start, or fewer if it gets stuck."""
    fleet = start_cars(driver, track, [seed], "line")
    recorder = _Recorder(driver)
    recorder.begin(fleet, seed)
    counter = drive(recorder, fleet, num_laps, progress)
    recorder.record()
    speed_mps, *columns = np.array(recorder.rows).T
    return Telemetry(speed_mps=speed_mps, **dict(zip(_COLUMNS, columns, strict=True)), laps=list(counter.laps))
