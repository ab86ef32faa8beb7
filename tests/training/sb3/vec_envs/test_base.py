"""What all our VecEnvs have from their base class: bookkeeping, attributes and the order of calls."""

import copy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3.common.monitor import Monitor

from hotlap.errors import ActionError, ConfigError
from hotlap.training.sb3.vec_envs.base import BatchVecEnv
from hotlap.training.sb3.vec_envs.envpool import EnvPoolVecEnv
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv
from hotlap.training.sb3.vec_envs.vector_env import GymVectorVecEnv

pytestmark = pytest.mark.timeout(60)  # EnvPool imports a thousand environments

NUM_ENVS = 3
LIMIT = 12


def make_racer() -> BatchVecEnv:
    return RacerVecEnv(NUM_ENVS, config={"episode": {"maxSteps": LIMIT, "start": "random"}}, stack=2)


def make_vector() -> BatchVecEnv:
    make = [lambda: gym.make("Pendulum-v1", max_episode_steps=LIMIT)] * NUM_ENVS
    return GymVectorVecEnv(SyncVectorEnv(make, autoreset_mode=AutoresetMode.SAME_STEP))


def make_envpool() -> BatchVecEnv:
    pytest.importorskip("envpool")
    return EnvPoolVecEnv("Pendulum-v1", NUM_ENVS, 0, 1, {"max_episode_steps": LIMIT})


@pytest.fixture(params=[make_racer, make_vector, make_envpool])
def venv(request) -> BatchVecEnv:
    return request.param()


def actions_at(venv: BatchVecEnv, step: int) -> np.ndarray:
    space = venv.action_space
    return np.random.default_rng(step).uniform(space.low, space.high, (NUM_ENVS, *space.shape)).astype(np.float32)


def test_a_step_needs_a_reset_and_actions(venv):
    with pytest.raises(gym.error.ResetNeeded, match="call reset"):
        venv.step(actions_at(venv, 0))
    venv.reset()
    for _ in range(2):
        with pytest.raises(ActionError, match="step_async"):
            venv.step_wait()
        venv.step(actions_at(venv, 0))


def test_returns_and_lengths_restart_after_each_episode_and_each_reset(venv):
    venv.reset()
    for step in range(LIMIT // 2):
        venv.step(actions_at(venv, step))
    venv.reset()
    total = np.zeros(NUM_ENVS)
    for step in range(1, 2 * LIMIT + 1):
        _, rewards, dones, infos = venv.step(actions_at(venv, step))
        total += rewards
        assert dones.tolist() == [step % LIMIT == 0] * NUM_ENVS
        if not dones.any():
            assert infos == [{}] * NUM_ENVS
            continue
        for info, expected in zip(infos, total, strict=True):
            assert info["TimeLimit.truncated"] is True
            assert info["episode"]["l"] == LIMIT
            assert info["episode"]["r"] == pytest.approx(expected, abs=2e-5)
            assert 0.0 < info["episode"]["t"] == round(info["episode"]["t"], 6) < 60.0
        total[:] = 0.0


def test_returned_arrays_are_not_changed_by_later_steps(venv):
    returned = [venv.reset()]
    for step in range(LIMIT):
        obs, rewards, dones, infos = venv.step(actions_at(venv, step))
        returned += [obs, rewards, dones]
    returned += [info["terminal_observation"] for info in infos]
    before = copy.deepcopy(returned)
    for step in range(2 * LIMIT):
        venv.step(actions_at(venv, step))
    for array, expected in zip(returned, before, strict=True):
        np.testing.assert_array_equal(array, expected)


def test_it_counts_as_monitored_and_not_as_wrapped_in_anything_else(venv):
    assert venv.env_is_wrapped(Monitor) == [True] * NUM_ENVS
    assert venv.env_is_wrapped(Monitor, indices=1) == [True]
    assert venv.env_is_wrapped(gym.wrappers.TimeLimit) == [False] * NUM_ENVS
    assert venv.render_mode is None


@pytest.mark.parametrize("make", [make_racer, make_vector])
def test_attributes_and_methods_are_shared_by_all_environments(make):
    venv = make()
    venv.set_attr("colour", "red")
    assert venv.get_attr("colour") == ["red"] * NUM_ENVS
    assert venv.get_attr("num_envs", indices=[0, 2]) == [NUM_ENVS] * 2
    assert not venv.has_attr("wings")
    assert len(venv.env_method("reset")) == NUM_ENVS
    with pytest.raises(AttributeError):
        venv.env_method("fly")
    for call in (lambda: venv.set_attr("colour", "red", 1), lambda: venv.env_method("reset", indices=[0])):
        with pytest.raises(ConfigError, match="leave `indices` out"):
            call()
