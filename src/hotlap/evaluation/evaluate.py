"""Drive a fleet with a driver and measure its laps: the figures of `hotlap evaluate`."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver
from hotlap.envs.fleet import Fleet, suited_engine
from hotlap.envs.settings import LARGEST_COUNT, RacerSettings, start_code
from hotlap.errors import ConfigError
from hotlap.sim.rewards import START_RANDOM
from hotlap.sim.vehicle import TICKS_PER_SECOND

MAX_EPISODES = 100_000

# A car that does not get so much further along the track in so long goes nowhere, however busy it is.
STUCK_AFTER_S = 60
STUCK_WITHIN_M = 120.0

Progress = Callable[[float], None]


@dataclass(frozen=True)
class Evaluation:
    """How a driver did; a figure that does not exist is None. Times in seconds."""

    driver: str
    track: str
    start: str
    seed: int
    episodes: int
    laps: int
    completion_rate: float
    clean_lap_rate: float | None
    mean_lap_time_sec: float | None
    median_lap_time_sec: float | None
    best_lap_time_sec: float | None
    std_lap_time_sec: float | None
    standing_lap_time_sec: float | None
    gap_to_optimal: float | None
    wall_contacts_per_lap: float | None
    mean_reward: float

    def against(self, optimal_lap_s: float) -> "Evaluation":
        """The same, with the gap of the median clean flying lap to the track's optimal one."""
        if self.median_lap_time_sec is None:
            return self
        return replace(self, gap_to_optimal=self.median_lap_time_sec / optimal_lap_s - 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Plain figures for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Lap:
    """A completed lap of car `car`; number 1 begins at the line."""

    car: int
    number: int
    time_s: float
    is_clean: bool


class LapCounter:
    """Collects laps, returns and wall contacts while a fleet is driven."""

    def __init__(self, num_cars: int) -> None:
        self.laps: list[Lap] = []
        self.returns = np.zeros(num_cars)
        self.wall_contacts = 0
        self._touched = np.zeros(num_cars, np.bool_)

    def note(self, fleet: Fleet, running: NDArray[np.bool_]) -> None:
        """Take in the tick just driven, for the cars still running."""
        infos = fleet.batch.infos
        self.returns[running] += fleet.batch.rewards[running]
        touches = infos["wallContact"] & running
        self.wall_contacts += int(np.count_nonzero(touches & ~self._touched))
        self._touched = touches
        for car in np.flatnonzero(running & ~np.isnan(infos["lapTime"])):
            row = infos[car]
            self.laps.append(Lap(int(car), int(row["lap"]) - 1, float(row["lapTime"]), bool(row["lapClean"])))


def evaluate(
    driver: Driver,
    track_id: str,
    *,
    episodes: int,
    start: str = "line",
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Let `driver` do `episodes` episodes, each a standing (or, from a random start, a part) and then a flying lap."""
    if not 1 <= episodes <= MAX_EPISODES:
        raise ConfigError(f"episodes must be from 1 to {MAX_EPISODES}, got {episodes}.")
    laps_wanted = 1 if start_code(start) == START_RANDOM else 2
    fleet = measuring_fleet(track_id, episodes)
    fleet.seed(np.array([(seed + car) % 2**64 for car in range(episodes)], np.uint64))
    fleet.reset(start=start)
    driver.begin(fleet, seed)
    counter = drive(driver, fleet, laps_wanted, progress)
    task: dict[str, Any] = {
        "driver": driver.name,
        "track": track_id,
        "start": start,
        "seed": seed,
        "episodes": episodes,
    }
    return Evaluation(**task, **figures_of(counter, episodes, laps_wanted))


def drive(driver: Driver, fleet: Fleet, laps_wanted: int, progress: Progress | None = None) -> LapCounter:
    """Drive until every car has done its laps or is stuck."""
    counter = LapCounter(fleet.num_cars)
    running = np.ones(fleet.num_cars, np.bool_)
    headway = Headway(fleet)
    tick = 0
    while running.any():
        fleet.step(driver.act(fleet.batch.obs), autoreset=False)
        tick += 1
        counter.note(fleet, running)
        done = fleet.states["lap"] > laps_wanted
        running &= ~(done | fleet.batch.terminated | headway.is_lost(tick))
        if progress and tick % 30 == 0:
            progress(_share_done(fleet, running, laps_wanted))
    return counter


class Headway:
    """How far each car of a fleet has come along the track, and since when it has not come further."""

    def __init__(self, fleet: Fleet) -> None:
        self._states = fleet.states
        self._lap_m = np.array([track.nodes.length_m for track in fleet.tracks])[fleet.states["track"]]
        self._arc_m = fleet.states["arc_m"].astype(np.float64)
        self._way_m = np.zeros(fleet.num_cars)  # backwards counts against it, so circling comes to nothing
        self._mark_m, self._mark_tick = np.zeros(fleet.num_cars), np.zeros(fleet.num_cars, np.int64)

    def is_lost(self, tick: int) -> NDArray[np.bool_]:
        """Whether a car, now at this tick, has not come on for so long that it never will; to be asked every tick."""
        arc_m = self._states["arc_m"].astype(np.float64)
        half_m = 0.5 * self._lap_m
        self._way_m += (arc_m - self._arc_m + half_m) % self._lap_m - half_m
        self._arc_m = arc_m
        came_on = self._way_m >= self._mark_m + STUCK_WITHIN_M
        self._mark_m[came_on], self._mark_tick[came_on] = self._way_m[came_on], tick
        return tick - self._mark_tick > STUCK_AFTER_S * TICKS_PER_SECOND


def _share_done(fleet: Fleet, running: NDArray[np.bool_], laps_wanted: int) -> float:
    num_gates = int(fleet.settings.episode.num_gates)
    share = (fleet.states["lap"] - 1 + fleet.states["gate"] / num_gates) / laps_wanted
    return float(np.where(running, np.minimum(share, 1.0), 1.0).mean())


def measuring_fleet(track_id: str, num_cars: int) -> Fleet:
    """Cars under the default rules, with the time limit lifted."""
    defaults = RacerSettings()
    settings = replace(defaults, episode=replace(defaults.episode, max_steps=LARGEST_COUNT))
    return Fleet([track_id], settings, num_cars, suited_engine(num_cars))


def figures_of(counter: LapCounter, episodes: int, laps_wanted: int) -> dict[str, Any]:
    """What was measured; the lap numbered `laps_wanted` is the flying one."""
    flying = [lap for lap in counter.laps if lap.number == laps_wanted]
    standing_s = [lap.time_s for lap in counter.laps if lap.number < laps_wanted and lap.is_clean]
    clean_s = np.array([lap.time_s for lap in flying if lap.is_clean])
    num_laps = len(counter.laps)
    return {
        "laps": num_laps,
        "completion_rate": len(flying) / episodes,
        "clean_lap_rate": sum(lap.is_clean for lap in counter.laps) / num_laps if num_laps else None,
        "mean_lap_time_sec": float(clean_s.mean()) if len(clean_s) else None,
        "median_lap_time_sec": float(np.median(clean_s)) if len(clean_s) else None,
        "best_lap_time_sec": float(clean_s.min()) if len(clean_s) else None,
        "std_lap_time_sec": float(clean_s.std()) if len(clean_s) else None,
        "standing_lap_time_sec": float(np.mean(standing_s)) if standing_s else None,
        "gap_to_optimal": None,
        "wall_contacts_per_lap": counter.wall_contacts / num_laps if num_laps else None,
        "mean_reward": float(counter.returns.mean()),
    }
