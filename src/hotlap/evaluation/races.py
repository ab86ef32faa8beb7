"""Drive races between drivers and count what happens: positions, contacts, faults, overtakes, laps."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.driver import Driver, observation_of
from hotlap.envs.race_defaults import DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import CARS_PER_RACE, RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, ConfigError
from hotlap.evaluation.evaluate import PolicyDriver
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.sim.race import FAULT_MPS, FINISHED, MAX_CARS_PER_RACE
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.registry import Track

OnProgress = Callable[[float], None]
OnStep = Callable[[RaceFleet, "NDArray[np.float32] | None"], None]  # the actions of the step; None at the start

# Two cars that keep touching are one contact until they were apart for this long.
CONTACT_PAUSE_S = 0.5
# An overtake is clean without a contact between the two within this time before and after it.
CLEAN_S = 2.0
HARD_MPS = 4.0

_NEVER = -(10**9)


@dataclass(frozen=True)
class Entry:
    """A driver of one car or more in a race."""

    label: str
    driver: Driver
    num_cars: int = 1
    max_throttle: float = 1.0


@dataclass(frozen=True)
class RaceCounts:
    """What happened in `num_races` races of C cars; every array is (num_races, C), in the order of the entries."""

    positions: NDArray[np.int32]
    has_finished: NDArray[np.bool_]
    race_times_s: NDArray[np.float32]  # NaN of cars that did not finish
    distances_m: NDArray[np.float64]
    contacts: NDArray[np.int64]
    faults: NDArray[np.int64]
    hard_faults: NDArray[np.int64]  # faults that closed in at more than HARD_MPS
    overtakes: NDArray[np.int64]
    clean_overtakes: NDArray[np.int64]
    best_laps_s: NDArray[np.float64]  # the best clean lap; infinity without one
    slots: NDArray[np.int64]  # where the cars started
    repeat: int  # ticks of a step


class DrivenCars:
    """The cars that one driver has in all races, as drivers read a fleet; `race_fleet` has the others too."""

    def __init__(self, fleet: RaceFleet, rows: NDArray[np.int64]) -> None:
        self.race_fleet, self.rows = fleet, rows
        self.num_cars, self.tracks, self.settings = len(rows), fleet.tracks, fleet.settings

    @property
    def states(self) -> NDArray[np.void]:
        """A copy of the cars' states."""
        return self.race_fleet.states[self.rows]


class RaceCounter:
    """Counts contacts, overtakes and laps, step by step."""

    def __init__(self, fleet: RaceFleet) -> None:
        shape = (fleet.num_races, fleet.cars_per_race)
        pairs = (*shape, fleet.cars_per_race)
        self._fleet, self._shape = fleet, shape
        self._tick = 0
        self._last_contact = np.full(pairs, _NEVER)
        self._last_pass = np.full(pairs, _NEVER)  # that may still become clean
        self.contacts, self.faults, self.hard_faults = (np.zeros(shape, np.int64) for _ in range(3))
        self.overtakes, self.clean_overtakes = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.best_laps_s = np.full(shape, np.inf)
        self._from_m = fleet.progress_m

    def add_step(self, num_ticks: int) -> None:
        """Add the step that was just driven."""
        self._tick += num_ticks
        entrants, infos = self._fleet.entrants.reshape(self._shape), self._fleet.batch.infos.reshape(self._shape)
        self._add_contacts(entrants)
        self._add_passes(entrants)
        is_lap = (infos["lapTime"] == infos["lapTime"]) & infos["lapClean"]
        if is_lap.any():
            times_s = np.where(is_lap, infos["lapTime"], np.inf)
            np.minimum(self.best_laps_s, times_s, out=self.best_laps_s)

    def _add_contacts(self, entrants: NDArray[np.void]) -> None:
        for race, car in np.argwhere(entrants["touched"] != 0):
            entrant = entrants[race, car]
            others = _cars_in(entrant["touched"], self._shape[1])
            last = self._last_contact[race, car, others]
            if (self._tick - last > CONTACT_PAUSE_S * TICKS_PER_SECOND).any() and entrant["contact_mps"] > FAULT_MPS:
                self.contacts[race, car] += 1
                self.faults[race, car] += entrant["at_fault"]
                self.hard_faults[race, car] += entrant["at_fault"] and entrant["contact_mps"] > HARD_MPS
            for other in others:
                self._last_contact[race, car, other] = self._tick
                # Whoever passed the other a moment ago did not pass cleanly.
                for one, two in ((car, other), (other, car)):
                    if self._tick - self._last_pass[race, one, two] <= CLEAN_S * TICKS_PER_SECOND:
                        self._last_pass[race, one, two] = _NEVER

    def _add_passes(self, entrants: NDArray[np.void]) -> None:
        self.overtakes += entrants["overtakes"]
        for race, car in np.argwhere(entrants["passed"] != 0):
            for other in _cars_in(entrants[race, car]["passed"], self._shape[1]):
                self._settle_pass(race, car, other)
                last = max(self._last_contact[race, car, other], self._last_contact[race, other, car])
                is_open = self._tick - last > CLEAN_S * TICKS_PER_SECOND
                self._last_pass[race, car, other] = self._tick if is_open else _NEVER

    def _settle_pass(self, race: int, car: int, other: int) -> None:
        if self._last_pass[race, car, other] != _NEVER:
            self.clean_overtakes[race, car] += 1

    def finish(self, slots: NDArray[np.int64], repeat: int = 1) -> RaceCounts:
        """The counts of races that are over."""
        entrants = self._fleet.entrants.reshape(self._shape)
        clean = self.clean_overtakes + (self._last_pass != _NEVER).sum(axis=2)
        return RaceCounts(
            positions=entrants["position"].copy(),
            has_finished=entrants["status"] == FINISHED,
            race_times_s=entrants["race_time_s"].copy(),
            distances_m=(self._fleet.progress_m - self._from_m).reshape(self._shape),
            contacts=self.contacts,
            faults=self.faults,
            hard_faults=self.hard_faults,
            overtakes=self.overtakes,
            clean_overtakes=clean,
            best_laps_s=self.best_laps_s,
            slots=slots,
            repeat=repeat,
        )


