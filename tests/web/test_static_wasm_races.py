"""Races in the page's `sim.wasm` have the CPU's bits."""

from itertools import chain

import numpy as np
import pytest

import hotlap
from hotlap.sim.contact import POSE_DTYPE
from hotlap.sim.engine import ALL_FINE, Races, Scenario
from hotlap.sim.opponent_view import NUM_OPPONENT_VIEW
from hotlap.sim.race import ENTRANT_DTYPE, RACE_RULES_DTYPE, START_GRID, START_ROLLING, make_field, race_rules
from hotlap.sim.race_cpu import CpuRaceEngine
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS, NUM_RACE_OBSERVATIONS_2
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record
from hotlap.tracks.golden_races import race_version
from hotlap.tracks.golden_traces import golden_rules, scripted_actions
from hotlap.tracks.registry import load_track
from sim.race_worlds import assert_same_bits
from web.wasm_engine import DESCRIPTION, WasmRaceEngine

WASM_S = 600


@pytest.mark.parametrize(
    ("name", "dtype"), [("pose", POSE_DTYPE), ("entrant", ENTRANT_DTYPE), ("race_rules", RACE_RULES_DTYPE)]
)
def test_the_description_has_every_field_where_it_is(name, dtype):
    record = DESCRIPTION["records"][name]
    assert record["size"] == dtype.itemsize
    assert {field: offset for field, (_, offset) in record["fields"].items()} == {
        field: dtype.fields[field][1] for field in dtype.names
    }


@pytest.mark.timeout(180)
def test_golden_races_in_webassembly_give_the_race_version():
    assert race_version(WasmRaceEngine()) == hotlap.RACE_VERSION == DESCRIPTION["race"]


def compare(track_id: str, cars_per_race: int, start: int, num_steps: int, num_races: int, every: int) -> int:
    """Drive the same races in both; the number of cars times steps in which they touched others."""
    scenario = Scenario(load_track(track_id).ribbon, car_record(), golden_rules())
    race, num_cars = race_rules(cars_per_race, 1, start, 1500), num_races * cars_per_race
    engines, worlds = (CpuRaceEngine(), WasmRaceEngine()), []
    for engine in engines:
        batch, field = make_batch(num_cars, NUM_RACE_OBSERVATIONS), make_field(num_cars)
        batch.states["seed"] = np.arange(num_cars) // cars_per_race
        worlds.append(Races(scenario, race, batch, field))
        engine.reset(np.ones(num_races, np.bool_), worlds[-1])
    num_contacts = 0
    for step in range(num_steps):
        actions = scripted_actions(worlds[0].batch.obs, step)
        for engine, world in zip(engines, worlds, strict=True):
            assert engine.step(actions, world, autoreset=True, repeat=1 + step % 4) == ALL_FINE
        num_contacts += np.count_nonzero(worlds[0].field.entrants["contact_mps"])
        if step % every == 0 or step == num_steps - 1:
            for mine, page in zip(*(chain(world.batch, world.field) for world in worlds), strict=True):
                for column in mine.dtype.names or (...,):
                    assert mine[column].tobytes() == page[column].tobytes(), f"{column} differs after step {step}"
    return num_contacts


@pytest.mark.parametrize(("cars_per_race", "start"), [(3, START_GRID), (8, START_ROLLING)])
def test_races_equal_the_cpus(cars_per_race, start):
    assert compare("track-01", cars_per_race, start, num_steps=60, num_races=2, every=1) > 0


@pytest.mark.slow
@pytest.mark.timeout(WASM_S)
@pytest.mark.parametrize(
    ("track_id", "cars_per_race", "start"),
    [("track-01", 2, START_ROLLING), ("track-02", 8, START_GRID), ("track-03", 8, START_ROLLING),
     ("track-02", 32, START_ROLLING)],
)  # fmt: skip
def test_ten_million_ticks_of_cars_equal_the_cpus(track_id, cars_per_race, start, record_property):
    """A quarter of them in each of the four cases; a step has 2.5 ticks on average."""
    num_cars, num_steps = 256, 4400
    num_contacts = compare(track_id, cars_per_race, start, num_steps, num_cars // cars_per_race, every=50)
    assert num_contacts > 0
    ticks = num_steps * num_cars * 5 // 2
    record_property("figure", f"{track_id}, {cars_per_race} cars: {ticks:,} ticks, {num_contacts:,} contacts, equal")


def test_a_bad_action_moves_no_car():
    scenario = Scenario(load_track("track-01").ribbon, car_record(), golden_rules())
    engine, race = WasmRaceEngine(), race_rules(2, 1, START_GRID, 100)
    batch, field = make_batch(2, NUM_RACE_OBSERVATIONS), make_field(2)
    races = Races(scenario, race, batch, field)
    engine.reset(np.ones(1, np.bool_), races)
    before = batch.states.copy()
    actions = np.array([[0.0, 1.0, 0.0], [0.0, np.nan, 0.0]], np.float32)
    assert engine.step(actions, races, autoreset=False, repeat=1) == 1
    assert_same_bits(batch.states, before)


@pytest.mark.parametrize("num_obs", [NUM_RACE_OBSERVATIONS, NUM_RACE_OBSERVATIONS_2])
def test_states_set_by_hand_are_observed_as_the_cpu_does(num_obs):
    scenario = Scenario(load_track("track-01").ribbon, car_record(), golden_rules())
    race, seen = race_rules(4, 1, START_GRID, 100), []
    for engine in (CpuRaceEngine(), WasmRaceEngine()):
        batch, field = make_batch(8, num_obs), make_field(8)
        races = Races(scenario, race, batch, field)
        engine.reset(np.ones(2, np.bool_), races)
        batch.states["x_m"] += np.float32(0.5)
        batch.states["forward_mps"] = np.arange(8)
        engine.observe(races)
        seen.append(batch.obs)
    assert seen[0].tobytes() == seen[1].tobytes()
    assert (seen[0][:, num_obs - NUM_OPPONENT_VIEW] == 1.0).all()  # every car sees another
