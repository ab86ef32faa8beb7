"""One car as a Gymnasium environment: spaces, infos, rewards, laps, actions, and the checkers of other libraries."""

import math
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import hotlap
from envs.racer_drives import (
    ALL_TERMS,
    COAST,
    GAS,
    LAP_KEYS,
    RESET_KEYS,
    REWARD_KEYS,
    STEP_KEYS,
    assert_same_state,
    make,
    rollout,
)
from hotlap.drivers.casual import CasualDriver
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.errors import ActionError
from hotlap.sim.guide_line import guide_line
from hotlap.tracks.golden_traces import scripted_actions

# --- spaces and info ---


def test_the_spaces():
    env = hotlap.RacerEnv()
    assert env.action_space == gym.spaces.Box(np.array([-1, 0, 0], np.float32), np.ones(3, np.float32))
    low = np.array([0] * 10 + [-1, -1, 0, 0], np.float32)
    assert env.observation_space == gym.spaces.Box(low, np.ones(14, np.float32))
    assert env.metadata["render_fps"] == 60


def test_reset_returns_the_info_of_the_start():
    obs, info = hotlap.RacerEnv().reset(seed=0)
    assert list(info) == RESET_KEYS
    assert info == {"lap": 1, "checkpoint": 0, "stepCount": 0, "tick": 0, "speed": 0.0}
    assert {type(info[key]) for key in RESET_KEYS[:4]} == {int}
    assert (obs.shape, obs.dtype) == ((14,), np.float32)


def test_step_info_has_the_documented_keys_as_plain_values():
    _, reward, terminated, truncated, info = make().step(GAS)
    assert list(info) == STEP_KEYS
    assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
    for key in STEP_KEYS:
        kind = bool if key == "wallContact" else float if key in [*REWARD_KEYS, "rawSpeed"] else int
        assert type(info[key]) is kind, key
    assert (info["lap"], info["stepCount"], info["tick"]) == (1, 1, 1)


def test_observations_are_not_changed_by_later_steps():
    env = make()
    first, *_ = env.step(GAS)
    kept = first.copy()
    for _ in range(30):
        env.step(GAS)
    np.testing.assert_array_equal(first, kept)


def test_observations_match_the_state():
    env = make()
    for _ in range(60):
        obs, _, _, _, info = env.step([0.3, 1.0, 0.0])
    state = env.get_state()
    assert obs[9] == pytest.approx(info["rawSpeed"] / env.fleet.top_speed_mps, abs=1e-6)
    assert obs[10] == pytest.approx(state["yaw_radps"][0] / 5.0, abs=1e-6)
    assert obs[10] < 0.0  # steering right turns clockwise
    assert obs[11] == pytest.approx(state["steer"][0], abs=1e-6)
    assert obs[11] == pytest.approx(0.3, abs=0.01)
    assert obs[12] == pytest.approx(state["arc_m"][0] / env.fleet.tracks[0].nodes.length_m, abs=1e-6)
    nodes = env.fleet.tracks[0].nodes
    widest = max(nodes.wall_left_m.max(), nodes.wall_right_m.max())
    assert obs[13] == pytest.approx(abs(state["lateral_m"][0]) / widest, abs=1e-6)
    assert obs[0] < obs[8]  # ray 0 looks right, where the wall has come nearer


def test_on_the_line_the_rays_measure_both_walls():
    obs, _ = hotlap.RacerEnv().reset(seed=0)
    nodes = hotlap.RacerEnv().fleet.tracks[0].nodes
    assert obs[0] == pytest.approx(nodes.wall_right_m[0] / 200.0, rel=0.02)
    assert obs[8] == pytest.approx(nodes.wall_left_m[0] / 200.0, rel=0.02)


# --- rewards ---


def test_the_terms_sum_to_the_reward():
    env = make(weights=ALL_TERMS)
    seen = set()
    obs, _ = env.reset(seed=3, options={"start": "random"})
    for tick in range(1500):
        obs, reward, _, _, info = env.step(scripted_actions(obs[None], tick)[0] if tick < 1000 else [1.0, 0.3, 0.0])
        assert reward == pytest.approx(sum(info[key] for key in REWARD_KEYS), abs=1e-6)
        seen |= {key for key in REWARD_KEYS if info[key] != 0.0}
    assert {"progress", "speed", "wall", "offTrack"} <= seen


def test_each_term_is_its_weight_if_its_condition_holds():
    env = make(weights=ALL_TERMS)
    _, _, _, _, info = env.step(COAST)
    assert info["stillness"] == pytest.approx(-0.05)
    assert info["wall"] == info["offTrack"] == info["backward"] == 0.0
    length_m = env.fleet.tracks[0].nodes.length_m
    for _ in range(100):
        before = env.get_state()["arc_m"][0]
        _, _, _, _, info = env.step(GAS)
    moved = float(env.get_state()["arc_m"][0] - before)
    assert info["progress"] == pytest.approx(10.0 * moved / length_m, rel=1e-2)
    assert info["speed"] == pytest.approx(0.5 * info["rawSpeed"] / env.fleet.top_speed_mps, rel=1e-5)
    assert info["stillness"] == 0.0
    for _ in range(400):
        _, _, _, _, info = env.step([1.0, 1.0, 0.0])
        if info["wallContact"]:
            break
    assert info["wall"] == pytest.approx(-0.2)
    assert info["offTrack"] == pytest.approx(-0.1)


