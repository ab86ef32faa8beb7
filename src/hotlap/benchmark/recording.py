"""Drivers drive the protocol, and what they do is recorded."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.benchmark.actions import Runs, to_runs
from hotlap.benchmark.lap_replays import NUM_LAPS
from hotlap.benchmark.overtaking_replays import drive_against
from hotlap.benchmark.protocol import MAX_TICKS, OVERTAKING, START, Protocol, TrackStarts, check_road
from hotlap.drivers.driver import Driver, observation_of
from hotlap.envs.fleet import Fleet
from hotlap.errors import DriverError
from hotlap.evaluation.evaluate import StuckDetector, start_cars

DriverOn = Callable[[str], Driver]  # of a track's id; each call gives a driver of its own
OnProgress = Callable[[float], None]


@dataclass(frozen=True)
class Recording:
    """What a driver did in some parts of the protocol."""

    parts: tuple[str, ...]
    laps: Mapping[str, Sequence[Runs]]  # by track, one for each start
    overtaking: Sequence[Runs]  # one for each scenario; empty where that part was not driven


class RecordingDriver:
    """Drives as another driver does, and keeps its actions."""

    def __init__(self, driver: Driver) -> None:
        self.name, self.observation, self._driver = driver.name, observation_of(driver), driver
        self.actions: list[NDArray[np.float32]] = []  # (num_cars, 3) for each tick
        self.rows: NDArray[np.int64] = np.zeros(0, np.int64)  # its cars among those of all races

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Prepare to drive."""
        self.rows = getattr(fleet, "rows", self.rows)
        self._driver.begin(fleet, seed)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The driver's own actions."""
        actions = np.array(self._driver.act(obs), np.float32)
        if not np.isfinite(actions).all():
            raise DriverError(f"driver {self.name}: an action is not a number. Use another driver.")
        self.actions.append(actions)
        return actions


class WithoutEyes:
    """Drives among others as if alone: it is not shown that there are any."""

    def __init__(self, driver: Driver) -> None:
        self.name, self.observation, self._driver = driver.name, observation_of(driver), driver

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Prepare to drive."""
        self._driver.begin(_CarsAlone(fleet), seed)  # type: ignore[arg-type]

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The driver's own actions."""
        return self._driver.act(obs)


class _CarsAlone:
    """A fleet without the way to the other cars of a race."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet, self.num_cars, self.tracks, self.settings = fleet, fleet.num_cars, fleet.tracks, fleet.settings

    @property
    def states(self) -> NDArray[np.void]:
        """The cars' states."""
        return self._fleet.states


def record_protocol(
    driver_on: DriverOn,
    protocol: Protocol,
    parts: Sequence[str],
    *,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> Recording:
    """Let a driver drive some parts of the protocol."""
    tracks, laps = protocol.tracks_of(parts), {}
    has_overtaking = OVERTAKING in parts
    num_tasks = len(tracks) + has_overtaking
    for number, starts in enumerate(tracks):
        laps[starts.track_id] = record_laps(driver_on(starts.track_id), starts)
        if progress:
            progress((number + 1) / num_tasks)
    overtaking = record_overtaking(driver_on, protocol, num_threads) if has_overtaking else []
    if progress:
        progress(1.0)
    return Recording(tuple(part for part in protocol.parts if part in parts), laps, overtaking)


def record_laps(driver: Driver, starts: TrackStarts) -> list[Runs]:
    """What a driver does from every start of a track, until its flying lap has ended, or it is stuck."""
    check_road(starts)
    recorded = RecordingDriver(driver)
    fleet = start_cars(recorded, starts.track_id, starts.seeds, START)
    recorded.begin(fleet, starts.seeds[0])
    running, stuck = np.ones(fleet.num_cars, np.bool_), StuckDetector(fleet)
    num_ticks = np.zeros(fleet.num_cars, np.int64)
    tick = 0
    while running.any() and tick < MAX_TICKS:
        fleet.step(recorded.act(fleet.batch.obs), autoreset=False)
        tick += 1
        num_ticks[running] = tick
        running &= ~((fleet.states["lap"] > NUM_LAPS) | fleet.batch.terminated | stuck.is_stuck(tick))
    return cut_drives(recorded.actions, num_ticks)


def cut_drives(actions: Sequence[NDArray[np.float32]], num_ticks: NDArray[np.int64]) -> list[Runs]:
    """The runs of each car, whose drive ended after `num_ticks`; `actions` are those of all cars, tick by tick."""
    by_car = np.stack(actions, axis=1)  # (num_cars, num_ticks, 3)
    return [to_runs(by_car[car, : int(count)]) for car, count in enumerate(num_ticks)]


def record_overtaking(driver_on: DriverOn, protocol: Protocol, num_threads: int | None = None) -> list[Runs]:
    """What a driver does in every scenario."""
    recorders: list[RecordingDriver] = []

    def recorded(track: str) -> Driver:
        recorders.append(RecordingDriver(driver_on(track)))
        return recorders[-1]

    drive_against(recorded, protocol.scenarios, num_threads)
    drives: dict[int, Runs] = {}
    for one in recorders:
        by_car = np.stack(one.actions, axis=1)
        drives |= {int(row) // 2: to_runs(by_car[index]) for index, row in enumerate(one.rows)}
    return [drives[number] for number in range(len(protocol.scenarios))]
