"""Episodes of a dataset: drives recorded tick by tick, in one pass for many cars."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.datasets.optimal_pace import OptimalPace
from hotlap.drivers.casual import SmoothNoise
from hotlap.drivers.driver import Driver, observation_of
from hotlap.envs.fleet import Fleet, make_engine
from hotlap.envs.settings import MAX_COUNT, RacerSettings, StartName
from hotlap.envs.spaces import ObservationName, action_space
from hotlap.evaluation.evaluate import OnProgress, StuckDetector
from hotlap.tracks.registry import Track

Columns = dict[str, NDArray[Any]]

# Recorded from the simulator's infos; some have no meaning on a reset.
SIMULATOR_INFOS = ("lap", "tick", "rawSpeed", "wallContact", "lapTime", "lapClean")
_AT_RESET: dict[str, Any] = {"wallContact": False, "lapTime": np.nan, "lapClean": False}
# Of the optimal lap; NaN where the track's is not known.
OPTIMUM_INFOS = ("optimalTimeToGo", "gap")

# What the driver asked for at this observation, before noise; the last row repeats the one before.
DRIVER_ACTION = "driverAction"
NOISE_MEMORY_S = 0.3
_NOISE_CHANNELS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, -1.0]])  # steer; throttle against brake

# The rules of an episode: the default ones without time limits, as on the page.
EPISODE_CONFIG = {"episode": {"maxSteps": MAX_COUNT, "stillnessTimeoutTicks": MAX_COUNT}}


@dataclass(frozen=True)
class DriveTask:
    """What the cars of one recording share. `laps` of 0 means: until the driver's inputs end."""

    track: Track
    start: StartName
    laps: int
    observation: ObservationName
    pace: OptimalPace | None = None
    noise: float = 0.0  # standard deviation of what is added to the driver's actions


@dataclass(frozen=True, eq=False)
class DatasetEpisode:
    """One drive. `observations` and `infos` have one row more than `actions`: the first is that of the reset."""

    driver: str
    track: Track
    seed: int
    start: StartName
    action_repeat: int
    observations: NDArray[np.float32]
    actions: NDArray[np.float32]
    rewards: NDArray[np.float32]
    infos: Columns
    ended_by: str  # "laps", "stuck" or "inputs"

    @property
    def num_steps(self) -> int:
        """The number of ticks."""
        return len(self.actions)

    @property
    def num_laps(self) -> int:
        """The number of completed laps that count: they began at the line."""
        return int(np.isfinite(self.infos["lapTime"]).sum())


