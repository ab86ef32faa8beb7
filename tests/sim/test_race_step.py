"""A step of a race: a car alone, autoreset and the time limit."""

import numpy as np
import pytest

from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.opponent_view import NUM_OPPONENT_VIEW
from hotlap.sim.race import START_GRID, START_ROLLING
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS_2
from sim.race_worlds import RaceWorld, assert_same_bits
from sim.worlds import World, nodes_of

COAST = [0.0, 0.0, 0.0]
OVAL = nodes_of("oval")


@pytest.mark.parametrize("start", [START_GRID, START_ROLLING])
@pytest.mark.parametrize("repeat", [1, 4])
def test_a_car_alone_in_its_race_is_todays_car_to_the_bit(start, repeat):
    nodes = nodes_of("track-01")
    race, alone = RaceWorld(nodes, 1, 4, start=start, seed=7), World([nodes], 4, num_obs=58, start=start)
    alone.states["seed"] = race.states["seed"]
    alone.reset()
    rng = np.random.default_rng(start)
    for _ in range(300 // repeat):
        actions = rng.uniform([-0.4, 0.3, -1.0], [0.4, 1.0, 0.4], (4, 3))
        race.step(actions, repeat=repeat)
        alone.step(actions, repeat=repeat)
        assert_same_bits(race.states, alone.states)
        assert race.batch.obs[:, :58].tobytes() == alone.batch.obs.tobytes()
        assert race.batch.rewards.tobytes() == alone.batch.rewards.tobytes()
        assert_same_bits(race.infos, alone.infos)
    assert (race.batch.obs[:, 58:] == 0.0).all()


def test_with_the_second_version_of_road_the_opponents_follow_its_columns():
    first, second = RaceWorld(OVAL, 4, 2), RaceWorld(OVAL, 4, 2, num_obs=NUM_RACE_OBSERVATIONS_2)
    alone = World([OVAL], 8, num_obs=144)
    for _ in range(5):
        for world in (first, second):
            world.step([0.1, 1.0, 0.0], repeat=4)
    alone.states[:] = second.states
    CpuEngine().observe(alone.scenario, alone.batch)
    opponents = second.batch.obs[:, 144:]
    assert opponents.shape == (8, NUM_OPPONENT_VIEW)
    assert np.count_nonzero(opponents) > 8
    assert opponents.tobytes() == first.batch.obs[:, 58:].tobytes()
    assert second.batch.obs[:, :144].tobytes() == alone.batch.obs.tobytes()


def test_the_time_limit_cuts_a_race_off():
    world = RaceWorld(OVAL, 2, race_ticks=10)
    for _ in range(3):
        assert not world.batch.truncated.any()
        world.step(COAST, repeat=4)
    assert world.batch.truncated.all()
    assert not world.batch.terminated.any()
    assert (world.entrants["tick"] == 10).all()


def test_autoreset_begins_the_next_race_at_once_and_keeps_the_last():
    world = RaceWorld(OVAL, 3, 2, laps=1, race_ticks=20)
    for _ in range(5):
        world.step([0.0, 1.0, 0.0], autoreset=True, repeat=4)
    assert world.batch.truncated.all()
    assert (world.states["episode"] == 1).all()
    assert (world.entrants["tick"] == 0).all()
    assert (world.field.final_entrants["tick"] == 20).all()
    assert (world.batch.final_infos["rawSpeed"] > 0.5).all()
    assert (world.states["forward_mps"] == 0.0).all()
    fresh = RaceWorld(OVAL, 3, 2, laps=1)
    assert (world.states["arc_m"] != fresh.states["arc_m"]).any()  # another order
