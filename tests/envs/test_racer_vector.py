"""Many cars in one call: each is bit-identical to the single environment, across episodes."""

import copy
import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence

import hotlap
from envs import racer_drives
from envs.racer_drives import assert_same_state
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ActionError, ConfigError, StateError, UnknownTrackError
from hotlap.tracks.golden_traces import scripted_actions

RESET_KEYS, STEP_KEYS = set(racer_drives.RESET_KEYS), set(racer_drives.STEP_KEYS)
SHARED_KEYS = {"lap", "checkpoint", "stepCount", "tick"}
FINAL_KEYS = {"final_obs", "final_info"}

SHORT = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25}}
SHORT_RANDOM = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25, "start": "random"}}


def masks(keys: set[str]) -> set[str]:
    return {f"_{key}" for key in keys}


def drive(obs: np.ndarray, tick: int) -> np.ndarray:
    """Scripted actions, but every third car brakes and ends by standing still."""
    actions = scripted_actions(obs, tick)
    actions[::3] = [0.0, 0.0, 1.0]
    return actions


def begun(num_envs: int = 3, *arguments, **options) -> hotlap.RacerVectorEnv:
    env = hotlap.RacerVectorEnv(num_envs, *arguments, **options)
    env.reset(seed=0)
    return env


def row_of(info: dict, car: int) -> dict:
    """The info of one car from the info of the batch: the keys whose mask is set for it."""
    return {
        key: value[car].item()
        for key, value in info.items()
        if not key.startswith("_") and key not in FINAL_KEYS and info[f"_{key}"][car]
    }


# --- equal to single environments ---


@pytest.mark.parametrize(("config", "num_threads"), [(SHORT, 1), (SHORT_RANDOM, 1), (SHORT_RANDOM, 2)])
def test_car_i_of_a_batch_seeded_s_equals_the_single_environment_seeded_s_plus_i(config, num_threads):
    seed, num_envs = 1234, 7
    batch = hotlap.RacerVectorEnv(num_envs, config=config, num_threads=num_threads)
    singles = [hotlap.RacerEnv(config=config) for _ in range(num_envs)]
    obs, info = batch.reset(seed=seed)
    for car, env in enumerate(singles):
        own_obs, own_info = env.reset(seed=seed + car)
        np.testing.assert_array_equal(obs[car], own_obs)
        assert row_of(info, car) == own_info
    ends = 0
    for tick in range(250):
        actions = drive(obs, tick)
        obs, rewards, terminated, truncated, info = batch.step(actions)
        for car, env in enumerate(singles):
            own = env.step(actions[car])
            assert (rewards[car], terminated[car], truncated[car]) == own[1:4]
            if own[2] or own[3]:
                ends += 1
                np.testing.assert_array_equal(info["final_obs"][car], own[0])
                assert row_of(info["final_info"], car) == own[4]
                next_obs, next_info = env.reset()
                np.testing.assert_array_equal(obs[car], next_obs)
                assert row_of(info, car) == {key: next_info[key] for key in SHARED_KEYS}
            else:
                np.testing.assert_array_equal(obs[car], own[0])
                assert row_of(info, car) == own[4]
    assert ends > 20


def test_a_lap_is_reported_as_by_the_single_environment():
    batch, single = hotlap.RacerVectorEnv(3), hotlap.RacerEnv()
    obs, _ = batch.reset(seed=0)
    single.reset(seed=1)
    driver = CasualDriver()
    driver.begin(batch.fleet, 0)
    reported = 0
    for _ in range(2800):
        actions = driver.act(obs)
        obs, _, _, _, info = batch.step(actions)
        own = single.step(actions[1])[4]
        assert ("lapTime" in info) == ("lapClean" in info)
        assert row_of(info, 1) == own
        if "lapTime" in info:
            reported += int(info["_lapTime"].sum())
            np.testing.assert_array_equal(info["_lapTime"], info["_lapClean"])
    assert reported == 3


def test_results_do_not_depend_on_batch_size_or_threads():
    small = hotlap.RacerVectorEnv(3, config=SHORT_RANDOM, num_threads=1)
    large = hotlap.RacerVectorEnv(130, config=SHORT_RANDOM, num_threads=2)
    few, _ = small.reset(seed=9)
    many, _ = large.reset(seed=9)
    for tick in range(150):
        np.testing.assert_array_equal(few, many[:3])
        actions = drive(many, tick)
        few, *_ = small.step(actions[:3])
        many, *_ = large.step(actions)


