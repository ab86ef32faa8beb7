"""Cars that drive the candidates of a search for a better driver, and what is known of their drives."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.evaluation.evaluate import STUCK_AFTER_S, STUCK_WITHIN_M, lap_lengths_m, start_cars
from hotlap.sim.policy_drive import DriveRules, begin_drives, drive_further
from hotlap.sim.policy_forward import PackedPolicy, make_memory
from hotlap.sim.vehicle import TICKS_PER_SECOND
from last_layer import Numbers

MAX_LAPS = 64  # in one drive
SETTLE_TICKS = 12 * TICKS_PER_SECOND  # not scored: what a start put the car in is over by then
LOOK_EVERY = TICKS_PER_SECOND  # whether a car has left the road; a new lap forgets it
TICKS_PER_CALL = 100_000


@dataclass(frozen=True)
class Drives:
    """How slow cars were, infinite for those that failed, and whether they stayed on the road and off the walls."""

    slowness: NDArray[np.float64]  # seconds of a flying lap, of a metre, or of a second of the guide
    is_clean: NDArray[np.bool_]


class Course:
    """Cars on some tracks, in as many parts as drive side by side on threads.

    They drive the rest of a lap and a flying one, which is scored; or, where `num_ticks` is not 0, so long once they
    have settled: long tracks take too long otherwise.
    """

    def __init__(
        self, driver: PackedDriver, tracks: Sequence[str], num_ticks: int, pool: ThreadPoolExecutor, num_parts: int = 1
    ) -> None:
        """Every thread of the pool has cars of its own; with several parts each candidate drives on several threads."""
        self._driver, self._num_ticks, self._pool = driver, num_ticks, pool
        num_parts = min(num_parts, len(tracks))
        self._parts = [
            slice(k * len(tracks) // num_parts, (k + 1) * len(tracks) // num_parts) for k in range(num_parts)
        ]
        self._fleets: list[SimpleQueue[Fleet]] = []
        for part in self._parts:
            fleets: SimpleQueue[Fleet] = SimpleQueue()
            for _ in range(-(-pool._max_workers // num_parts)):
                fleets.put(start_cars(driver, tracks[part], range(len(tracks[part])), "random"))
            self._fleets.append(fleets)

    def drive_all(self, candidates: Sequence[Numbers], seeds: NDArray[np.uint64]) -> list[Drives]:
        """Drive with the numbers of each candidate from the random starts of these seeds, the same for all."""
        jobs = [(numbers, part) for numbers in candidates for part in range(len(self._parts))]
        found = list(self._pool.map(lambda job: self._drive(job[0], job[1], seeds), jobs))
        size = len(self._parts)
        return [_joined(found[first : first + size]) for first in range(0, len(found), size)]

    def _drive(self, numbers: Numbers, part: int, seeds: NDArray[np.uint64]) -> Drives:
        fleet = self._fleets[part].get()
        try:
            fleet.seed(seeds[self._parts[part]])
            fleet.reset(start="random")
            packed = self._driver.packed._replace(numbers=numbers)
            return self._drive_ticks(fleet, packed) if self._num_ticks else self._drive_lap(fleet, packed)
        finally:
            self._fleets[part].put(fleet)

    def _rules(self, num_laps: int) -> DriveRules:
        return DriveRules(num_laps, self._driver.action_repeat, STUCK_AFTER_S * TICKS_PER_SECOND, STUCK_WITHIN_M)

    def _drive_lap(self, fleet: Fleet, packed: PackedPolicy) -> Drives:
        drives = begin_drives(fleet.batch, lap_lengths_m(fleet), 1)
        memory = make_memory(packed, fleet.num_cars)
        while drives.cars["is_running"].any():
            drive_further(packed, memory, self._rules(1), fleet.scenario, fleet.batch, drives, TICKS_PER_CALL)
        times_s = drives.lap_times_s[:, 0].astype(np.float64)
        return Drives(np.where(drives.lap_ticks[:, 0] > 0, times_s, np.inf), drives.lap_clean[:, 0])

    def _drive_ticks(self, fleet: Fleet, packed: PackedPolicy) -> Drives:
        drives = begin_drives(fleet.batch, lap_lengths_m(fleet), MAX_LAPS)
        memory = make_memory(packed, fleet.num_cars)

        def go_on(num_ticks: int) -> None:
            drive_further(packed, memory, self._rules(MAX_LAPS), fleet.scenario, fleet.batch, drives, num_ticks)

        go_on(SETTLE_TICKS)
        before = drives.cars.copy()
        ended = drives.lap_ticks > 0
        fleet.states["lap_spoiled"] = 0
        has_left = np.zeros(fleet.num_cars, np.bool_)
        for _ in range(0, self._num_ticks, LOOK_EVERY):
            go_on(LOOK_EVERY)
            has_left |= fleet.states["lap_spoiled"] > 0
        has_left |= ((drives.lap_ticks > 0) & ~ended & ~drives.lap_clean).any(axis=1)
        has_left |= drives.cars["num_contacts"] > before["num_contacts"]
        moved_m = np.maximum(drives.cars["distance_m"] - before["distance_m"], 1.0)
        return Drives(self._num_ticks / TICKS_PER_SECOND / moved_m, ~has_left)


def _joined(parts: Sequence[Drives]) -> Drives:
    return Drives(np.concatenate([part.slowness for part in parts]), np.concatenate([part.is_clean for part in parts]))
