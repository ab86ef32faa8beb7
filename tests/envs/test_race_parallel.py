"""A race as a PettingZoo environment."""

import copy

import numpy as np
import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test
from pettingzoo.utils.conversions import parallel_to_aec

import hotlap
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.race import FINISHED
from sim.kernels import F

FULL = np.array([0.0, 1.0, 0.0], F)


def everybody(env, action):
    return dict.fromkeys(env.agents, action)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pettingzoos_own_tests_pass():
    parallel_api_test(hotlap.parallel_env(num_cars=3), num_cycles=100)
    parallel_seed_test(lambda: hotlap.parallel_env(num_cars=3), num_cycles=30)
    api_test(parallel_to_aec(hotlap.parallel_env(num_cars=2)), num_cycles=60)


@pytest.mark.parametrize("start", ["grid", "rolling"])
def test_one_cars_traces_are_those_of_the_racer(start):
    race = hotlap.parallel_env(num_cars=1, start=start)
    racer = hotlap.RacerEnv(observation="road")
    seen, info = race.reset(seed=9)
    obs, own_info = racer.reset(seed=9, options={"start": "line" if start == "grid" else "random"})
    assert (seen["car_0"][:58] == obs).all()
    assert own_info.items() <= info["car_0"].items()
    rng = np.random.default_rng(1)
    for _ in range(200):
        action = rng.uniform([-0.3, 0.4, 0.0], [0.3, 1.0, 0.1]).astype(F)
        seen, rewards, terminated, _, infos = race.step({"car_0": action})
        obs, reward, _, _, own_info = racer.step(action)
        assert (seen["car_0"][:58] == obs).all()
        assert rewards["car_0"] == reward
        assert not terminated["car_0"]
        assert own_info.items() <= infos["car_0"].items()


def test_a_race_of_the_batch_is_the_race_of_its_seed():
    batch = hotlap.RaceVectorEnv(num_races=3, num_cars=2, start="rolling")
    singles = [hotlap.parallel_env(num_cars=2, start="rolling") for _ in range(3)]
    obs, _ = batch.reset(seed=4)
    own = [env.reset(seed=4 + race)[0] for race, env in enumerate(singles)]
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert (obs.reshape(3, 2, -1) == [list(seen.values()) for seen in own]).all()
        actions = rng.uniform([-0.2, 0.3, 0.0], [0.2, 1.0, 0.1], (3, 2, 3)).astype(F)
        obs, rewards, _, _, info = batch.step(actions.reshape(-1, 3))
        for race, env in enumerate(singles):
            own[race], own_rewards, _, _, own_infos = env.step(dict(zip(env.agents, actions[race], strict=True)))
            assert list(own_rewards.values()) == rewards.reshape(3, 2)[race].tolist()
            for name in ("position", "raceProgress", "contact", "atFault", "slipstream", "rawSpeed"):
                assert [one[name] for one in own_infos.values()] == info[name].reshape(3, 2)[race].tolist()


def test_the_grid_can_be_given_and_is_drawn_from_the_seed_otherwise():
    env = hotlap.parallel_env(num_cars=4)
    _, info = env.reset(seed=1, options={"grid": [3, 0, 2, 1]})
    assert [info[f"car_{car}"]["position"] for car in (3, 0, 2, 1)] in (
        [1, 2, 3, 4],
        [2, 1, 3, 4],
        [2, 1, 4, 3],
        [1, 2, 4, 3],
    )
    progress_m = [info[f"car_{car}"]["raceProgress"] for car in (3, 0, 2, 1)]
    assert progress_m == pytest.approx([-8, -8, -16, -16], abs=1.1)
    draws = [tuple(one["position"] for one in env.reset(seed=seed)[1].values()) for seed in range(8)]
    assert len(set(draws)) > 4
    assert draws[0] == tuple(one["position"] for one in env.reset(seed=0)[1].values())