def test_several_tracks_in_one_batch():
    ids = ["track-03", "track-01", "train-000"]
    batch = hotlap.RacerVectorEnv(7, track_id=ids)
    singles = [hotlap.RacerEnv(ids[car % 3]) for car in range(7)]
    obs, _ = batch.reset(seed=0)
    for car, env in enumerate(singles):
        np.testing.assert_array_equal(obs[car], env.reset(seed=car)[0])
    for tick in range(60):
        actions = scripted_actions(obs, tick)
        obs, *_ = batch.step(actions)
        for car, env in enumerate(singles):
            np.testing.assert_array_equal(obs[car], env.step(actions[car])[0])


# --- shapes, keys, masks ---


def test_spaces_and_shapes():
    env = hotlap.RacerVectorEnv(5)
    assert env.observation_space.shape == (5, 14)
    assert env.action_space.shape == (5, 3)
    assert env.single_observation_space == hotlap.RacerEnv().observation_space
    assert env.single_action_space == hotlap.RacerEnv().action_space
    assert env.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP
    obs, _ = env.reset(seed=0)
    assert env.observation_space.contains(obs)
    obs, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(obs)
    assert rewards.shape == terminated.shape == truncated.shape == (5,)
    assert (terminated.dtype, truncated.dtype) == (np.bool_, np.bool_)


def test_keys_and_masks():
    env = hotlap.RacerVectorEnv(3, config={"episode": {"maxSteps": 9, "stillnessTimeoutTicks": 5}})
    _, info = env.reset(seed=0)
    assert set(info) == RESET_KEYS | masks(RESET_KEYS)
    assert all(info[key].all() for key in masks(RESET_KEYS))
    state = env.get_state()
    state["forward_mps"][1:] = 10.0
    env.set_state(state)
    coast = np.zeros((3, 3), np.float32)
    for _ in range(4):
        *_, info = env.step(coast)
        assert set(info) == STEP_KEYS | masks(STEP_KEYS)
        assert all(info[key].all() for key in masks(STEP_KEYS))
    _, _, terminated, truncated, info = env.step(coast)
    assert (terminated.tolist(), truncated.tolist()) == ([True, False, False], [False] * 3)
    assert set(info) == STEP_KEYS | FINAL_KEYS | masks(STEP_KEYS | FINAL_KEYS)
    for key in STEP_KEYS:
        assert info[f"_{key}"].tolist() == ([True] * 3 if key in SHARED_KEYS else [False, True, True]), key
    for key in FINAL_KEYS:
        assert info[f"_{key}"].tolist() == [True, False, False]
    assert set(info["final_info"]) == STEP_KEYS | masks(STEP_KEYS)
    assert all(info["final_info"][f"_{key}"].tolist() == [True, False, False] for key in STEP_KEYS)
    assert info["final_info"]["stillnessCounter"][0] == 5
    assert info["tick"].tolist() == [0, 5, 5]


def test_returned_arrays_are_not_changed_by_later_steps():
    env = hotlap.RacerVectorEnv(4, config=SHORT)
    obs, info = env.reset(seed=0)
    given = [obs, info]
    for tick in range(80):
        given.append(env.step(drive(obs, tick)))
        obs = given[-1][0]
    kept = copy.deepcopy(given)
    for tick in range(80):
        env.step(drive(obs, tick))
    assert data_equivalence(given, kept, exact=True)


