"""Measures car-steps per second of races: contact, slipstream, order, the observation `race`, and autoreset."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hotlap.bench.simulator import (
    BATCH_CONFIG,
    HOLD_TICKS,
    WARMUP_TICKS,
    SimSpeed,
    check_setting,
    choose_threads,
)
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.errors import ConfigError
from hotlap.sim.engine import Races, Scenario
from hotlap.sim.race import MAX_CARS_PER_RACE, START_ROLLING, make_field, race_rules
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS
from hotlap.sim.step import make_batch
from hotlap.sim.world import STATE_DTYPE
from hotlap.tracks.golden_traces import scripted_actions

LAPS = 3
RACE_TICKS = 1200  # short, so that few cars stand; races end at different times, so that every step has its share

Act = Callable[[int], None]  # puts new actions in place, those of a tick
Step = Callable[[], None]


def measure_races(
    cars_per_race: int, num_cars: int, threads: int | None, device: str, track_id: str, seconds: float
) -> SimSpeed:
    """Step `num_cars` cars in races of `cars_per_race` for about `seconds`, with the observation `race`."""
    check_setting(device, seconds)
    if not 1 <= cars_per_race <= MAX_CARS_PER_RACE:
        raise ConfigError(f"num_cars must be from 1 to {MAX_CARS_PER_RACE}, got {cars_per_race}.")
    if num_cars < 1 or num_cars % cars_per_race != 0:
        raise ConfigError(f"num_envs must be a multiple of num_cars, {cars_per_race}, got {num_cars}.")
    chosen = None if device == "cuda" else choose_threads(threads)
    scenario = RacerVectorEnv(1, track_id, BATCH_CONFIG, num_threads=1).fleet.scenario
    if chosen is None:
        rate = race_rate_cuda(scenario, cars_per_race, num_cars, seconds)
    else:
        rate = race_rate_cpu(scenario, cars_per_race, num_cars, chosen, seconds)
    return SimSpeed(rate, num_cars, chosen, device, track_id, "race", seconds, None, None, None, cars_per_race)


def race_rate_cpu(
    scenario: Scenario, cars_per_race: int, num_cars: int, num_threads: int, seconds: float, repeat: int = 1
) -> float:
    """Car-steps of `repeat` ticks per second on CPU threads."""
    engine, race = CpuRaceEngine(num_threads), race_rules(cars_per_race, LAPS, START_ROLLING, RACE_TICKS)
    batch, field = make_batch(num_cars, NUM_RACE_OBSERVATIONS), make_field(num_cars)
    batch.states[:] = _seeded_states(num_cars, cars_per_race)
    races = Races(scenario, race, batch, field)
    engine.reset(np.ones(num_cars // cars_per_race, np.bool_), races)
    field.entrants["tick"] = _begun_ticks(num_cars, cars_per_race)
    actions = np.zeros((num_cars, 3), np.float32)

    def act(tick: int) -> None:
        actions[:] = scripted_actions(batch.obs, tick)

    def step() -> None:
        engine.step(actions, races, autoreset=True, repeat=repeat)

    return num_cars * _median_rate(act, step, lambda: None, seconds)


def race_rate_cuda(scenario: Scenario, cars_per_race: int, num_cars: int, seconds: float, repeat: int = 1) -> float:
    """Car-steps of `repeat` ticks per second on the GPU, with everything that a learner reads written there."""
    from hotlap.sim.batch_cuda import synchronize
    from hotlap.sim.race_cuda import CudaRaces

    num_races = num_cars // cars_per_race
    races = CudaRaces(scenario, race_rules(cars_per_race, LAPS, START_ROLLING, RACE_TICKS), num_races)
    races.upload(_seeded_states(num_cars, cars_per_race))
    races.reset(np.ones(num_races, np.bool_))
    entrants = races.download_entrants()
    entrants["tick"] = _begun_ticks(num_cars, cars_per_race)
    races.upload_entrants(entrants)

    def act(tick: int) -> None:
        races.actions.copy_to_device(scripted_actions(races.batch.obs.copy_to_host(), tick))  # type: ignore[attr-defined]
        synchronize()

    def step() -> None:
        races.step(autoreset=True, repeat=repeat)

    return num_cars * _median_rate(act, step, synchronize, seconds)


def _median_rate(act: Act, step: Step, finish: Step, seconds: float) -> float:
    """Steps per second in the median block, which other load on the machine affects little; actions are not timed."""
    blocks_s: list[float] = []
    num_warmup = WARMUP_TICKS // HOLD_TICKS
    while len(blocks_s) <= num_warmup or sum(blocks_s[num_warmup:]) < seconds:
        act(len(blocks_s) * HOLD_TICKS)
        begin_s = time.perf_counter()
        for _ in range(HOLD_TICKS):
            step()
        finish()
        blocks_s.append(time.perf_counter() - begin_s)
    return HOLD_TICKS / float(np.median(blocks_s[num_warmup:]))


def _seeded_states(num_cars: int, cars_per_race: int) -> NDArray[np.void]:
    """States in which every race has a seed of its own."""
    states = np.zeros(num_cars, STATE_DTYPE)
    states["seed"] = np.arange(num_cars) // cars_per_race
    return states


def _begun_ticks(num_cars: int, cars_per_race: int) -> NDArray[np.int64]:
    """For every car the tick of its race, spread evenly over the races."""
    number = np.arange(num_cars) // cars_per_race
    return number * RACE_TICKS // (num_cars // cars_per_race)
