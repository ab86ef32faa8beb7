"""The CPU engine of races: `race_step.py` over N races on threads. These are the compiled functions Python calls."""

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.batch_cpu import find_bad_action
from hotlap.sim.compilation import entry_point, kernel
from hotlap.sim.engine import ALL_FINE, Races, Scenario
from hotlap.sim.race import START_GRID, make_field, race_rules, show
from hotlap.sim.race_step import (
    begin_step,
    drive_phase,
    end_step,
    keep_end,
    rank_phase,
    restart,
    see,
    settle_phase,
    touch_phase,
)
from hotlap.sim.rewards import RULES_DTYPE
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.sim.step import make_batch
from hotlap.sim.thread_team import ThreadTeam
from hotlap.sim.vehicle import CAR_DTYPE

_TEAM = ThreadTeam()  # of all engines of this process: an engine may be copied, sent or forked at any time


@kernel
def step_race(first, last, actions, ribbons, cars, rules, race, batch, field, repeat):
    """Up to `repeat` ticks of the cars from `first` up to `last`; True if their race is over, which stays as it is."""
    for i in range(first, last):
        begin_step(i, batch, field)
    for tick in range(repeat):
        if field.entrants[first].is_over != 0:
            break
        for i in range(first, last):
            drive_phase(i, actions, ribbons, cars, batch, field)
        for i in range(first, last):
            touch_phase(i, first, last, ribbons, batch, field)
        for i in range(first, last):
            settle_phase(i, first, last, ribbons, cars, rules, race, batch, field, tick == 0)
        for i in range(first, last):
            rank_phase(i, first, last, race, field)
    for i in range(first, last):
        end_step(i, ribbons, race, batch, field)
    return field.entrants[first].is_over != 0


@kernel
def begin_race(first, last, ribbons, rules, race, batch, field):
    """Put the cars on the grid, in order."""
    for i in range(first, last):
        restart(i, first, ribbons, rules, race, batch, field)
    for i in range(first, last):
        rank_phase(i, first, last, race, field)


@kernel
def step_and_see(number, actions, ribbons, cars, rules, race, batch, field, autoreset, repeat):
    """One step of a race and its observations; with `autoreset` the next race begins when it is over."""
    first, last = number * race[0].num_cars, (number + 1) * race[0].num_cars
    is_over = step_race(first, last, actions, ribbons, cars, rules, race, batch, field, repeat)
    if autoreset and is_over:
        for i in range(first, last):
            keep_end(i, first, last, ribbons, cars, batch, field)
        begin_race(first, last, ribbons, rules, race, batch, field)
    for i in range(first, last):
        see(i, first, last, ribbons, cars, batch, field, batch.obs[i])


@entry_point()
def reset_races(mask, ribbons, cars, rules, race, batch, field):
    """Begin every race in `mask`."""
    for number in range(mask.shape[0]):
        if mask[number]:
            first, last = number * race[0].num_cars, (number + 1) * race[0].num_cars
            begin_race(first, last, ribbons, rules, race, batch, field)
            for i in range(first, last):
                see(i, first, last, ribbons, cars, batch, field, batch.obs[i])


@entry_point()
def step_races(first, last, actions, ribbons, cars, rules, race, batch, field, autoreset, repeat):
    """Step the races from `first` up to `last`."""
    for number in range(first, last):
        step_and_see(number, actions, ribbons, cars, rules, race, batch, field, autoreset, repeat)


@entry_point()
def first_bad_car(actions):
    """The first car with a bad action, or ALL_FINE."""
    return find_bad_action(actions)


@entry_point()
def see_races(ribbons, cars, race, batch, field):
    """Fill the observations of every car from its state."""
    for i in range(batch.states.shape[0]):
        show(batch.states[i], field.entrants[i], field.poses[i], ribbons[0], ribbons[1])
    for i in range(batch.states.shape[0]):
        first = i - i % race[0].num_cars
        see(i, first, first + race[0].num_cars, ribbons, cars, batch, field, batch.obs[i])


class CpuRaceEngine:
    """Steps races on `num_threads` threads. They are Python's: a parallel loop of numba takes long to compile."""

    def __init__(self, num_threads: int = 1) -> None:
        self.num_threads = num_threads

    def reset(self, mask: NDArray[np.bool_], races: Races) -> None:
        """Begin every race in `mask`."""
        reset_races(mask, *races.scenario, *races[1:])

    def step(self, actions: NDArray[np.float32], races: Races, *, autoreset: bool, repeat: int) -> int:
        """Up to `repeat` ticks with one action for every car; ALL_FINE, or the first car with a bad action."""
        bad = int(first_bad_car(actions))
        if bad != ALL_FINE:
            return bad
        num_races = len(actions) // races.cars_per_race
        num_parts = min(self.num_threads, num_races)
        bounds = [part * num_races // num_parts for part in range(num_parts + 1)]

        def work(part: int) -> None:
            span = bounds[part], bounds[part + 1]
            step_races(*span, actions, *races.scenario, *races[1:], autoreset, repeat)

        _TEAM.run(work, num_parts)
        return ALL_FINE

    def observe(self, races: Races) -> None:
        """Fill the observations of every car from its state."""
        see_races(*races.scenario[:2], *races[1:])


def warm_up() -> None:
    """Compile everything, or load it from the disk cache, before the first step."""
    ribbons = Ribbons(np.zeros(1, TRACK_DTYPE), np.zeros(8, NODE_DTYPE), np.zeros(8, PORTAL_DTYPE))
    scenario = Scenario(ribbons, np.ones(1, CAR_DTYPE), np.ones(1, RULES_DTYPE))
    batch, field, actions = make_batch(0), make_field(0), np.zeros((0, 3), np.float32)
    race = race_rules(num_cars=1, laps=1, start=START_GRID, max_ticks=1)
    reset_races(np.zeros(0, np.bool_), *scenario, race, batch, field)
    see_races(*scenario[:2], race, batch, field)
    first_bad_car(actions)
    step_races(0, 0, actions, *scenario, race, batch, field, False, 1)
