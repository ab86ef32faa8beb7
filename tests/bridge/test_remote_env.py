"""The remote environment is the local one: same spaces, same traces, same errors."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import hotlap
from bridge.conversation import SHORT_RANDOM
from hotlap.bridge.remote_env import config_json
from hotlap.bridge.simulation import settings_from
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ActionError, BridgeConnectionError, ConfigError, UnknownTrackError
from hotlap.tracks.golden_traces import reflexes


@pytest.fixture
def make(bridge_server):
    """Makes remote environments and closes them."""
    made = []

    def make(**arguments) -> hotlap.RemoteRacerEnv:
        made.append(hotlap.RemoteRacerEnv(bridge_server.url, **arguments))
        return made[-1]

    yield make
    for env in made:
        env.close()


def rollout(env: gym.Env, num_ticks: int) -> list:
    """What a car driven by reflexes meets, over seeds, starts and ends of episodes."""
    obs, info = env.reset(seed=5)
    seen = [obs, info]
    for tick in range(num_ticks):
        obs, *rest = env.step(reflexes(obs[None], tick)[0])
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


@pytest.mark.parametrize("config", [None, SHORT_RANDOM, {"weights": {"speedBonus": 0.123456789}}])
def test_the_trace_is_the_local_one_bit_for_bit(make, config):
    local = hotlap.RacerEnv("track-03", config=config)
    assert_same(rollout(make(track_id="track-03", config=config), 300), rollout(local, 300))


def test_spaces_are_the_local_ones(make):
    local, remote = hotlap.RacerEnv(), make()
    assert remote.action_space == local.action_space
    assert remote.observation_space == local.observation_space
    assert remote.metadata["render_fps"] == local.metadata["render_fps"]


def test_a_seed_drawn_by_the_environment_is_the_one_the_local_draws(make):
    local, remote = (env(config=SHORT_RANDOM) for env in (hotlap.RacerEnv, make))
    for env in (local, remote):
        env.np_random = np.random.default_rng(7)
    for _ in range(3):
        np.testing.assert_array_equal(remote.reset()[0], local.reset()[0])


@pytest.mark.parametrize("seed", [0, 2**31, 2**64 - 1, 2**64, 2**200])
def test_seeds_of_any_size(make, seed):
    np.testing.assert_array_equal(
        make(config=SHORT_RANDOM).reset(seed=seed)[0], hotlap.RacerEnv(config=SHORT_RANDOM).reset(seed=seed)[0]
    )


def test_gymnasium_finds_nothing_wrong(bridge_server):
    env = gym.make("hotlap/RemoteRacer-v0", bridge_url=bridge_server.url, track_id="track-02")
    assert isinstance(env.unwrapped, hotlap.RemoteRacerEnv)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_stable_baselines3_finds_nothing_wrong(make):
    from stable_baselines3.common.env_checker import check_env as check_for_sb3

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_for_sb3(make())


@pytest.mark.parametrize("action", [[np.nan, 0, 0], [0, np.inf, 0], [0, 0], [[0, 0, 0]], "gas", None])
def test_a_bad_action_is_the_local_error_and_nothing_moves(make, action):
    local, remote = hotlap.RacerEnv(), make()
    for env in (local, remote):
        env.reset(seed=0)
    with pytest.raises(ActionError) as expected:
        local.step(action)
    with pytest.raises(ActionError) as raised:
        remote.step(action)
    assert str(raised.value) == str(expected.value)
    assert remote.step([0, 1, 0])[4]["tick"] == 1


def test_actions_out_of_range_are_clipped(make):
    local, remote = hotlap.RacerEnv(), make()
    for env in (local, remote):
        env.reset(seed=0)
    for action in ([5, 9, -3], [-1e300, 1e300, 0], np.array([2, 2, 2], np.float64)):
        assert_same(list(remote.step(action)), list(local.step(action)))


def test_a_step_before_a_reset_is_refused(make):
    with pytest.raises(gym.error.ResetNeeded):
        make().step([0, 1, 0])


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        ({"track_id": "nowhere"}, UnknownTrackError, "track 'nowhere' is not known"),
        ({"config": {"weight": 1}}, ConfigError, "unknown key 'weight'"),
        ({"config": 5}, ConfigError, "must be a mapping or a path"),
        ({"render_mode": "rgb_array"}, ConfigError, "draws nothing"),
    ],
)
def test_bad_arguments_are_refused(make, arguments, kind, words):
    with pytest.raises(kind, match=words):
        make(**arguments)


@pytest.mark.parametrize("options", [{"start": "middle"}, {"speed": 3}, "random"])
def test_bad_options_are_refused(make, options):
    with pytest.raises(ConfigError):
        make().reset(options=options)


def test_without_a_bridge_it_says_how_to_start_one():
    with pytest.raises(BridgeConnectionError, match="hotlap bridge"):
        gym.make("hotlap/RemoteRacer-v0", bridge_url="ws://127.0.0.1:1")


def test_after_close_it_says_so(make):
    env = make()
    env.reset(seed=0)
    env.close()
    env.close()
    with pytest.raises(BridgeConnectionError, match="closed"):
        env.step([0, 1, 0])


def test_a_config_file_is_read_here_and_never_sent_as_a_path(make, tmp_path):
    path = tmp_path / "ai-config.json"
    path.write_text('{"episode": {"maxSteps": 2}}')
    env = make(config=path)
    env.reset(seed=0)
    assert [env.step([0, 1, 0])[3] for _ in range(2)] == [False, True]
    sent = bytes(config_json(path))
    assert b"ai-config" not in sent
    assert b'"maxSteps":2' in sent


def test_settings_sent_are_the_settings_read():
    source = {"weights": {"progress": 0.1, "stillnessSpeedThreshold": 1.7}, "episode": {"start": "random"}}
    assert settings_from(bytes(config_json(source))) == RacerSettings.load(source)
