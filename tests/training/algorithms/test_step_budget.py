"""Step budgets are exact, and whole rollouts give the stock library's weights."""

from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import ALGORITHMS, SMALL, tiny_config
from training.algorithms.small_learners import build, weights

EVERY_ALGORITHM = pytest.mark.parametrize("algo", ALGORITHMS)


@EVERY_ALGORITHM
@pytest.mark.parametrize(("num_envs", "asked", "done"), [(1, 50, 50), (1, 64, 64), (3, 50, 51), (3, 96, 96), (1, 1, 1)])
def test_a_budget_is_rounded_up_to_a_vector_step_only(algo, num_envs, asked, done):
    learner = build(algo, num_envs)
    step, actions_taken = learner.env.step, []

    def counting(actions):
        actions_taken.append(len(actions))
        return step(actions)

    learner.env.step = counting
    learner.learn(asked)
    assert (sum(actions_taken), learner.num_timesteps) == (done, done)


@pytest.mark.parametrize(("num_envs", "n_steps", "done"), [(1, 2048, 50_000), (512, 64, 50_176), (7, 2048, 50_001)])
def test_only_the_last_rollout_is_short(monkeypatch, num_envs, n_steps, done):
    """The stock library would train for 51,200 steps where 50,000 are asked for."""
    learner = build(num_envs=num_envs, ppo={"n_steps": n_steps, "batch_size": n_steps})
    planned = []

    def collect(self, env, callback, buffer, num_steps):
        assert buffer.buffer_size == num_steps
        planned.append(num_steps)
        self.num_timesteps += num_steps * env.num_envs
        return True

    monkeypatch.setattr(OnPolicyAlgorithm, "collect_rollouts", collect)
    monkeypatch.setattr(PPO, "train", lambda self: None)
    learner.learn(50_000)
    assert learner.num_timesteps == done
    assert set(planned[:-1]) == {n_steps}
    assert learner.is_rollout_short is (planned[-1] < n_steps)


def test_a_second_budget_has_whole_rollouts_again():
    learner = build()
    learner.learn(50)
    assert learner.rollout_buffer.buffer_size == 50 - 32
    learner.learn(64)
    assert learner.rollout_buffer.buffer_size == 32
    assert not learner.is_rollout_short


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize(("algo", "stock", "num_steps"), [("ppo", PPO, 64), ("a2c", A2C, 20), ("sac", SAC, 40)])
def test_whole_rollouts_give_the_weights_of_the_stock_library(num_envs, algo, stock, num_steps):
    ours = build(algo, num_envs)
    ours.learn(num_envs * num_steps)
    config = tiny_config(algo, "Pendulum-v1", num_envs, normalize={"obs": False, "reward": False})
    arguments = {"seed": 42, "policy_kwargs": {"net_arch": [8]}, **SMALL[algo]}
    theirs = stock("MlpPolicy", TrainingEnvs(config).env, **arguments)
    theirs.set_logger(Logger(None, []))
    theirs.learn(num_envs * num_steps)
    np.testing.assert_array_equal(weights(ours), weights(theirs))


@EVERY_ALGORITHM
def test_episodes_and_successes_are_counted_as_in_the_library(algo):
    learner, rng = build(algo, num_envs=3), np.random.default_rng(0)
    expected = {"ep_info_buffer": [], "ep_success_buffer": []}
    learner._setup_learn(1)
    for step in range(20):
        dones = rng.random(3) < 0.3
        infos = [{"is_success": True} for _ in dones]
        for index in np.flatnonzero(dones):
            infos[index] = {"episode": {"r": float(step), "l": index, "t": 0.0}, "is_success": bool(step % 2)}
        learner._update_info_buffer(infos, dones)
        twin = SimpleNamespace(**{name: deque() for name in expected})
        BaseAlgorithm._update_info_buffer(twin, infos, dones)
        for name, buffer in expected.items():
            buffer += getattr(twin, name)
    assert len(expected["ep_info_buffer"]) > 5
    assert set(expected["ep_success_buffer"]) == {True, False}
    assert {name: list(getattr(learner, name)) for name in expected} == expected
