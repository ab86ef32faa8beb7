"""Drives small races on the CUDA engine under numba's simulator: a process of its own, saves what it computed."""

import sys
from typing import NamedTuple

import numpy as np

from hotlap.sim import batch_cuda, race_cuda
from hotlap.sim.engine import RaceEngine, Races, Scenario
from hotlap.sim.race import START_GRID, START_ROLLING, make_field, race_rules
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS, NUM_RACE_OBSERVATIONS_2
from hotlap.sim.ribbon import pack_ribbons
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks.golden_traces import golden_rules, scripted_actions
from hotlap.tracks.registry import load_track

STEPS = 6


class Case(NamedTuple):
    """Races of one size; their time limit ends some in the middle of a step."""

    cars_per_race: int
    num_races: int
    start: int
    max_ticks: int
    num_obs: int = NUM_RACE_OBSERVATIONS


CASES = (
    Case(1, 2, START_ROLLING, 4),
    Case(3, 2, START_GRID, 5, NUM_RACE_OBSERVATIONS_2),
    Case(8, 1, START_ROLLING, 7),
)


def scenario() -> Scenario:
    tracks = [load_track(name) for name in ("track-01", "track-03")]
    ribbons = pack_ribbons([track.nodes for track in tracks], [track.start_speed_mps for track in tracks])
    return Scenario(ribbons, car_record(), golden_rules())


def push_together(states: np.ndarray, cars_per_race: int) -> None:
    """Put every second car close in front of the one before it, which is faster."""
    for car in range(len(states)):
        if car % cars_per_race % 2 == 1:
            for name in ("x_m", "y_m", "node", "share", "lateral_m", "arc_m", "yaw_rad"):
                states[name][car] = states[name][car - 1]
            states["x_m"][car] += np.float32(4.3) * np.cos(states["yaw_rad"][car])
            states["y_m"][car] += np.float32(4.3) * np.sin(states["yaw_rad"][car])
            states["forward_mps"][car - 1] += np.float32(3.0)


def drive(engine: RaceEngine, world: Scenario, case: Case) -> dict[str, np.ndarray]:
    """Everything that is there after each step of a few races, by name."""
    num_cars = case.cars_per_race * case.num_races
    batch, field = make_batch(num_cars, case.num_obs), make_field(num_cars)
    race = race_rules(case.cars_per_race, 1, case.start, case.max_ticks)
    number = np.arange(num_cars) // case.cars_per_race
    batch.states["track"], batch.states["seed"] = number % 2, number
    found, arrays = {}, {**batch._asdict(), **field._asdict()}

    def keep(step: int | str) -> None:
        for name, array in arrays.items():
            for column in array.dtype.names or ("",):
                found[f"{case.cars_per_race} cars, {step}: {name} {column}"] = (
                    array[column] if column else array
                ).copy()

    races = Races(world, race, batch, field)
    engine.reset(np.ones(case.num_races, np.bool_), races)
    keep("reset")
    push_together(batch.states, case.cars_per_race)
    engine.observe(races)
    keep("observed")
    for step in range(STEPS):
        actions = scripted_actions(batch.obs, step)
        engine.step(actions, races, autoreset=True, repeat=1 + step % 3)
        keep(step)
    for step in range(2):  # the first ends every race, and the second leaves it as it is
        engine.step(actions, races, autoreset=False, repeat=case.max_ticks)
        keep(f"over {step}")
    actions[num_cars - 1, 2] = np.nan
    bad_car = engine.step(actions, races, autoreset=True, repeat=1)
    found[f"{case.cars_per_race} cars: bad car"] = np.array(bad_car)
    engine.reset(np.arange(case.num_races) == 0, races)
    keep("one reset")
    return found


def main() -> int:
    from numba.cuda.simulator.kernel import BlockThread

    from sim.cuda_simulator import simulated_kernel, start_and_wait

    BlockThread.start = start_and_wait
    batch_cuda.exact_kernel = race_cuda.exact_kernel = simulated_kernel
    batch_cuda.find_problem = lambda: None
    engine, world, found = race_cuda.CudaRaceEngine(), scenario(), {}
    for case in CASES:
        found |= drive(engine, world, case)
    np.savez(sys.argv[1], **found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
