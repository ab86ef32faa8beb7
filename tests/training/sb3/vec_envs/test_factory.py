"""The environments of a run are made as configured, saved and restored where possible, and closed when refused."""

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.errors import BridgeConnectionError, ConfigError, TrackError, TrainingError
from hotlap.runs.run_config import RacerOptions, in_process
from hotlap.training.sb3.vec_envs.envpool import EnvPoolVecEnv
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs, make_cars
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from tiny_runs import LUNAR, RACER, REMOTE_RACER, tiny_config

NO_BRIDGE = {"bridge_url": "ws://127.0.0.1:9"}
PLAIN = {"obs": False, "reward": False}


def play(env, steps, seed=0):
    """Take random actions; the observations, rewards and dones as bytes."""
    rng = np.random.default_rng(seed)
    space, seen = env.action_space, []
    for _ in range(steps):
        if hasattr(space, "n"):
            actions = rng.integers(space.n, size=env.num_envs)
        else:
            actions = rng.uniform(space.low, space.high, (env.num_envs, *space.shape)).astype(np.float32)
        obs, rewards, dones, _ = env.step(actions)
        seen.append((obs.tobytes(), rewards.tobytes(), dones.tobytes()))
    return seen


# --- making ---


def test_racer_options_reach_the_cars():
    options = {"track": "track-02", "action_repeat": 3, "stack": 2, "lap_fourier": 4}
    env = TrainingEnvs(tiny_config(num_envs=5, racer=options, normalize=PLAIN)).env
    assert isinstance(env, RacerVecEnv)
    assert (env.num_envs, env.action_repeat, env.stack, env.lap_fourier) == (5, 3, 2, 4)
    assert env.fleet.settings.episode.max_ticks == 30
    assert env.observation_space.shape == (2 * 14 + 8,)
    other = make_cars(RacerOptions(track="track-01"), 5)
    for one in (env, other):
        one.seed(0)
        one.reset()
    assert play(env, 3) != play(other, 3)


def test_other_ids_are_made_by_gymnasium_with_env_args():
    env = TrainingEnvs(tiny_config("sac", LUNAR, 2, normalize=PLAIN)).env
    assert isinstance(env, DummyVecEnv)
    assert env.get_attr("continuous") == [True, True]


def test_the_envpool_backend_uses_the_seed_of_the_run():
    pytest.importorskip("envpool")
    config = tiny_config("ppo", LUNAR, 4, backend="envpool", normalize=PLAIN)
    first, second, other = (TrainingEnvs(one).env for one in (config, config, tiny_config(
        "ppo", LUNAR, 4, backend="envpool", normalize=PLAIN, seed=43
    )))  # fmt: skip
    assert isinstance(first, EnvPoolVecEnv)
    starts = [env.reset() for env in (first, second, other)]
    np.testing.assert_array_equal(starts[0], starts[1])
    assert (starts[0] != starts[2]).any()


def test_cars_behind_a_bridge_are_bit_identical_to_local_cars(bridge_server):
    racer = {"episode": {"max_ticks": 30, "start": "random"}, "tracks": ["track-02", "track-03"]}
    racer |= {"action_repeat": 3, "stack": 2, "lap_fourier": 4, "observation": "road"}
    arguments = {"bridge_url": bridge_server.url}
    remote = tiny_config(env=REMOTE_RACER, num_envs=3, env_args=arguments, racer=racer, normalize=PLAIN)
    local = in_process(remote)
    assert (local.env, local.num_envs, local.racer, local.env_args) == (RACER, 3, remote.racer, {})
    here, there = TrainingEnvs(local), TrainingEnvs(remote)
    assert here.env.observation_space == there.env.observation_space
    for envs in (here, there):
        envs.env.seed(7)
        envs.env.reset()
    assert play(here.env, 50) == play(there.env, 50)
    saved, again = here.capture(), there.capture()
    assert saved.keys() == again.keys()
    assert [name for name in saved if saved[name].tobytes() != again[name].tobytes()] == []
    assert there.env.reward_term_means == here.env.reward_term_means
    there.close()