def test_gymnasiums_record_episode_statistics_works():
    env = gym.make_vec("hotlap/Racer-v0", num_envs=4, vectorization_mode="vector_entry_point", config=SHORT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.wrappers.vector.RecordEpisodeStatistics(env)
        obs, _ = env.reset(seed=0)
        lengths = []
        for tick in range(100):
            obs, _, terminated, truncated, info = env.step(drive(obs, tick))
            ended = terminated | truncated
            lengths += info["episode"]["l"][ended].tolist() if ended.any() else []
        env.close()
    assert 25 in lengths
    assert 70 in lengths


# --- seeds and starts ---


def test_seeds_may_be_a_list():
    env = hotlap.RacerVectorEnv(3, config=SHORT_RANDOM)
    obs, _ = env.reset(seed=[5, 2**70, 5])
    single = hotlap.RacerEnv(config=SHORT_RANDOM)
    for car, seed in enumerate([5, 2**70, 5]):
        np.testing.assert_array_equal(obs[car], single.reset(seed=seed)[0])
    mixed, _ = env.reset(seed=[5, None, None])
    np.testing.assert_array_equal(mixed[0], obs[0])
    assert not np.array_equal(mixed[1], mixed[2])


@pytest.mark.parametrize("seed", [0, 2**31, 2**64 - 2, 2**200])
def test_seeds_of_any_size(seed):
    env = hotlap.RacerVectorEnv(4, config=SHORT_RANDOM)
    obs, _ = env.reset(seed=seed)
    again, _ = env.reset(seed=seed)
    np.testing.assert_array_equal(obs, again)
    np.testing.assert_array_equal(obs[3], hotlap.RacerEnv(config=SHORT_RANDOM).reset(seed=seed + 3)[0])


def test_without_a_seed_a_reset_begins_the_next_episodes():
    env, single = hotlap.RacerVectorEnv(2, config=SHORT_RANDOM), hotlap.RacerEnv(config=SHORT_RANDOM)
    first, _ = env.reset(seed=3)
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    single.reset(seed=3)
    np.testing.assert_array_equal(second[0], single.reset()[0])


@pytest.mark.parametrize(
    ("seed", "words"),
    [([1, 2], "one seed for each of the 3 cars, got 2"), ("1", "seed must be a whole number"), (1.5, "whole number"),
     ([1, "2", 3], "whole numbers or None"), ([1, 2.5, 3], "whole numbers or None")],
)  # fmt: skip
def test_invalid_seeds_are_refused_and_no_car_moves(seed, words):
    env = begun(config=SHORT_RANDOM)
    before = env.get_state()
    with pytest.raises(ConfigError, match=words):
        env.reset(seed=seed)
    assert_same_state(env.get_state(), before)


def test_the_start_can_be_chosen_at_reset():
    env = hotlap.RacerVectorEnv(2)
    assert (env.reset(seed=0)[1]["speed"] == 0.0).all()
    assert (env.reset(seed=0, options={"start": "random"})[1]["speed"] > 0.0).all()
    with pytest.raises(ConfigError, match="unknown key 'begin'"):
        env.reset(options={"begin": "random"})


# --- refusals ---


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        *[({"num_envs": number}, ConfigError, "num_envs must be") for number in (0, -1, 2.0, 10**23)],
        *[({"num_threads": number}, ConfigError, "num_threads must be") for number in (0, 1.5)],
        ({"render_mode": "rgb_array"}, ConfigError, "cannot render"),
        ({"track_id": []}, ConfigError, "at least one track"),
        ({"track_id": ["track-01", "nope"]}, UnknownTrackError, "'nope'"),
        ({"config": {"wieghts": {}}}, ConfigError, "wieghts"),
    ],
)
def test_bad_arguments_are_refused(arguments, error, words):
    with pytest.raises(error, match=words):
        hotlap.RacerVectorEnv(**arguments)


def test_step_before_reset_is_refused():
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        hotlap.RacerVectorEnv(2).step(np.zeros((2, 3), np.float32))


@pytest.mark.parametrize(
    "actions",
    [np.zeros((2, 3)), np.zeros(3), np.zeros((3, 2)), np.full((3, 3), np.nan), None, [[0, 0, 0], [0, 0], [0, 0, 0]],
     [[0, 0, 0], [0, np.inf, 0], [0, 0, 0]]],
)  # fmt: skip
def test_bad_actions_are_refused_and_no_car_moves(actions):
    env = begun()
    env.step(np.ones((3, 3), np.float32))
    before = env.get_state()
    with pytest.raises(ActionError, match="action"):
        env.step(actions)
    assert_same_state(env.get_state(), before)


# --- saved states ---


def test_a_restored_batch_continues_bit_identically_across_episodes():
    env = hotlap.RacerVectorEnv(5, ["track-01", "track-03"], SHORT_RANDOM)
    obs, _ = env.reset(seed=4)
    for tick in range(50):
        obs, *_ = env.step(drive(obs, tick))
    state = env.get_state()
    other = hotlap.RacerVectorEnv(5, ["track-01", "track-03"], SHORT_RANDOM, num_threads=2)
    other.set_state(state)
    assert_same_state(other.get_state(), state)
    for tick in range(100):
        actions = drive(obs, tick)
        here, there = env.step(actions), other.step(actions)
        assert data_equivalence(here, there, exact=True)
        obs = here[0]
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])


def test_a_state_of_another_batch_is_refused_and_nothing_changes():
    env = begun()
    before = env.get_state()
    single, two_tracks = hotlap.RacerEnv(), begun(3, ["track-01", "track-02"])
    single.reset(seed=0)
    for state in (single.get_state(), two_tracks.get_state(), {}, {**before, "node": before["node"] - 1}):
        with pytest.raises(StateError):
            env.set_state(state)
        assert_same_state(env.get_state(), before)


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_is_independent(clone):
    env = hotlap.RacerVectorEnv(3, config=SHORT)
    obs, _ = env.reset(seed=0)
    twin = clone(env)
    before = env.get_state()
    for tick in range(80):
        twin.step(drive(obs, tick))
    assert_same_state(env.get_state(), before)
    for tick in range(80):
        env.step(drive(obs, tick))
    assert_same_state(env.get_state(), twin.get_state())


def test_close_can_be_called_twice():
    env = begun()
    env.close()
    env.close()
    assert env.closed
