"""Many races at once: rows, infos and the autoreset of each race."""

import numpy as np
import pytest

import hotlap
from hotlap.errors import ConfigError
from hotlap.sim.race import FINISHED
from sim.kernels import F


def test_rows_spaces_and_infos():
    env = hotlap.RaceVectorEnv(num_races=3, num_cars=4)
    obs, info = env.reset(seed=0)
    assert env.num_envs == 12
    assert obs.shape == (12, 90)
    assert env.observation_space.contains(obs)
    assert (np.sort(info["position"].reshape(3, 4), axis=1) == [1, 2, 3, 4]).all()
    obs, rewards, terminated, truncated, info = env.step(np.tile(np.array([0.0, 1.0, 0.0], F), (12, 1)))
    assert rewards.shape == terminated.shape == truncated.shape == (12,)
    names = {"position", "raceProgress", "contact", "atFault", "overtakes", "slipstream", "finished", "rawSpeed"}
    assert names <= set(info)
    assert "raceTime" not in info
    assert "final_obs" not in info


def test_a_race_that_ends_begins_again_and_the_others_go_on():
    env = hotlap.RaceVectorEnv(num_races=2, num_cars=2, laps=1, start="rolling")
    env.reset(seed=1)
    for _ in range(10):
        env.step(np.zeros((4, 3), F))
    state = env.get_state()
    # The first car of race 0 has finished; the second is about to cross the line.
    state["race_status"][0], state["race_race_time_s"][0] = FINISHED, 12.5
    env.set_state(state)
    length_m = env.fleet.lap_lengths_m[0]
    for name in ("arc_m", "race_arc_m"):
        state[name][1] = length_m - 0.2
    nodes = env.fleet.tracks[0].nodes
    last = nodes.num_nodes - 1
    state["node"][1], state["share"][1], state["lateral_m"][1] = last, 0.8, 0.0
    state["x_m"][1] = 0.2 * nodes.x_m[last] + 0.8 * nodes.x_m[0]
    state["y_m"][1] = 0.2 * nodes.y_m[last] + 0.8 * nodes.y_m[0]
    state["yaw_rad"][1], state["forward_mps"][1] = np.arctan2(nodes.tangent_y[0], nodes.tangent_x[0]), 30.0
    state["race_laps_done"][1] = 0
    env.set_state(state)
    obs, _, terminated, truncated, info = env.step(np.zeros((4, 3), F))
    assert list(terminated) == [True, True, False, False]
    assert not truncated.any()
    last_info = info["final_info"]
    assert list(info["_final_info"]) == [True, True, False, False]
    assert list(last_info["_raceTime"]) == [False, True, False, False]
    assert last_info["raceTime"][1] == pytest.approx(10 / 60 + 0.2 / 30.0, abs=0.003)
    assert list(last_info["position"][:2]) == [2, 1]
    assert list(info["_position"]) == [False, False, True, True]
    assert (env.get_state()["episode"] == [1, 1, 0, 0]).all()
    assert (env.get_state()["race_tick"] == [0, 0, 11, 11]).all()
    assert (info["final_obs"][:2] != obs[:2]).any()


def test_a_race_among_others_has_the_seed_of_its_number_or_its_own():
    env = hotlap.RaceVectorEnv(num_races=3, num_cars=2, start="rolling")
    env.reset(seed=10)
    first = env.get_state()
    env.reset(seed=[12, 11, 10])
    second = env.get_state()
    for name in ("x_m", "forward_mps"):
        assert (first[name].reshape(3, 2) == second[name].reshape(3, 2)[::-1]).all()


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"num_races": 0}, "num_races must be from 1 to"),
        ({"num_races": 10**9}, "num_races must be from 1 to"),
        ({"num_threads": 0}, "num_threads"),
        ({"track_id": []}, "at least one track"),
    ],
)
def test_bad_arguments_get_one_line(arguments, fault):
    with pytest.raises(ConfigError, match=fault):
        hotlap.RaceVectorEnv(**arguments)


def test_an_unknown_option_is_refused():
    with pytest.raises(ConfigError, match="unknown key 'gird'"):
        hotlap.RaceVectorEnv().reset(seed=0, options={"gird": [0]})


def test_races_take_turns_on_several_tracks():
    env = hotlap.RaceVectorEnv(num_races=4, num_cars=2, track_id=["track-01", "track-03"])
    env.reset(seed=0)
    lengths_m = env.fleet.lap_lengths_m.reshape(4, 2)
    assert (lengths_m == lengths_m[:, :1]).all()
    assert lengths_m[0, 0] == lengths_m[2, 0] != lengths_m[1, 0]