def test_driving_backwards_over_the_line_is_penalised_and_completes_no_lap():
    env = make(weights=ALL_TERMS)
    state = env.get_state()
    state["forward_mps"][:] = -15.0
    env.set_state(state)
    _, _, _, _, info = env.step(COAST)
    assert info["progress"] == pytest.approx(10.0 * -0.25 / env.fleet.tracks[0].nodes.length_m, rel=0.05)
    assert info["backward"] == pytest.approx(-0.3)
    assert info["lap"] == 1


def test_progress_adds_up_to_the_distance_driven():
    env = hotlap.RacerEnv(config={"weights": {"progress": 1.0}})
    obs, _ = env.reset(seed=0)
    driver = CasualDriver()
    driver.begin(env.fleet, 0)
    total, laps = 0.0, 0
    for _ in range(2900):
        obs, _, _, _, info = env.step(driver.act(obs[None])[0])
        total += info["progress"]
        laps += "lapTime" in info
    assert laps == 1
    assert total == pytest.approx(1.0 + obs[12], abs=1e-3)


def test_progress_may_be_counted_in_metres():
    laps, metres = (hotlap.RacerEnv(config={"weights": {"progressLength": length}}) for length in (0.0, 500.0))
    for env in (laps, metres):
        env.reset(seed=0)
    for _ in range(60):
        (*_, one), (*_, other) = (env.step(np.array([0.0, 1.0, 0.0], np.float32)) for env in (laps, metres))
    assert one["progress"] > 0.0
    assert other["progress"] == pytest.approx(one["progress"] * laps.fleet.tracks[0].nodes.length_m / 500.0, rel=1e-5)


def test_progress_may_be_counted_in_seconds_of_the_guide():
    """The time that a car at the guide's speed would have needed for the tick's distance, over the given time."""
    laps, seconds = (hotlap.RacerEnv(config={"weights": {"progressTime": time_s}}) for time_s in (0.0, 20.0))
    for env in (laps, seconds):
        env.reset(seed=0)
    nodes, guide_mps = laps.fleet.tracks[0].nodes, guide_line(laps.fleet.tracks[0].nodes)[1]
    speeds = []
    for _ in range(120):
        (*_, one), (*_, other) = (env.step(np.array([0.02, 1.0, 0.0], np.float32)) for env in (laps, seconds))
        me = laps.fleet.states[0]
        here_mps = guide_mps[me["node"]] * (1.0 - me["share"]) + guide_mps[me["node"] + 1] * me["share"]
        assert other["progress"] == pytest.approx(one["progress"] * nodes.length_m / (here_mps * 20.0), rel=1e-4)
        speeds.append(here_mps)
    assert np.ptp(speeds) > 1.0


def test_a_slow_car_beside_the_road_pays_nothing():
    """Spun cars, standing on or beside the road, that only accelerate."""
    thresholds, seen = (0.0, 6.0), {}
    for threshold in thresholds:
        config = {"weights": {"penaltyMinSpeed": threshold}, "episode": {"start": "random", "spunFraction": 1.0}}
        envs = RacerVectorEnv(64, "track-01", config)
        envs.reset(seed=3)
        ticks = [envs.step(np.tile(np.float32([0.0, 0.6, 0.0]), (64, 1)))[4] for _ in range(150)]
        seen[threshold] = {
            name: np.stack([info[name] for info in ticks]) for name in ("offTrack", "wall", "rawSpeed", "wallContact")
        }
    always, fast_only = (seen[threshold] for threshold in thresholds)
    np.testing.assert_array_equal(always["rawSpeed"], fast_only["rawSpeed"])
    is_fast = always["rawSpeed"] >= 6.0
    for name in ("offTrack", "wall"):
        assert (always[name][~is_fast] < 0.0).any()
        np.testing.assert_array_equal(fast_only[name], np.where(is_fast, always[name], 0.0))
    np.testing.assert_array_equal(always["wallContact"], fast_only["wallContact"])


# --- laps and episodes ---


def test_the_lap_time_is_reported_once_at_the_line():
    env = hotlap.RacerEnv()
    obs, _ = env.reset(seed=0)
    driver = CasualDriver()
    driver.begin(env.fleet, 0)
    reported = []
    for tick in range(1, 2990):
        obs, _, _, _, info = env.step(driver.act(obs[None])[0])
        if "lapTime" in info:
            reported.append((tick, info))
            assert list(info) == STEP_KEYS + LAP_KEYS
        else:
            assert list(info) == STEP_KEYS
            assert info["lap"] == 1 + len(reported)
    [(tick, info)] = reported
    assert type(info["lapTime"]) is float
    assert (tick - 1) / 60.0 <= info["lapTime"] <= tick / 60.0
    assert info["lapClean"] is True
    assert (info["lap"], info["checkpoint"]) == (2, 0)


