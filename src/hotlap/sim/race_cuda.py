"""`race_step.py` over N races on a GPU, with the CPU's bits: one thread per car, and a block holds whole races.

All cars of a race end a phase before any begins the next, so there is a barrier between phases. Every thread of a block
must reach every barrier: one without a car, or of a race that is over, waits at them and does nothing.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, types
from numpy.typing import NDArray

from hotlap.sim.batch_cuda import (
    NO_BAD_CAR,
    THREADS_PER_BLOCK,
    CudaBatch,
    array_type,
    batch_type,
    ribbons_type,
    split_thread,
)
from hotlap.sim.compilation import kernel
from hotlap.sim.contact import POSE_DTYPE
from hotlap.sim.cuda_compilation import exact_kernel
from hotlap.sim.engine import ALL_FINE, Races, Scenario
from hotlap.sim.opponent_view import NUM_OPPONENTS
from hotlap.sim.race import ENTRANT_DTYPE, RACE_RULES_DTYPE, Field, make_field, show
from hotlap.sim.race_step import (
    NUM_RACE_OBSERVATIONS,
    begin_step,
    drive_phase,
    end_step,
    has_opponents,
    keep_end,
    rank_phase,
    restart,
    see_one_opponent,
    settle_phase,
    touch_phase,
)
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.vehicle import CAR_DTYPE
from hotlap.sim.world import observe_motion

RACE_THREADS = 256  # a block; with 64 a step of eight cars took 1.30 ms instead of 1.12 on an H200


@kernel
def race_of(thread, race):
    """The car of a thread, the first car of its race, and the one after the last. In 32 bits, which a GPU prefers."""
    car, num_cars = np.int32(thread), np.int32(race[0].num_cars)
    first = np.int32(car - car % num_cars)
    return car, first, np.int32(first + num_cars)


@kernel
def is_over(i, field):
    """Whether the race of car i is over, as its last tick found."""
    return field.entrants[i].is_over != 0


@kernel
def show_car(i, ribbons, batch, field):
    """Show car i to the others as its state is now."""
    show(batch.states[i], field.entrants[i], field.poses[i], ribbons[0], ribbons[1])


def _drive(actions, ribbons, cars, rules, race, batch, field, bad_car, autoreset, repeat):
    i, first, last = race_of(cuda.grid(1), race)
    has_car = i < actions.shape[0] and bad_car[0] == NO_BAD_CAR
    if has_car:
        begin_step(i, batch, field)
    moves = has_car and not is_over(i, field)
    for tick in range(repeat):
        if moves:
            drive_phase(i, actions, ribbons, cars, batch, field)
        cuda.syncthreads()
        if moves:
            touch_phase(i, first, last, ribbons, batch, field)
        cuda.syncthreads()
        if moves:
            settle_phase(i, first, last, ribbons, cars, rules, race, batch, field, tick == 0)
        cuda.syncthreads()
        if moves:
            rank_phase(i, first, last, race, field)
            moves = not is_over(i, field)
        cuda.syncthreads()
    if has_car:
        end_step(i, ribbons, race, batch, field)
    cuda.syncthreads()
    begins_anew = autoreset and has_car and not moves
    if begins_anew:
        keep_end(i, first, last, ribbons, cars, batch, field)
    cuda.syncthreads()
    if begins_anew:
        restart(i, first, ribbons, rules, race, batch, field)
    cuda.syncthreads()
    if begins_anew:
        rank_phase(i, first, last, race, field)
    if has_car:
        observe_motion(batch.states[i], ribbons[0], cars, batch.obs[i])


def _reset(mask, ribbons, cars, rules, race, batch, field):
    i, first, last = race_of(cuda.grid(1), race)
    has_car = i < batch.states.shape[0]
    begins = has_car and mask[i]
    if begins:
        restart(i, first, ribbons, rules, race, batch, field)
    elif has_car:
        show_car(i, ribbons, batch, field)
    cuda.syncthreads()
    if begins:
        rank_phase(i, first, last, race, field)
    if has_car:
        observe_motion(batch.states[i], ribbons[0], cars, batch.obs[i])


def _see(ribbons, race, batch, field):
    car, k = split_thread(cuda.grid(1), NUM_OPPONENTS)
    i, first, last = race_of(car, race)
    if i < batch.states.shape[0]:
        see_one_opponent(i, first, last, k, ribbons, batch, field)


def field_type() -> Any:
    """Numba's type of a `Field`."""
    entrants = array_type(ENTRANT_DTYPE)
    return types.NamedTuple((array_type(POSE_DTYPE), entrants, entrants), Field)


class _RaceKernels(NamedTuple):
    drive: Any
    reset: Any
    see: Any


@lru_cache(maxsize=1)
def _kernels() -> _RaceKernels:
    """The kernels, compiled for the GPU in use."""
    table, flags, bad_car = array_type(np.float32, 2), array_type(np.bool_), array_type(np.uint32)
    scenario = ribbons_type(), array_type(CAR_DTYPE), array_type(RULES_DTYPE)
    races = (*scenario, array_type(RACE_RULES_DTYPE), batch_type(), field_type())
    return _RaceKernels(
        exact_kernel(_drive, (table, *races, bad_car, types.boolean, types.int64)),
        exact_kernel(_reset, (flags, *races)),
        exact_kernel(_see, (scenario[0], *races[3:])),
    )


