"""Records one car tick by tick, alone or in a race."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.domain import DomainRules
from hotlap.envs.fleet import Fleet
from hotlap.envs.race_fleet import RaceFleet
from hotlap.evaluation.evaluate import STANDARD, Lap, OnProgress, drive, start_cars
from hotlap.evaluation.races import Entry, RaceCounts, race
from hotlap.sim.race import RACING
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


class _Rows:
    """What is recorded of one car, a row a tick."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, ...]] = []

    def add(self, car: np.void) -> None:
        speed_mps = float(np.hypot(car["forward_mps"], car["left_mps"]))
        self._rows.append((speed_mps, *(float(car[name]) for name in _COLUMNS)))

    def finish(self, laps: Sequence[Lap]) -> Telemetry:
        speed_mps, *columns = np.array(self._rows).T
        return Telemetry(speed_mps=speed_mps, **dict(zip(_COLUMNS, columns, strict=True)), laps=list(laps))


class _Recorder:
    """A driver that records its car before it passes the call to another driver."""

    def __init__(self, driver: Driver, on_tick: Callable[[Fleet], None] | None) -> None:
        self.name = driver.name
        self._driver, self._on_tick = driver, on_tick
        self.rows = _Rows()

    def begin(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._driver.begin(fleet, seed)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        self.record()
        return self._driver.act(obs)

    def record(self) -> None:
        self.rows.add(self._fleet.states[0])
        if self._on_tick:
            self._on_tick(self._fleet)


def record_laps(
    driver: Driver,
    track: str | Track,
    *,
    num_laps: int,
    seed: int = 0,
    progress: OnProgress | None = None,
    on_tick: Callable[[Fleet], None] | None = None,
    domain: DomainRules = STANDARD,
) -> Telemetry:
    """Record one car over `num_laps` laps from a standing start, or fewer if it gets stuck.

    `on_tick` is called with the fleet at the start and after each tick.
    """
    fleet = start_cars(driver, track, [seed], "line", domain)
    recorder = _Recorder(driver, on_tick)
    recorder.begin(fleet, seed)
    counter = drive(recorder, fleet, num_laps, progress)
    recorder.record()
    return recorder.rows.finish(counter.laps)


def record_race(
    entries: Sequence[Entry],
    track: str | Track,
    *,
    num_laps: int,
    seed: int = 0,
    progress: OnProgress | None = None,
    on_tick: Callable[[RaceFleet], None] | None = None,
) -> tuple[Telemetry, RaceCounts]:
    """Record the first car of a race from the grid, until the race is over; and what happened in the race."""
    rows, laps = _Rows(), []

    def watch(fleet: RaceFleet, actions: NDArray[np.float32] | None) -> None:
        if fleet.entrants["status"][0] == RACING:  # a car that is out has left the road
            rows.add(fleet.states[0])
        info = fleet.batch.infos[0]
        if not np.isnan(info["lapTime"]):
            laps.append(Lap(0, int(info["lap"]) - 1, float(info["lapTime"]), bool(info["lapClean"])))
        if on_tick:
            on_tick(fleet)

    counts = race(entries, track, laps=num_laps, seed=seed, progress=progress, on_step=watch, is_every_tick_shown=True)
    return rows.finish(laps), counts
