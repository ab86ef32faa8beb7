"""`RaceFleet`: N races of C cars in the compiled simulator, on which the environments of races are built."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.config import Range, check_count, convert
from hotlap.envs.fleet import (
    MAX_CARS,
    MAX_MAGNITUDES,
    MIN_CARS_PER_THREAD,
    FleetState,
    check_indices,
    check_repeat,
    load_roads,
    needs_guide,
    read_columns,
    ribbons_of,
)
from hotlap.envs.race_defaults import DEFAULT_CARS, DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_infos import race_progress_m
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import SEE_GUIDE, ObservationName, num_observations
from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.sim.batch_cpu import default_threads
from hotlap.sim.engine import ALL_FINE, Races, Scenario
from hotlap.sim.race import (
    DRAWN_SLOT,
    ENTRANT_DTYPE,
    FINISHED,
    MAX_CARS_PER_RACE,
    RACING,
    RETIRED,
    START_GRID,
    START_ROLLING,
    make_field,
    race_rules,
)
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.rewards import START_ON_LINE, START_RANDOM
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import TICKS_PER_SECOND, car_record
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.registry import Track

CARS_PER_RACE, LAPS = Range(1, MAX_CARS_PER_RACE), Range(1, 1000)
_START_CODES: dict[RaceStart, int] = {"grid": START_GRID, "rolling": START_ROLLING}
# A car alone starts as it does without a race.
_CAR_STARTS: dict[RaceStart, int] = {"grid": START_ON_LINE, "rolling": START_RANDOM}

# The time limit of a race: that of cars which drive at this speed, and a minute.
SLOWEST_MPS = 8.0
EXTRA_S = 60.0

_RACE_COLUMN = "race_"  # before the names of the entrants' columns in a saved state
MAX_RACE_MAGNITUDES = {
    "arc_m": 1e6,
    "from_arc_m": 1e6,
    "moved_m": 1e4,
    "laps_done": 1e6,
    "contact_mps": 1e4,
    "slipstream": 1.0,
}


class RaceFleet:
    """Races of `cars_per_race` cars. Race r drives track r modulo the number of tracks, each given or named.

    Car c of race r is row r * cars_per_race + c of every array. `field` has the cars' parts in their races.
    """

    def __init__(
        self,
        tracks: Sequence[str | Track],
        settings: RacerSettings,
        num_races: int = 1,
        cars_per_race: int = DEFAULT_CARS,
        laps: int = DEFAULT_LAPS,
        start: RaceStart = DEFAULT_START,
        num_threads: int | None = None,
        observation: ObservationName = "race",
    ) -> None:
        check_count("num_cars", cars_per_race, CARS_PER_RACE)
        check_count("num_races", num_races, Range(1, MAX_CARS // cars_per_race))
        check_count("laps", laps, LAPS)
        if not settings.domain.is_standard:
            raise ConfigError(
                f"domain: the cars of a race are all the standard car, got {settings.domain}. Leave it out."
            )
        self.start: RaceStart = convert(RaceStart, start, "start")
        self.settings, self.laps = settings, laps
        self.num_races, self.cars_per_race, self.num_cars = num_races, cars_per_race, num_races * cars_per_race
        self.tracks, roads = load_roads(tracks, num_races)
        self.batch = make_batch(self.num_cars, num_observations(observation))
        self.batch.states["track"] = np.repeat(roads, cars_per_race)
        self.field = make_field(self.num_cars)
        ribbons = ribbons_of(self.tracks, needs_guide(observation, settings))
        self.scenario = Scenario(ribbons, car_record(), settings.rules())
        self.scenario.rules["start"] = _CAR_STARTS[self.start]
        longest_m = max(track.nodes.length_m for track in self.tracks)
        limit_ticks = int((laps * longest_m / SLOWEST_MPS + EXTRA_S) * TICKS_PER_SECOND)
        self.race_rules = race_rules(cars_per_race, laps, _START_CODES[self.start], limit_ticks)
        busy = max(1, self.num_cars // MIN_CARS_PER_THREAD)
        self._engine = CpuRaceEngine(num_threads or min(default_threads(), num_races, busy))
        self._all_races = np.ones(num_races, np.bool_)
        self._sees_guide = observation in SEE_GUIDE
        self._other_obs: NDArray[np.float32] | None = None  # for drivers that see the other version of the road

    @property
    def _races(self) -> Races:
        return Races(self.scenario, self.race_rules, self.batch, self.field)

    @property
    def states(self) -> NDArray[np.void]:
        """The cars' states, one record each (`hotlap.sim.world.STATE_DTYPE`)."""
        return self.batch.states

    @property
    def entrants(self) -> NDArray[np.void]:
        """The cars' parts in their races (`hotlap.sim.race.ENTRANT_DTYPE`)."""
        return self.field.entrants

    @property
    def top_speed_mps(self) -> float:
        """The car's top speed."""
        return float(self.scenario.cars["top_speed_mps"][0])

    @property
    def lap_lengths_m(self) -> NDArray[np.float32]:
        """The length of each car's lap."""
        lengths_m: NDArray[np.float32] = self.scenario.ribbons.tracks["length_m"][self.states["track"]]
        return lengths_m

    @property
    def progress_m(self) -> NDArray[np.float64]:
        """How far each car is from the line, laps included; negative behind it on the grid."""
        return race_progress_m(self.entrants, self.lap_lengths_m)

    def seed(self, seeds: NDArray[np.uint64]) -> None:
        """Give every race its seed, one each, and restart its count of episodes at zero."""
        self.states["seed"] = np.repeat(seeds, self.cars_per_race)
        self.states["episode"] = 0

    def next_episode(self) -> None:
        """Advance every race to its next random numbers."""
        episodes = self.states["episode"]
        episodes += 1

    def reset(self, grid: Sequence[int] | None = None, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin the races in `mask` (default: all); `grid` has the cars of every race from the first slot to the last.

        Without it the order of each grid is drawn from the seed of the race.
        """
        if grid is not None:
            slots = np.argsort(check_grid(grid, self.cars_per_race)).astype(np.int32)
            self.entrants["slot"] = np.tile(slots, self.num_races)
        chosen = self._all_races if mask is None else mask
        self._engine.reset(chosen, self._races)

    def step(self, actions: NDArray[np.float32], autoreset: bool, repeat: int = 1) -> NDArray[np.bool_]:
        """One step of up to `repeat` ticks with one action per car; which cars finished in it.

        The results are in `batch` and `field`.
        """
        check_repeat(repeat)
        was_finished = self.entrants["status"] == FINISHED
        bad = self._engine.step(actions, self._races, autoreset=autoreset, repeat=repeat)
        if bad != ALL_FINE:
            race, car = divmod(bad, self.cars_per_race)
            where = f"car_{car}" if self.num_races == 1 else f"car_{car} of race {race}"
            raise ActionError(f"action of {where} must be finite, got {actions[bad].tolist()}; nothing moved.")
        has_ended = (self.batch.terminated | self.batch.truncated) & autoreset
        entrants = np.where(has_ended, self.field.final_entrants["status"], self.entrants["status"])
        has_finished: NDArray[np.bool_] = (entrants == FINISHED) & ~was_finished
        return has_finished

    def add_guide(self) -> None:
        """Give the roads their guides, for drivers that see them."""
        self.scenario = self.scenario._replace(ribbons=ribbons_of(self.tracks, has_guide=True))

    def shows(self, observation: ObservationName) -> bool:
        """Whether the fleet's own observations begin with the columns of this one."""
        return observation == "rays" or (observation in SEE_GUIDE) == self._sees_guide

    @property
    def other_observation(self) -> ObservationName:
        """The one with the other version of the road."""
        return "race" if self._sees_guide else "race-2"

    def see(self, observation: ObservationName) -> NDArray[np.float32]:
        """What the cars see now, in rows that begin with the columns of this observation."""
        if self.shows(observation):
            return self.batch.obs
        if self._other_obs is None:
            self._other_obs = np.zeros((self.num_cars, num_observations(self.other_observation)), np.float32)
            self.add_guide()
        self._engine.observe(self._races._replace(batch=self.batch._replace(obs=self._other_obs)))
        return self._other_obs

    def get_state(self) -> FleetState:
        """A copy of the complete state, one array per column; `set_state` continues from it bit-identically."""
        cars = {name: self.states[name].copy() for name in STATE_DTYPE.names or ()}
        return cars | {_RACE_COLUMN + name: self.entrants[name].copy() for name in ENTRANT_DTYPE.names or ()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; StateError, with nothing changed, if it does not fit these cars and tracks."""
        if not isinstance(state, Mapping) or not all(isinstance(name, str) for name in state):
            raise StateError("state: it must be a dict of columns. Save it with get_state().")
        parts: dict[bool, dict[str, Any]] = {True: {}, False: {}}
        for name, column in state.items():
            parts[name.startswith(_RACE_COLUMN)][name.removeprefix(_RACE_COLUMN)] = column
        cars = read_columns(parts[False], STATE_DTYPE, self.num_cars, MAX_MAGNITUDES)
        entrants = read_columns(parts[True], ENTRANT_DTYPE, self.num_cars, MAX_RACE_MAGNITUDES)
        check_indices(cars, self.scenario)
        _check_entrants(entrants, self.cars_per_race)
        self.states[:], self.entrants[:] = cars, entrants
        self._engine.observe(self._races)


def _check_entrants(entrants: NDArray[np.void], cars_per_race: int) -> None:
    """Refuse what no car in a race can have."""
    if not np.isin(entrants["status"], (RACING, FINISHED, RETIRED)).all():
        raise StateError(f"state: column 'race_status' must be {RACING}, {FINISHED} or {RETIRED}.")
    if not ((entrants["slot"] >= DRAWN_SLOT) & (entrants["slot"] < cars_per_race)).all():
        raise StateError(f"state: column 'race_slot' must be from {DRAWN_SLOT} to {cars_per_race - 1}.")
    if (entrants["tick"] < 0).any():
        raise StateError("state: column 'race_tick' must not be negative.")
    if not np.isfinite(entrants["race_time_s"][entrants["status"] == FINISHED]).all():
        raise StateError("state: column 'race_race_time_s' must be finite for every car that has finished.")


def check_grid(grid: object, num_cars: int) -> NDArray[np.integer[Any]]:
    """The order of a grid as an array; ConfigError unless it names every car once."""
    numbers = list(grid) if isinstance(grid, list | tuple | range | np.ndarray) else None
    is_whole = numbers is not None and all(isinstance(one, int | np.integer) for one in numbers)
    if numbers is None or not is_whole or sorted(numbers) != list(range(num_cars)):
        raise ConfigError(f"grid: must name each car from 0 to {num_cars - 1} once, got {grid!r:.80}.")
    return np.array(numbers)
