"""The remote environment equals the local one: same spaces, same traces, same errors."""

import warnings
from contextlib import ExitStack, closing

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hotlap
from bridge.json_clients import SHORT_RANDOM
from hotlap.bridge.remote_env import config_json
from hotlap.bridge.simulation_plan import settings_from
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, BridgeConnectionError, ConfigError, UnknownTrackError
from hotlap.tracks.golden_traces import scripted_actions


@pytest.fixture
def make(bridge_server):
    """A factory of remote environments, which closes them at the end."""
    with ExitStack() as stack:
        yield lambda **arguments: stack.enter_context(closing(hotlap.RemoteRacerEnv(bridge_server.url, **arguments)))


def rollout(env: gym.Env, num_ticks: int) -> list:
    """Everything a simple driver receives over several episodes; some of its actions are out of range."""
    obs, info = env.reset(seed=5)
    seen = [obs, info]
    for tick in range(num_ticks):
        action = scripted_actions(obs[None], tick)[0].astype(np.float64)
        obs, *rest = env.step(action * (1e300 if tick % 7 == 0 else 1.0))
        seen += [obs, *rest]
        if rest[1] or rest[2]:
            obs, info = env.reset(options={"start": "line"} if tick % 3 == 0 else None)
            seen += [obs, info]
    return seen


def assert_same(a: list, b: list) -> None:
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert type(one) is type(other)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()
        elif isinstance(one, dict):
            assert list(one.items()) == list(other.items())
            assert [type(value) for value in one.values()] == [type(value) for value in other.values()]
        else:
            assert one == other


@pytest.mark.parametrize("observation", ["rays", "road", "road-2"])
@pytest.mark.parametrize("config", [None, SHORT_RANDOM, {"weights": {"speedBonus": 0.123456789}}])
def test_traces_are_bit_identical_to_the_local_environments(make, config, observation):
    local = hotlap.RacerEnv("track-03", config=config, observation=observation)
    remote = make(track_id="track-03", config=config, observation=observation)
    assert (remote.action_space, remote.observation_space) == (local.action_space, local.observation_space)
    assert remote.metadata["render_fps"] == local.metadata["render_fps"]
    assert_same(rollout(remote, 300), rollout(local, 300))


def test_seeds_are_of_any_size_and_without_one_it_draws_the_local_environments(make):
    local, remote = (env(config=SHORT_RANDOM) for env in (hotlap.RacerEnv, make))
    for env in (local, remote):
        env.np_random = np.random.default_rng(7)
    for seed in (None, None, None, 0, 2**31, 2**64 - 1, 2**64, 2**200):
        np.testing.assert_array_equal(remote.reset(seed=seed)[0], local.reset(seed=seed)[0])


def test_the_checkers_of_gymnasium_and_stable_baselines3_pass(bridge_server):
    from stable_baselines3.common.env_checker import check_env as check_for_sb3

    env = gym.make("hotlap/RemoteRacer-v0", bridge_url=bridge_server.url, track_id="track-02")
    assert isinstance(env.unwrapped, hotlap.RemoteRacerEnv)
    with closing(env), warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_for_sb3(env.unwrapped)


@pytest.mark.parametrize("action", [[np.nan, 0, 0], [0, np.inf, 0], [0, 0], [[0, 0, 0]], "gas", None])
def test_a_bad_action_raises_the_local_error_and_the_car_does_not_move(make, action):
    local, remote = hotlap.RacerEnv(), make()
    for env in (local, remote):
        env.reset(seed=0)
    with pytest.raises(ActionError) as expected:
        local.step(action)
    with pytest.raises(ActionError) as raised:
        remote.step(action)
    assert str(raised.value) == str(expected.value)
    assert remote.step([0, 1, 0])[4]["tick"] == 1


def test_a_step_before_reset_or_after_close_is_refused(make):
    env = make()
    with pytest.raises(gym.error.ResetNeeded):
        env.step([0, 1, 0])
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(BridgeConnectionError, match="closed"):
        env.step([0, 1, 0])


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"track_id": "nowhere"}, UnknownTrackError, "track 'nowhere' is not known"),
        ({"config": {"weight": 1}}, ConfigError, "unknown key 'weight'"),
        ({"config": 5}, ConfigError, "must be a mapping or a path"),
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


def test_bad_options_are_refused(make):
    env = make()
    for options in ({"start": "middle"}, {"speed": 3}, "random"):
        with pytest.raises(ConfigError):
            env.reset(options=options)


def test_a_config_file_is_read_by_the_client_and_never_sent_as_a_path(make, tmp_path):
    path = tmp_path / "ai-config.json"
    path.write_text('{"episode": {"maxSteps": 2}}')
    env = make(config=path)
    env.reset(seed=0)
    assert [env.step([0, 1, 0])[3] for _ in range(2)] == [False, True]
    sent = bytes(config_json(path))
    assert (b"ai-config" in sent, b'"maxSteps":2' in sent) == (False, True)
    source = {"weights": {"progress": 0.1, "stillnessSpeedThreshold": 1.7}, "episode": {"start": "random"}}
    assert settings_from(bytes(config_json(source))) == RacerSettings.load(source)