class InputDriver:
    """Drives one car with the inputs of a replay or of a recorded episode."""

    def __init__(self, name: str, actions: NDArray[np.float32]) -> None:
        self.name, self.actions = name, actions
        self._tick = 0

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Begin with the first input."""
        self._tick = 0

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """The next input."""
        self._tick += 1
        return self.actions[self._tick - 1 : self._tick]


def record_episodes(
    driver: Driver, task: DriveTask, seeds: Sequence[int], progress: OnProgress | None = None
) -> list[DatasetEpisode]:
    """Drive one car for each seed and record it until its laps are completed or it is stuck."""
    cars = _Cars(driver, task, seeds)
    num_inputs = len(driver.actions) if isinstance(driver, InputDriver) else MAX_COUNT
    stuck, tick = StuckDetector(cars.fleet), 0
    running = np.ones(len(seeds), np.bool_)
    ended_by = np.full(len(seeds), "inputs", object)
    while running.any() and tick < num_inputs:
        cars.step()
        tick += 1
        cars.num_ticks[running] = tick
        is_done = running & (cars.fleet.states["lap"] > task.laps) if task.laps else np.zeros_like(running)
        is_stuck = running & ~is_done & stuck.is_stuck(tick) if task.laps else np.zeros_like(running)
        ended_by[is_done], ended_by[is_stuck] = "laps", "stuck"
        running &= ~(is_done | is_stuck)
        if progress and tick % 30 == 0:
            progress(1.0 - running.mean())
    columns = cars.columns()
    return [cars.episode(columns, car, seed, str(ended_by[car])) for car, seed in enumerate(seeds)]


class _Cars:
    """The cars that are driven, those that are observed where the observation is another one, and their rows."""

    def __init__(self, driver: Driver, task: DriveTask, seeds: Sequence[int]) -> None:
        self._driver, self._task = driver, task
        own = observation_of(driver)
        self.fleet = _make_fleet(task, seeds, own)
        self._seen = self.fleet if own == task.observation else _make_fleet(task, seeds, task.observation)
        self.num_ticks = np.zeros(len(seeds), np.int64)
        self._bounds = action_space()
        self._noise = SmoothNoise(len(seeds), seeds[0], NOISE_MEMORY_S) if task.noise else None
        self._rows: list[Columns] = []
        self._add_row()
        for name, value in _AT_RESET.items():
            self._rows[0]["infos"][name] = value
        driver.begin(self.fleet, seeds[0])

    def step(self) -> None:
        """Drive one tick and record it."""
        asked = actions = np.asarray(self._driver.act(self.fleet.batch.obs), np.float32)
        if self._noise:
            noise = self._task.noise * self._noise.next() @ _NOISE_CHANNELS
            actions = (self._clip(asked) + noise).astype(np.float32)  # the simulator clips what is out of bounds
        self._rows[-1] |= {"actions": actions, DRIVER_ACTION: asked}
        self.fleet.step(actions, autoreset=False)
        if self._seen is not self.fleet:
            self._seen.step(actions, autoreset=False)
        self._add_row()

    def _clip(self, actions: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Actions within their bounds, as the simulator takes them."""
        clipped: NDArray[np.float32] = np.clip(actions, self._bounds.low, self._bounds.high).astype(np.float32)
        return clipped

    def _add_row(self) -> None:
        batch = self._seen.batch
        row = {"observations": batch.obs.copy(), "rewards": batch.rewards.copy(), "infos": batch.infos.copy()}
        self._rows.append(row | {"arc_m": self._seen.states["arc_m"].copy()})

    def columns(self) -> Columns:
        """What was recorded of all cars, (num_ticks + 1, num_cars, …); no action follows the last row."""
        self._rows[-1] |= {name: np.zeros_like(self._rows[0][name]) for name in ("actions", DRIVER_ACTION)}
        columns = {name: np.stack([row[name] for row in self._rows]) for name in self._rows[0]}
        infos = columns.pop("infos")
        for name in ("actions", DRIVER_ACTION):
            columns[name] = self._clip(columns[name])
        return columns | {name: infos[name] for name in SIMULATOR_INFOS}

    def episode(self, columns: Columns, car: int, seed: int, ended_by: str) -> DatasetEpisode:
        """What was recorded of one car."""
        num_ticks = int(self.num_ticks[car])

        def column(name: str, first: int, last: int) -> NDArray[Any]:
            return np.ascontiguousarray(columns[name][first:last, car])

        infos = {name: column(name, 0, num_ticks + 1) for name in SIMULATOR_INFOS}
        asked = column(DRIVER_ACTION, 0, num_ticks)
        infos[DRIVER_ACTION] = np.concatenate([asked, asked[-1:]])
        return DatasetEpisode(
            driver=self._driver.name,
            track=self._task.track,
            seed=seed,
            start=self._task.start,
            action_repeat=getattr(self._driver, "action_repeat", 1),
            observations=column("observations", 0, num_ticks + 1),
            actions=column("actions", 0, num_ticks),
            rewards=column("rewards", 1, num_ticks + 1),
            infos=infos | _optimum_infos(self._task.pace, column("arc_m", 0, num_ticks + 1).astype(np.float64)),
            ended_by=ended_by,
        )


def _optimum_infos(pace: OptimalPace | None, arc_m: NDArray[np.float64]) -> Columns:
    if pace is None:
        return {name: np.full(len(arc_m), np.nan) for name in OPTIMUM_INFOS}
    return dict(zip(OPTIMUM_INFOS, (pace.time_to_go_s(arc_m), pace.gap_s(arc_m)), strict=True))


def _make_fleet(task: DriveTask, seeds: Sequence[int], observation: ObservationName) -> Fleet:
    settings = RacerSettings.load(EPISODE_CONFIG)
    settings = replace(settings, episode=replace(settings.episode, start=task.start))
    fleet = Fleet([task.track], settings, len(seeds), make_engine(len(seeds)), observation)
    fleet.seed(np.array([seed % 2**64 for seed in seeds], np.uint64))
    fleet.reset(start=task.start)
    return fleet