@pytest.mark.parametrize("grid", [[0, 1], [0, 1, 1], [0, 1, 3], [0, 1, 2.0], "012", 5, [[0, 1, 2]]])
def test_a_grid_that_does_not_name_each_car_once_is_refused(grid):
    with pytest.raises(ConfigError, match=r"^grid: must name each car from 0 to 2 once, got "):
        hotlap.parallel_env(num_cars=3).reset(seed=0, options={"grid": grid})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_cars": 0}, "num_cars must be from 1 to 32, got 0"),
        ({"num_cars": 33}, "num_cars must be from 1 to 32, got 33"),
        ({"num_cars": 2.5}, "num_cars"),
        ({"laps": 0}, "laps must be from 1 to 1000, got 0"),
        ({"start": "flying"}, "start"),
        ({"track_id": "nowhere"}, "nowhere"),
        ({"render_mode": "ansi"}, "render_mode"),
        ({"config": {"weights": {"progres": 1}}}, "progres"),
    ],
)
def test_bad_arguments_get_one_line(arguments, message):
    with pytest.raises(hotlap.HotlapError, match=message) as error:
        hotlap.parallel_env(**arguments)
    assert "\n" not in str(error.value)


def test_a_bad_action_names_its_car_and_no_car_moves():
    env = hotlap.parallel_env(num_cars=3, start="rolling")
    env.reset(seed=0)
    before = env.get_state()
    actions = everybody(env, FULL) | {"car_1": np.array([0.0, np.nan, 0.0], F)}
    with pytest.raises(ActionError, match=r"^action of car_1 must be finite, got .*; nothing moved"):
        env.step(actions)
    with pytest.raises(ActionError, match=r"^car_2: action must have shape"):
        env.step(everybody(env, FULL) | {"car_2": [1.0]})
    with pytest.raises(ActionError, match=r"^actions: car_0 has none"):
        env.step({"car_1": FULL, "car_2": FULL})
    for name, column in env.get_state().items():
        assert column.tobytes() == before[name].tobytes(), name


def test_a_saved_race_goes_on_to_the_bit():
    env, other = (hotlap.parallel_env(num_cars=5, start="rolling") for _ in range(2))
    env.reset(seed=2)
    for _ in range(40):
        env.step(everybody(env, FULL))
    other.set_state(env.get_state())
    for _ in range(40):
        one, two = env.step(everybody(env, FULL)), other.step(everybody(other, FULL))
        assert all((one[0][agent] == two[0][agent]).all() for agent in env.agents)
        assert one[1:4] == two[1:4]
        assert one[4] == two[4] or "lapTime" in str(one[4])
    state = env.get_state()
    for name, value in {"race_status": 7, "race_slot": 99, "race_arc_m": np.nan, "node": 10**6, "x_m": np.inf}.items():
        damaged = copy.deepcopy(state)
        damaged[name][3] = value
        with pytest.raises(hotlap.HotlapError, match=r"^state: "):
            other.set_state(damaged)
    with pytest.raises(hotlap.HotlapError, match=r"^state: "):
        other.set_state({name: column for name, column in state.items() if name != "race_tick"})


def test_a_race_ends_for_all_when_all_have_finished():
    env = hotlap.parallel_env(num_cars=2, laps=1, start="rolling")
    env.reset(seed=0)
    state = env.get_state()
    state["race_status"][:], state["race_race_time_s"][:] = FINISHED, (30.0, 29.0)
    env.set_state(state)
    _, _, terminated, truncated, infos = env.step(everybody(env, FULL))
    assert terminated == {"car_0": True, "car_1": True}
    assert truncated == {"car_0": False, "car_1": False}
    assert [infos[agent]["position"] for agent in ("car_0", "car_1")] == [2, 1]
    assert all(info["finished"] for info in infos.values())
    assert not any("raceTime" in info for info in infos.values())  # they finished before this step
    assert env.agents == []
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_the_picture_shows_every_car_on_the_road():
    env = hotlap.parallel_env(num_cars=6, render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (600, 600, 3)
    from hotlap.envs.rendering import car_colour

    for car in range(6):
        shown = (picture == car_colour(car)).all(axis=2)
        assert shown[150:, 150:].sum() > 50, f"car {car} is not drawn"