class CudaRaces(CudaBatch):
    """Races in the memory of a GPU: a `CudaBatch` whose cars, race by race, share a road, and their `Field`."""

    def __init__(
        self,
        scenario: Scenario,
        race: NDArray[np.void],
        num_races: int,
        num_observations: int = NUM_RACE_OBSERVATIONS,
    ) -> None:
        self.cars_per_race, self.num_races = int(race["num_cars"][0]), num_races
        super().__init__(scenario, num_races * self.cars_per_race, num_observations)
        self._kernels = _kernels()
        self._race = cuda.to_device(race)
        self.field = Field(*(cuda.to_device(array) for array in make_field(self.num_cars)))

    def set_race(self, race: NDArray[np.void]) -> None:
        """Race by these rules from now on, with as many cars as before."""
        self._race.copy_to_device(race)

    def upload_entrants(self, entrants: NDArray[np.void]) -> None:
        """Give the cars these parts in their races (num_cars,)."""
        self.field.entrants.copy_to_device(entrants)  # type: ignore[attr-defined]

    def download_entrants(self) -> NDArray[np.void]:
        """The cars' parts in their races; waits for the GPU."""
        entrants: NDArray[np.void] = self.field.entrants.copy_to_host()  # type: ignore[attr-defined]
        return entrants

    def reset(self, mask: NDArray[np.bool_], stream: Any = 0) -> None:
        """Begin every race in `mask` (num_races,); the others are observed as they are."""
        of_cars = cuda.to_device(np.repeat(mask, self.cars_per_race), stream=stream)
        self._kernels.reset[(*self._race_grid(), stream)](of_cars, *self._races())
        self._look(stream)

    def step(self, *, autoreset: bool, repeat: int, check_actions: bool = True, stream: Any = 0) -> None:
        """Up to `repeat` ticks with `actions`, as `CudaCars.step` does them; a race that is over ends its step."""
        if check_actions:
            self._check(stream)
        self._kernels.drive[(*self._race_grid(), stream)](
            self.actions, *self._races(), self._bad_car, autoreset, repeat
        )
        self._look(stream)

    def _look(self, stream: Any) -> None:
        super()._look(stream)
        if has_opponents.py_func(self.num_observations):
            self._kernels.see[self._blocks(NUM_OPPONENTS), THREADS_PER_BLOCK, stream](
                self._ribbons, self._race, self.batch, self.field
            )

    def _races(self) -> tuple[Any, ...]:
        return self._ribbons, self._cars, self._rules, self._race, self.batch, self.field

    def _race_grid(self) -> tuple[int, int]:
        """Blocks, and threads of each: one a car, and as many whole races as fit."""
        threads = RACE_THREADS // self.cars_per_race * self.cars_per_race
        return max(1, -(-self.num_cars // threads)), threads


class CudaRaceEngine:
    """An engine for races in main memory: each call copies everything to the GPU and back, which is slow."""

    def __init__(self) -> None:
        self._races: CudaRaces | None = None
        self._scenario: Scenario | None = None

    def reset(self, mask: NDArray[np.bool_], races: Races) -> None:
        """Begin every race in `mask`."""
        there = self._upload(races)
        there.reset(mask)
        _download(there, races)

    def step(self, actions: NDArray[np.float32], races: Races, *, autoreset: bool, repeat: int) -> int:
        """Up to `repeat` ticks with one action for every car; ALL_FINE, or the first car with a bad action."""
        there = self._upload(races)
        there.actions.copy_to_device(np.ascontiguousarray(actions))
        there.step(autoreset=autoreset, repeat=repeat)
        bad_car = there.find_bad_car()
        if bad_car == ALL_FINE:
            _download(there, races)
        return bad_car

    def observe(self, races: Races) -> None:
        """Fill the observations of every car from its state."""
        there = self._upload(races)
        there.reset(np.zeros(there.num_races, np.bool_))
        _download(there, races)

    def _upload(self, races: Races) -> CudaRaces:
        """The races on the GPU, as they are in main memory; recreated for other tracks or other sizes."""
        known, there, scenario = self._scenario, self._races, races.scenario
        is_same = known is not None and known.ribbons is scenario.ribbons and known.cars is scenario.cars
        num_cars, num_observations = races.batch.obs.shape
        sizes = num_cars, num_observations, races.cars_per_race
        if there is None or not is_same or (there.num_cars, there.num_observations, there.cars_per_race) != sizes:
            there = CudaRaces(scenario, races.race_rules, num_cars // races.cars_per_race, num_observations)
        self._races, self._scenario = there, scenario
        there.set_rules(scenario.rules)
        there.set_race(races.race_rules)
        for target, source in zip((*there.batch, *there.field), (*races.batch, *races.field), strict=True):
            target.copy_to_device(source)  # type: ignore[attr-defined]
        return there


def _download(there: CudaRaces, races: Races) -> None:
    for source, target in zip((*there.batch, *there.field), (*races.batch, *races.field), strict=True):
        target[:] = source.copy_to_host()  # type: ignore[attr-defined]