def _cars_in(mask: np.integer, num_cars: int) -> list[int]:
    return [car for car in range(num_cars) if int(mask) >> car & 1]


def check_entries(entries: Sequence[Entry]) -> int:
    """The number of cars of a race; ConfigError if there are none or too many."""
    num_cars = sum(entry.num_cars for entry in entries)
    if num_cars not in CARS_PER_RACE:
        raise ConfigError(f"a race has from 1 to {MAX_CARS_PER_RACE} cars, got {num_cars}.")
    return num_cars


def turn_grids(num_races: int, num_cars: int, seed: int) -> NDArray[np.int64]:
    """The slot of each car in each race: an order is drawn and turned by one slot a race, until all slots were had.

    Then the next order is drawn. So every car starts equally often from every slot.
    """
    rng = np.random.default_rng(seed % 2**64)
    num_orders = -(-num_races // num_cars)
    orders = np.stack([rng.permutation(num_cars) for _ in range(num_orders)])
    turned = (orders[:, None, :] + np.arange(num_cars)[None, :, None]) % num_cars
    return turned.reshape(-1, num_cars)[:num_races].astype(np.int64)


class Pilot:
    """Drives the cars of one entry: a policy by compiled code in several threads, any other driver as it is."""

    def __init__(self, entry: Entry, fleet: RaceFleet, rows: NDArray[np.int64], seed: int, num_threads: int) -> None:
        self._entry, self._fleet, self._rows = entry, fleet, rows
        driver = entry.driver
        self._policy = driver if isinstance(driver, PolicyDriver) else None
        self.action_repeat = self._policy.action_repeat if self._policy else 1
        if self._policy:
            parts = np.array_split(rows, min(num_threads, len(rows)))
            self._parts = [(part, make_memory(self._policy.packed, len(part))) for part in parts]
        else:
            driver.begin(DrivenCars(fleet, rows), seed)  # type: ignore[arg-type]

    def act(self, actions: NDArray[np.float32], pool: ThreadPoolExecutor) -> None:
        """Fill the actions of the entry's cars."""
        obs = self._fleet.see(observation_of(self._entry.driver))
        if self._policy:
            packed = self._policy.packed
            list(pool.map(lambda part: decide_cars(packed, obs[part[0]], part[1]), self._parts))
            for rows, memory in self._parts:
                actions[rows] = memory.actions
        else:
            actions[self._rows] = self._entry.driver.act(obs[self._rows])
        chosen = actions[self._rows]
        if not np.isfinite(chosen).all():
            raise ActionError(f"{self._entry.label}: an action is not finite. Use another driver.")
        if self._entry.max_throttle < 1.0:
            actions[self._rows, 1] = np.minimum(chosen[:, 1], self._entry.max_throttle)


def race(
    entries: Sequence[Entry],
    track: str | Track,
    *,
    laps: int = DEFAULT_LAPS,
    num_races: int = 1,
    start: RaceStart = DEFAULT_START,
    seed: int = 0,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
    on_step: OnStep | None = None,
    is_every_tick_shown: bool = False,
) -> RaceCounts:
    """Drive `num_races` races at once until each is over. The results do not depend on the number of threads.

    `on_step` is called with the fleet and the actions of the step, at the start and after each step. A step lasts as
    long as all drivers keep their actions, or a tick.
    """
    num_cars, threads = check_entries(entries), num_threads or default_threads()
    fleet = RaceFleet([track], RacerSettings(), num_races, num_cars, laps, start, num_threads)
    fleet.seed(np.array([(seed + number) % 2**64 for number in range(num_races)], np.uint64))
    slots = turn_grids(num_races, num_cars, seed)
    fleet.entrants["slot"] = slots.reshape(-1)
    fleet.reset()
    rows = np.arange(fleet.num_cars).reshape(num_races, num_cars)
    owned = np.split(rows, np.cumsum([entry.num_cars for entry in entries])[:-1], axis=1)
    pilots = [Pilot(entry, fleet, part.reshape(-1), seed, threads) for entry, part in zip(entries, owned, strict=True)]
    repeat, counter, actions = (
        1 if is_every_tick_shown else gcd(*(one.action_repeat for one in pilots)),
        RaceCounter(fleet),
        np.zeros((fleet.num_cars, 3), np.float32),
    )
    if on_step:
        on_step(fleet, None)
    tick = 0
    with ThreadPoolExecutor(threads) as pool:
        while not fleet.entrants["is_over"].all():
            for pilot in pilots:
                if tick % pilot.action_repeat == 0:
                    pilot.act(actions, pool)
            fleet.step(actions, autoreset=False, repeat=repeat)
            tick += repeat
            counter.add_step(repeat)
            if on_step:
                on_step(fleet, actions)
            if progress and tick % TICKS_PER_SECOND == 0:
                progress(_fraction_done(fleet))
    return counter.finish(slots, repeat)


def _fraction_done(fleet: RaceFleet) -> float:
    """How much of all races was driven, by the leaders."""
    shape = (fleet.num_races, fleet.cars_per_race)
    parts = (fleet.progress_m / fleet.lap_lengths_m).reshape(shape).max(axis=1) / fleet.laps
    is_over = fleet.entrants["is_over"].reshape(shape)[:, 0] != 0
    return float(np.where(is_over, 1.0, np.clip(parts, 0.0, 1.0)).mean())
