"""The remote batch is the local one, in JSON and in the binary form."""

import gymnasium as gym
import numpy as np
import pytest

import hotlap
from bridge.conversation import SHORT_RANDOM
from hotlap.bridge.protocol import MAX_REQUEST_BYTES
from hotlap.bridge.remote_vector import _step_pattern
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ActionError, BridgeConnectionError, ConfigError, UnknownTrackError
from hotlap.tracks.golden_traces import reflexes

FORMS = pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])


@pytest.fixture
def make(bridge_server):
    """Makes remote batches and closes them."""
    made = []

    def make(num_envs: int = 3, **arguments) -> hotlap.RemoteRacerVectorEnv:
        made.append(hotlap.RemoteRacerVectorEnv(num_envs, bridge_server.url, **arguments))
        return made[-1]

    yield make
    for env in made:
        env.close()


def assert_same_info(a: dict, b: dict) -> None:
    """The same keys, masks, and values wherever the masks hold."""
    assert set(a) == set(b)
    for key in a:
        if key.startswith("_"):
            np.testing.assert_array_equal(a[key], b[key], err_msg=key)
        elif key == "final_info":
            assert_same_info(a[key], b[key])
        else:
            assert a[key].dtype == b[key].dtype, key
            mask = a[f"_{key}"]
            assert a[key][mask].tobytes() == b[key][mask].tobytes(), key


def assert_same(a: tuple, b: tuple) -> None:
    for one, other in zip(a[:-1], b[:-1], strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()
    assert_same_info(a[-1], b[-1])


@FORMS
def test_the_batch_is_the_local_one_bit_for_bit(make, binary):
    ids = ["track-01", "track-03"]
    local = hotlap.RacerVectorEnv(7, ids, config=SHORT_RANDOM)
    remote = make(7, track_id=ids, config=SHORT_RANDOM, binary=binary)
    num_ended = 0
    for seed, options in ((3, None), (None, {"start": "line"}), ([1, 2, 3, 4, 5, 6, 2**70], None)):
        told = local.reset(seed=seed, options=options)
        assert_same(remote.reset(seed=seed, options=options), told)
        obs = told[0]
        for tick in range(100):
            actions = reflexes(obs, tick)
            actions[::3] = [0.0, 0.0, 1.0]
            told = local.step(actions)
            assert_same(remote.step(actions), told)
            obs = told[0]
            num_ended += int((told[2] | told[3]).sum())
    assert num_ended > 20


@FORMS
def test_laps_are_told(make, binary):
    local, remote = hotlap.RacerVectorEnv(2), make(2, binary=binary)
    obs, _ = local.reset(seed=0)
    remote.reset(seed=0)
    driver = CasualDriver()
    driver.begin(local.fleet, 0)
    laps = 0
    for _ in range(2800):
        actions = driver.act(obs)
        actions[0] = [0.0, 0.0, 1.0]
        told = local.step(actions)
        obs = told[0]
        assert_same(remote.step(actions), told)
        laps += int("lapTime" in told[4])
    assert laps == 1


def test_both_forms_say_the_same(make):
    one, other = make(binary=True), make(binary=False)
    one.reset(seed=1), other.reset(seed=1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        # Small, subnormal and tiny numbers too: nine digits must bring each through JSON unchanged.
        actions = (rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-45, 1, (3, 3))).astype(np.float32)
        assert_same(one.step(actions), other.step(actions))


def test_what_was_given_out_is_not_changed_by_later_steps(make):
    env = make(config=SHORT_RANDOM)
    env.reset(seed=0)
    obs, rewards, *_ = env.step(np.zeros((3, 3), np.float32))
    kept = obs.copy(), rewards.copy()
    for _ in range(5):
        env.step(np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(obs, kept[0])
    np.testing.assert_array_equal(rewards, kept[1])


@FORMS
def test_the_largest_batch_fits_into_a_request(make, binary):
    env = make(1024, binary=binary)
    env.reset(seed=0)
    worst = np.full((1024, 3), -1.23456789e-30, np.float32)
    obs, *_ = env.step(worst)
    assert obs.shape == (1024, 14)
    assert len(_step_pattern(1024) % tuple(worst.ravel().tolist())) < MAX_REQUEST_BYTES


def test_make_vec_gives_it(bridge_server):
    env = gym.make_vec(
        "hotlap/RemoteRacer-v0", num_envs=4, vectorization_mode="vector_entry_point", bridge_url=bridge_server.url
    )
    assert isinstance(env, hotlap.RemoteRacerVectorEnv)
    assert env.reset(seed=0)[0].shape == (4, 14)
    assert env.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP
    assert env.observation_space.shape == (4, 14)
    env.close()


def test_a_seed_drawn_by_the_environment_is_the_one_the_local_draws(make):
    local, remote = hotlap.RacerVectorEnv(3, config=SHORT_RANDOM), make(config=SHORT_RANDOM)
    for env in (local, remote):
        env.np_random = np.random.default_rng(7)
    for seed in (None, None, [None, 4, None]):
        np.testing.assert_array_equal(remote.reset(seed=seed)[0], local.reset(seed=seed)[0])


@FORMS
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_bad_action_stops_all_cars(make, binary, bad):
    env = make(binary=binary)
    env.reset(seed=0)
    actions = np.zeros((3, 3), np.float32)
    actions[1, 2] = bad
    with pytest.raises(ActionError, match=r"action of car 1 must be finite, got .*; nothing moved"):
        env.step(actions)
    assert env.step(np.zeros((3, 3), np.float32))[4]["tick"].tolist() == [1, 1, 1]


@pytest.mark.parametrize("actions", [np.zeros(3), np.zeros((2, 3)), np.zeros((3, 2)), "gas"])
def test_actions_of_another_shape_are_refused(make, actions):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ActionError):
        env.step(actions)


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"num_envs": 0}, ConfigError, "from 1 to 1024, got 0"),
        ({"num_envs": 1025}, ConfigError, "from 1 to 1024, got 1025"),
        ({"num_envs": 2.0}, ConfigError, "whole number"),
        ({"track_id": []}, ConfigError, "at least one track"),
        ({"track_id": ["track-01", "nowhere"]}, UnknownTrackError, "'nowhere' is not known"),
        ({"render_mode": "rgb_array"}, ConfigError, "draws nothing"),
    ],
)
def test_bad_arguments_are_refused(make, arguments, kind, words):
    with pytest.raises(kind, match=words):
        make(**arguments)


@pytest.mark.parametrize("seed", [[1, 2], "1", 1.5, [1, "2", 3]])
def test_other_seeds_are_refused(make, seed):
    with pytest.raises(ConfigError, match="seed"):
        make().reset(seed=seed)


def test_a_step_before_a_reset_and_after_close_is_refused(make):
    env = make()
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros((3, 3), np.float32))
    env.reset(seed=0)
    env.close()
    with pytest.raises(BridgeConnectionError, match="closed"):
        env.step(np.zeros((3, 3), np.float32))
