"""The remote batch equals the local one, in JSON and in the binary format."""

from contextlib import ExitStack, closing

import gymnasium as gym
import numpy as np
import pytest

import hotlap
from bridge.json_clients import SHORT_RANDOM
from hotlap.bridge.protocol import MAX_REQUEST_BYTES
from hotlap.bridge.remote_fleet import step_template
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ActionError, BridgeConnectionError, ConfigError, UnknownTrackError
from hotlap.tracks.golden_traces import scripted_actions

SHORT_TRACK = "train-044"  # 660 m, the shortest of all
FORMATS = pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])


@pytest.fixture
def make(bridge_server):
    """A factory of remote batches, which closes them at the end."""
    with ExitStack() as stack:

        def make(num_envs: int = 3, **arguments) -> hotlap.RemoteRacerVectorEnv:
            env = hotlap.RemoteRacerVectorEnv(num_envs, bridge_server.url, **arguments)
            return stack.enter_context(closing(env))

        yield make


def assert_same_info(a: dict, b: dict) -> None:
    """The same keys, masks, and values wherever the masks are true."""
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


@FORMATS
@pytest.mark.parametrize("observation", ["rays", "road"])
def test_traces_are_bit_identical_to_the_local_batch(make, binary, observation):
    ids = ["track-01", "track-03"]
    local = hotlap.RacerVectorEnv(7, ids, config=SHORT_RANDOM, observation=observation)
    remote = make(7, track_id=ids, config=SHORT_RANDOM, binary=binary, observation=observation)
    assert remote.observation_space == local.observation_space
    num_ended = 0
    for seed, options in ((3, None), (None, {"start": "line"}), ([1, 2, 3, 4, 5, 6, 2**70], None)):
        expected = local.reset(seed=seed, options=options)
        assert_same(remote.reset(seed=seed, options=options), expected)
        obs = expected[0]
        for tick in range(100):
            actions = scripted_actions(obs, tick)
            actions[::3] = [0.0, 0.0, 1.0]
            expected = local.step(actions)
            assert_same(remote.step(actions), expected)
            obs = expected[0]
            num_ended += int((expected[2] | expected[3]).sum())
    assert num_ended > 20


def test_lap_times_equal_the_local_batch(make):
    local = hotlap.RacerVectorEnv(2, SHORT_TRACK)
    remotes = [make(2, track_id=SHORT_TRACK, binary=binary) for binary in (True, False)]
    obs, _ = local.reset(seed=0)
    for remote in remotes:
        remote.reset(seed=0)
    driver = CasualDriver()
    driver.begin(local.fleet, 0)
    laps = 0
    for _ in range(1750):
        actions = driver.act(obs)
        actions[0] = [0.0, 0.0, 1.0]
        expected = local.step(actions)
        obs = expected[0]
        for remote in remotes:
            assert_same(remote.step(actions), expected)
        laps += int("lapTime" in expected[4])
    assert laps == 1


def test_both_formats_give_the_same_steps(make):
    one, other = make(binary=True), make(binary=False)
    one.reset(seed=1), other.reset(seed=1)
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(200):
        # Subnormal and tiny numbers too: nine digits must round-trip each of them through JSON.
        actions = (rng.normal(size=(3, 3)) * 10.0 ** rng.integers(-45, 1, (3, 3))).astype(np.float32)
        steps.append((one.step(actions), other.step(actions)))
        assert_same(*steps[-1])
        if len(steps) == 1:
            kept = [(obs.copy(), rewards.copy()) for obs, rewards, *_ in steps[0]]
    for (obs, rewards, *_), (first_obs, first_rewards) in zip(steps[0], kept, strict=True):
        np.testing.assert_array_equal(obs, first_obs)  # later steps do not change returned arrays
        np.testing.assert_array_equal(rewards, first_rewards)


@FORMATS
def test_the_largest_batch_fits_into_a_request(make, binary):
    env = make(1024, binary=binary)
    env.reset(seed=0)
    worst = np.full((1024, 3), -1.23456789e-30, np.float32)
    obs, *_ = env.step(worst)
    assert obs.shape == (1024, 14)
    assert len(step_template(1024) % tuple(worst.ravel().tolist())) < MAX_REQUEST_BYTES


def test_make_vec_makes_it(bridge_server):
    env = gym.make_vec(
        "hotlap/RemoteRacer-v0", num_envs=4, vectorization_mode="vector_entry_point", bridge_url=bridge_server.url
    )
    assert isinstance(env, hotlap.RemoteRacerVectorEnv)
    assert env.reset(seed=0)[0].shape == (4, 14)
    assert env.metadata["autoreset_mode"] == gym.vector.AutoresetMode.SAME_STEP
    assert env.observation_space.shape == (4, 14)
    env.close()


def test_without_a_seed_it_draws_the_seeds_that_the_local_batch_draws(make):
    local, remote = hotlap.RacerVectorEnv(3, config=SHORT_RANDOM), make(config=SHORT_RANDOM)
    for env in (local, remote):
        env.np_random = np.random.default_rng(7)
    for seed in (None, None, [None, 4, None]):
        np.testing.assert_array_equal(remote.reset(seed=seed)[0], local.reset(seed=seed)[0])


@FORMATS
def test_one_bad_action_is_refused_and_no_car_moves(make, binary):
    env = make(binary=binary)
    env.reset(seed=0)
    actions = np.zeros((3, 3), np.float32)
    for bad in (np.nan, np.inf, -np.inf):
        actions[1, 2] = bad
        with pytest.raises(ActionError, match=r"action of car 1 must be finite, got .*; nothing moved"):
            env.step(actions)
    for wrong_shape in (np.zeros(3), np.zeros((2, 3)), np.zeros((3, 2)), "gas"):
        with pytest.raises(ActionError):
            env.step(wrong_shape)
    assert env.step(np.zeros((3, 3), np.float32))[4]["tick"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"num_envs": 0}, ConfigError, "from 1 to 65536, got 0"),
        ({"num_envs": 65537}, ConfigError, "from 1 to 65536, got 65537"),
        ({"num_envs": 2.0}, ConfigError, "whole number"),
        ({"track_id": []}, ConfigError, "at least one track"),
        ({"track_id": ["track-01", "nowhere"]}, UnknownTrackError, "'nowhere' is not known"),
        ({"render_mode": "rgb_array"}, ConfigError, "cannot render"),
        (
            {"observation": "camera"},
            ConfigError,
            "observation must be 'rays' or 'road' or 'road-2' or 'race' or 'race-2', got 'camera'",
        ),
    ],
)
def test_bad_arguments_are_refused(make, arguments, kind, words):
    with pytest.raises(kind, match=words):
        make(**arguments)


def test_bad_seeds_and_a_step_before_reset_or_after_close_are_refused(make):
    env = make()
    for seed in ([1, 2], "1", 1.5, [1, "2", 3]):
        with pytest.raises(ConfigError, match="seed"):
            env.reset(seed=seed)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros((3, 3), np.float32))
    env.reset(seed=0)
    env.close()
    with pytest.raises(BridgeConnectionError, match="closed"):
        env.step(np.zeros((3, 3), np.float32))