def test_in_process_leaves_other_configurations_unchanged():
    for config in (tiny_config(), tiny_config(env=LUNAR)):
        assert in_process(config) is config


def test_the_normalizer_uses_the_settings():
    config = tiny_config(
        normalize={"obs": True, "reward": False, "clip_obs": 3.0, "clip_reward": 4.0}, ppo={"gamma": 0.9}
    )
    env = TrainingEnvs(config).env
    assert isinstance(env, VecNormalize)
    assert (env.norm_obs, env.norm_reward, env.clip_obs, env.clip_reward, env.gamma) == (True, False, 3.0, 4.0, 0.9)


def test_without_normalization_there_is_no_normalizer():
    assert not isinstance(TrainingEnvs(tiny_config(normalize=PLAIN)).env, VecNormalize)


# --- refusals ---


@pytest.mark.parametrize(
    ("config", "kind", "words"),
    [
        (tiny_config("sac", "CartPole-v1"), TrainingError, "SAC needs continuous actions; those of CartPole-v1 are"),
        (tiny_config(env="Blackjack-v1"), ConfigError, "observations must be Box"),
        (tiny_config(env="FrozenLake-v1"), TrainingError, "its observations, Discrete.16., cannot be normalized"),
        (tiny_config(env="NoSuch-v0"), ConfigError, "'NoSuch-v0' is not known to Gymnasium"),
        (tiny_config(env="CartPole-v1", env_args={"wings": 2}), ConfigError, "cannot be made with"),
        (tiny_config(racer={"track": "nowhere"}), TrackError, "track 'nowhere' is not known"),
        (tiny_config(env=REMOTE_RACER, env_args=NO_BRIDGE), BridgeConnectionError, "no bridge"),
    ],
)  # fmt: skip
def test_unusable_environments_are_refused_in_one_line(config, kind, words):
    with pytest.raises(kind, match=words) as caught:
        TrainingEnvs(config)
    assert "\n" not in str(caught.value)


def test_refused_environments_are_closed(monkeypatch):
    closed = []
    monkeypatch.setattr(DummyVecEnv, "close", lambda self: closed.append(self.num_envs))
    with pytest.raises(TrainingError):
        TrainingEnvs(tiny_config("sac", "CartPole-v1", 3))
    assert closed == [3]


def test_close_reaches_the_environments_under_the_normalizer(monkeypatch):
    closed = []
    monkeypatch.setattr(DummyVecEnv, "close", lambda self: closed.append(self.num_envs))
    TrainingEnvs(tiny_config(env="CartPole-v1", num_envs=3)).close()
    assert closed == [3]


# --- saving ---


@pytest.mark.parametrize("env", [RACER, LUNAR])
def test_restored_environments_continue_bit_identically(env):
    config = tiny_config(env=env, num_envs=2, normalize=PLAIN)
    envs, others = TrainingEnvs(config), TrainingEnvs(config)
    envs.env.seed(3)
    envs.env.reset()
    play(envs.env, 40)
    assert others.restore(envs.capture())
    assert play(envs.env, 60, seed=1) == play(others.env, 60, seed=1)


def test_environments_that_cannot_be_saved_restart_with_a_warning(caplog):
    pytest.importorskip("envpool")
    envs = TrainingEnvs(tiny_config(env=LUNAR, num_envs=2, backend="envpool"))
    assert envs.capture() is None
    assert not envs.restore(None)
    assert "cannot be saved. Their episodes restart" in caplog.text


@pytest.mark.parametrize("env", [RACER, LUNAR])
def test_a_state_that_does_not_fit_restarts_the_episodes_with_a_warning(env, caplog):
    envs, others = (TrainingEnvs(tiny_config(env=env, num_envs=count, normalize=PLAIN)) for count in (2, 3))
    envs.env.reset()
    assert not others.restore(envs.capture())
    [message] = caplog.messages
    assert message.startswith("state: ")
    assert "Their episodes restart" in message