def test_standing_still_ends_the_episode_after_the_timeout():
    env = make(episode={"stillnessTimeoutTicks": 40})
    for tick in range(1, 41):
        _, _, terminated, truncated, info = env.step(COAST)
        assert (terminated, truncated, info["stillnessCounter"]) == (tick == 40, False, tick)


def test_the_step_limit_truncates():
    env = make(episode={"maxSteps": 30})
    ends = [env.step(GAS)[2:4] for _ in range(30)]
    assert ends == [(False, False)] * 29 + [(False, True)]


def test_stepping_after_the_end_is_allowed():
    env = make(episode={"maxSteps": 3, "stillnessTimeoutTicks": 5})
    results = [env.step(COAST) for _ in range(8)]
    assert [result[3] for result in results] == [False] * 2 + [True] * 6
    assert [result[2] for result in results] == [False] * 4 + [True] * 4
    assert [result[4]["tick"] for result in results] == list(range(1, 9))


def test_walls_do_not_end_an_episode():
    env = make()
    touched = 0
    for _ in range(600):
        _, _, terminated, truncated, info = env.step([0.3, 1.0, 0.0])
        touched += info["wallContact"]
        assert not truncated
        if terminated:
            assert info["stillnessCounter"] >= 180
            break
    assert touched > 0


def test_step_before_reset_is_refused():
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        hotlap.RacerEnv().step(GAS)


# --- actions ---


@pytest.mark.parametrize(
    ("wild", "clipped"),
    [
        ([-7.0, 9.0, -3.0], [-1.0, 1.0, 0.0]),
        ([7.0, -1.0, 2.0], [1.0, 0.0, 1.0]),
        ([1e300, 1e39, -1e300], [1.0, 1.0, 0.0]),
    ],
)
def test_out_of_range_actions_are_clipped(wild, clipped):
    one, other = make(), make()
    for _ in range(60):
        a, b = one.step(wild), other.step(np.array(clipped, np.float32))
        assert data_equivalence(a, b, exact=True)
    assert_same_state(one.get_state(), other.get_state())


@pytest.mark.parametrize(
    "action",
    [
        [np.nan, 0, 0], [0, np.inf, 0], [0, 0, -np.inf], np.array([0, np.nan, 0], np.float32), [0, 0], 0.5, [[0, 0, 0]],
        None, "gas", [0, None, 0], [0, [1], 2],
    ],
)  # fmt: skip
def test_a_bad_action_is_refused_and_nothing_moves(action):
    env = make()
    env.step(GAS)
    before = env.get_state()
    with pytest.raises(ActionError, match="action") as caught:
        env.step(action)
    assert isinstance(caught.value, ValueError)
    assert_same_state(env.get_state(), before)
    env.step(GAS)


# --- checkers ---


def test_gymnasiums_checkers_find_no_problem(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it tries every render mode
    # `make` wraps the environment in a checker of the first reset, step and render.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make("hotlap/Racer-v0", render_mode="rgb_array").unwrapped)
        env = gym.make("hotlap/Racer-v0", render_mode="rgb_array", config={"episode": {"maxSteps": 20}})
        env.reset(seed=1)
        for _ in range(20):
            *_, truncated, _ = env.step(env.action_space.sample())
        assert truncated
        env.render()
        env.reset()
        env.close()


def test_stable_baselines_only_recommends_symmetric_actions():
    from stable_baselines3.common.env_checker import check_env as check_for_sb3

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check_for_sb3(hotlap.RacerEnv(), warn=True)
    assert all("symmetric" in str(warning.message) for warning in caught)
    assert len(caught) <= 1


def test_the_same_seed_gives_the_same_results():
    config = {"episode": {"maxSteps": 150}}
    one, other = (rollout(hotlap.RacerEnv(config=config), 600) for _ in range(2))
    assert len(one) > 604
    assert data_equivalence(one, other, exact=True)


def test_observations_of_random_episodes_are_in_the_space():
    env = hotlap.RacerEnv(config={"episode": {"maxSteps": 60}, "weights": ALL_TERMS})
    env.action_space.seed(0)
    for episode in range(100):
        obs, _ = env.reset(seed=episode, options={"start": "random" if episode % 2 else "line"})
        ended = False
        while not ended:
            assert env.observation_space.contains(obs)
            obs, reward, terminated, truncated, info = env.step(env.action_space.sample())
            assert math.isfinite(reward)
            assert all(math.isfinite(value) for value in info.values())
            ended = terminated or truncated
        assert env.observation_space.contains(obs)
