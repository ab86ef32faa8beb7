"""Record what one car did, tick by tick."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.evaluate import Lap, Progress, drive, measuring_fleet

Floats = NDArray[np.float64]

# Applied controls, as the car has them: what the hands and feet asked for arrives with the actuators' lag.
_COLUMNS = ("x_m", "y_m", "arc_m", "lateral_m", "steer", "throttle", "brake")


@dataclass(frozen=True)
class Telemetry:
    """A drive from the line, a value per tick from before the first to after the last, and the laps in it.

    Row k is the car at k / 60 s. `lateral_m` is positive left of the centreline, `steer` positive to the right.
    """

    x_m: Floats
    y_m: Floats
    speed_mps: Floats
    arc_m: Floats  # along the centreline, from 0 again on each lap
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
    """A driver that notes where its car is before it hands the wheel to another."""

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self._driver = driver
        self.rows: list[tuple[float, ...]] = []

    def begin(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._driver.begin(fleet, seed)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        self.note()
        return self._driver.act(obs)

    def note(self) -> None:
        car = self._fleet.states[0]
        speed_mps = float(np.hypot(car["forward_mps"], car["left_mps"]))
        self.rows.append((speed_mps, *(float(car[name]) for name in _COLUMNS)))


def record_laps(
    driver: Driver, track_id: str, *, num_laps: int, seed: int = 0, progress: Progress | None = None
) -> Telemetry:
    """Let one car do `num_laps` laps from a standing start, or fewer if it gets stuck."""
    fleet = measuring_fleet(track_id, num_cars=1)
    fleet.seed(np.array([seed % 2**64], np.uint64))
    fleet.reset(start="line")
    recorder = _Recorder(driver)
    recorder.begin(fleet, seed)
    counter = drive(recorder, fleet, num_laps, progress)
    recorder.note()
    speed_mps, *columns = np.array(recorder.rows).T
    return Telemetry(speed_mps=speed_mps, **dict(zip(_COLUMNS, columns, strict=True)), laps=list(counter.laps))
