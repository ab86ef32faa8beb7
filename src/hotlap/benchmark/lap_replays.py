"""Recorded drives, many at once and on several threads: the laps they drive, to the bit."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.benchmark.actions import RUN_DTYPE, Runs
from hotlap.benchmark.protocol import START, TrackStarts, check_road
from hotlap.benchmark.replay_kernels import replay_cars
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.evaluate import STUCK_AFTER_S, STUCK_WITHIN_M, lap_lengths_m, make_evaluation_fleet
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.policy_drive import DriveRules, Drives, begin_drives
from hotlap.sim.vehicle import TICKS_PER_SECOND

_CARS_PER_TASK = 16  # drives differ in length: small tasks keep all threads busy
NUM_LAPS = 1  # after a random start: the rest of a lap, then the flying one that counts
EVALUATION_RULES = DriveRules(NUM_LAPS, 1, STUCK_AFTER_S * TICKS_PER_SECOND, STUCK_WITHIN_M)


@dataclass(frozen=True)
class LapOutcomes:
    """The flying lap of each start of a track."""

    times_s: NDArray[np.float32]  # NaN where none was completed
    is_clean: NDArray[np.bool_]
    num_ticks: NDArray[np.int32]  # that were driven
    ticks_left: NDArray[np.int64]  # that were recorded, but not driven, since the drive was over

    @property
    def is_completed(self) -> NDArray[np.bool_]:
        """Which starts have a flying lap."""
        return ~np.isnan(self.times_s)


def place_on_starts(starts: TrackStarts) -> Fleet:
    """Cars at the starts of a track."""
    check_road(starts)
    fleet = make_evaluation_fleet(starts.track_id, len(starts.seeds))
    fleet.seed(np.array(starts.seeds, np.uint64))
    fleet.reset(start=START)
    return fleet


def replay_laps(starts: TrackStarts, drives: Sequence[Runs], num_threads: int | None = None) -> LapOutcomes:
    """What recorded drives give, one for each start. The number of threads changes no bit."""
    found, ticks_left = replay_fleet(place_on_starts(starts), drives, EVALUATION_RULES, num_threads)
    has_lap = found.lap_ticks[:, 0] > 0
    times_s = np.where(has_lap, found.lap_times_s[:, 0], np.float32(np.nan)).astype(np.float32)
    return LapOutcomes(times_s, found.lap_clean[:, 0] & has_lap, found.cars["tick"].copy(), ticks_left)


def replay_fleet(
    fleet: Fleet, drives: Sequence[Runs], rules: DriveRules, num_threads: int | None = None
) -> tuple[Drives, NDArray[np.int64]]:
    """Drive cars that were just reset by recorded runs; their laps, and the ticks that each did not drive."""
    runs = np.concatenate([*drives, np.zeros(0, RUN_DTYPE)])
    firsts = np.cumsum([0, *(len(one) for one in drives)])
    counted = begin_drives(fleet.batch, lap_lengths_m(fleet), rules.num_laps)
    actions, ticks_left = np.zeros((fleet.num_cars, 3), np.float32), np.zeros(fleet.num_cars, np.int64)

    def work(begin: int) -> None:
        end = min(begin + _CARS_PER_TASK, fleet.num_cars)
        replay_cars(begin, end, runs, firsts, actions, rules, *fleet.scenario, fleet.batch, counted, ticks_left)

    with ThreadPoolExecutor(num_threads or default_threads()) as pool:
        list(pool.map(work, range(0, fleet.num_cars, _CARS_PER_TASK)))
    return counted, ticks_left
