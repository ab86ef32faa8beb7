"""The library's algorithms, to the step: stock bits where budgets agree, and nothing learned from nothing."""

import math
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm

from hotlap.errors import ConfigError
from hotlap.training.algorithms.learners import RATE_STEP, HotlapA2C, HotlapPPO, HotlapSAC, build_model
from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import tiny_config

OURS = {"ppo": HotlapPPO, "a2c": HotlapA2C, "sac": HotlapSAC}


def build(algo="ppo", num_envs=1, **changes):
    """A small learner over the pendulum, with a logger that writes nowhere."""
    env = changes.pop("env", "Pendulum-v1")
    config = tiny_config(algo, env, num_envs, **{"normalize": {"obs": False, "reward": False}, **changes})
    model = build_model(config, TrainingEnvs(config).env)
    model.set_logger(Logger(None, []))
    return model


def learned(steps, *arguments, **changes):
    """A learner that has done its steps; it must be alone in that, since the library has one generator for all."""
    model = build(*arguments, **changes)
    return model.learn(steps)


def weights(model):
    return torch.cat([value.flatten() for value in model.policy.state_dict().values()]).numpy()


# --- budgets ---


def count_decisions(model):
    """How many decisions the environments were really asked for, in a list that grows."""
    step, counted = model.env.step, []

    def counting(actions):
        counted.append(len(actions))
        return step(actions)

    model.env.step = counting
    return counted


@pytest.mark.parametrize("algo", OURS)
@pytest.mark.parametrize(("num_envs", "asked", "done"), [(1, 50, 50), (1, 64, 64), (3, 50, 51), (3, 96, 96), (1, 1, 1)])
def test_a_budget_is_kept_to_the_vector_step(algo, num_envs, asked, done):
    model = build(algo, num_envs)
    counted = count_decisions(model)
    model.learn(asked)
    assert (sum(counted), model.num_timesteps) == (done, done)


@pytest.mark.parametrize(("num_envs", "n_steps", "done"), [(1, 2048, 50_000), (512, 64, 50_176), (7, 2048, 50_001)])
def test_fifty_thousand_steps_are_fifty_thousand(monkeypatch, num_envs, n_steps, done):
    """Rounded up to whole rollouts they would be 51,200."""
    model = build(num_envs=num_envs, ppo={"n_steps": n_steps, "batch_size": n_steps})
    planned = []

    def collect(self, env, callback, buffer, num_steps):
        assert buffer.buffer_size == num_steps
        planned.append(num_steps)
        self.num_timesteps += num_steps * env.num_envs
        return True

    monkeypatch.setattr(OnPolicyAlgorithm, "collect_rollouts", collect)
    monkeypatch.setattr(PPO, "train", lambda self: None)
    model.learn(50_000)
    assert model.num_timesteps == done
    assert set(planned[:-1]) == {n_steps}
    assert model.is_rollout_short is (planned[-1] < n_steps)


def test_a_second_budget_has_whole_rollouts_again():
    model = build()
    model.learn(50)
    assert model.rollout_buffer.buffer_size == 50 - 32
    model.learn(64)
    assert model.rollout_buffer.buffer_size == 32
    assert not model.is_rollout_short


@pytest.mark.parametrize("algo", ["ppo", "a2c"])
def test_a_last_rollout_of_one_decision_makes_no_nan(algo):
    model = build(algo, a2c={"normalize_advantage": True})
    model.learn(65 if algo == "ppo" else 11)
    assert model.rollout_steps == 1
    assert np.isfinite(weights(model)).all()


def test_a2c_learns_nothing_from_one_decision_it_cannot_normalize():
    np.testing.assert_array_equal(weights(learned(11, "a2c")), weights(learned(10, "a2c")))


def test_a2c_learns_from_one_decision_where_it_normalizes_nothing_or_has_several_environments():
    plain = {"a2c": {"normalize_advantage": False}}
    for num_envs, more, changes in ((1, 11, plain), (2, 22, {})):
        model = learned(more, "a2c", num_envs, **changes)
        assert model.rollout_steps == 1
        assert (weights(model) != weights(learned(more - num_envs, "a2c", num_envs, **changes))).any()


@pytest.mark.parametrize("num_envs", [1, 3])
def test_where_the_budget_is_whole_rollouts_the_bits_are_those_of_the_stock_library(num_envs):
    stock = {
        "ppo": (PPO, {"n_steps": 32, "batch_size": 32, "n_epochs": 2}),
        "a2c": (A2C, {"n_steps": 5, "normalize_advantage": True}),
        "sac": (SAC, {"buffer_size": 75, "learning_starts": 20, "batch_size": 16, "train_freq": 2}),
    }
    for algo, (kind, arguments) in stock.items():
        steps = num_envs * {"ppo": 64, "a2c": 20, "sac": 40}[algo]
        ours = build(algo, num_envs)
        ours.learn(steps)
        config = tiny_config(algo, "Pendulum-v1", num_envs, normalize={"obs": False, "reward": False})
        theirs = kind("MlpPolicy", TrainingEnvs(config).env, seed=42, policy_kwargs={"net_arch": [8]}, **arguments)
        theirs.set_logger(Logger(None, []))
        theirs.learn(steps)
        np.testing.assert_array_equal(weights(ours), weights(theirs), err_msg=algo)


@pytest.mark.parametrize("algo", OURS)
def test_episodes_and_successes_are_counted_as_the_library_would(algo):
    model, rng = build(algo, num_envs=3), np.random.default_rng(0)
    expected = {"ep_info_buffer": [], "ep_success_buffer": []}
    model._setup_learn(1)
    for step in range(20):
        dones = rng.random(3) < 0.3
        infos = [{"is_success": True} for _ in dones]
        for car in np.flatnonzero(dones):
            infos[car] = {"episode": {"r": float(step), "l": car, "t": 0.0}, "is_success": bool(step % 2)}
        model._update_info_buffer(infos, dones)
        twin = SimpleNamespace(**{name: deque() for name in expected})
        BaseAlgorithm._update_info_buffer(twin, infos, dones)
        for name, buffer in expected.items():
            buffer += getattr(twin, name)
    assert len(expected["ep_info_buffer"]) > 5
    assert set(expected["ep_success_buffer"]) == {True, False}
    assert {name: list(getattr(model, name)) for name in expected} == expected


# --- what PPO has beyond the library's ---


def test_the_learning_rate_falls_in_a_straight_line_to_its_share():
    model = build(ppo={"learning_rate": 0.1, "final_lr_fraction": 0.2})
    rates = [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)]
    assert rates == pytest.approx([0.1, 0.06, 0.02])


def test_the_learning_rate_is_what_it_is_if_nothing_else_is_asked_for():
    model = build(ppo={"learning_rate": 0.1})
    assert [model.lr_schedule(left) for left in (1.0, 0.3, 0.0)] == [0.1, 0.1, 0.1]


@pytest.mark.parametrize(
    ("change", "factor"), [(0.021, 1 / RATE_STEP), (0.019, 1.0), (0.0051, 1.0), (0.0049, RATE_STEP)]
)
def test_the_learning_rate_follows_the_policys_change(monkeypatch, change, factor):
    model = build(ppo={"learning_rate": 0.1, "desired_kl": 0.01})
    monkeypatch.setattr(PPO, "train", lambda self: self.logger.record("train/approx_kl", change))
    model.train()
    assert model.lr_schedule(1.0) == pytest.approx(0.1 * factor)


def test_the_learning_rate_does_not_run_away(monkeypatch):
    model = build(ppo={"learning_rate": 0.1, "desired_kl": 0.01})
    for change, bound in ((0.0, 2.0), (1.0, 0.002)):
        monkeypatch.setattr(PPO, "train", lambda self, change=change: self.logger.record("train/approx_kl", change))
        for _ in range(50):
            model.train()
        assert model.lr_schedule(1.0) == pytest.approx(bound)


def test_where_the_rate_follows_the_change_it_is_the_change_aimed_at_that_falls(monkeypatch):
    model = build(ppo={"desired_kl": 0.01, "final_lr_fraction": 0.1})
    monkeypatch.setattr(PPO, "train", lambda self: self.logger.record("train/approx_kl", 0.006))
    model._current_progress_remaining = 1.0
    model.train()
    assert model.rate_scale == 1.0  # 0.006 is near 0.01
    model._current_progress_remaining = 0.0
    model.train()
    assert model.rate_scale == pytest.approx(1.0 / RATE_STEP)  # and far above 0.001


@pytest.mark.parametrize(("left", "floor"), [(1.0, 0.5), (0.5, 0.3), (0.0, 0.1)])
def test_the_noise_never_falls_below_its_floor(monkeypatch, left, floor):
    model = build(ppo={"min_std": 0.5, "final_min_std": 0.1})
    monkeypatch.setattr(PPO, "train", lambda self: None)
    for noise in (0.01, 5.0):
        model.policy.log_std.data.fill_(math.log(noise))
        model._current_progress_remaining = left
        model.train()
        assert model.policy.log_std.exp().item() == pytest.approx(max(noise, floor))


def test_choices_have_no_noise_to_keep():
    build(env="CartPole-v1", ppo={"min_std": 0.5}).learn(32)


# --- building ---


@pytest.mark.parametrize(
    ("algo", "settings"),
    [
        ("ppo", {"learning_rate": 1e-3, "n_steps": 16, "batch_size": 8, "n_epochs": 3, "gamma": 0.9, "gae_lambda": 0.8,
                 "ent_coef": 0.01, "vf_coef": 0.4, "max_grad_norm": 0.6, "normalize_advantage": False,
                 "target_kl": 0.1}),
        ("a2c", {"learning_rate": 1e-3, "n_steps": 6, "gamma": 0.9, "gae_lambda": 0.8, "ent_coef": 0.01, "vf_coef": 0.4,
                 "max_grad_norm": 0.6, "normalize_advantage": True}),
        ("sac", {"learning_rate": 1e-3, "buffer_size": 99, "learning_starts": 7, "batch_size": 5, "tau": 0.01,
                 "gamma": 0.9, "gradient_steps": 3}),
    ],
)  # fmt: skip
def test_every_hyperparameter_reaches_the_library(algo, settings):
    model = build(algo, **{algo: settings})
    assert type(model) is OURS[algo]
    assert {name: getattr(model, name) for name in settings} == settings
    assert model.lr_schedule(0.5) == settings["learning_rate"]


def test_what_the_library_calls_otherwise_reaches_it_too():
    assert build("ppo", ppo={"clip_range": 0.3}).clip_range(0.5) == 0.3
    assert build("sac", sac={"train_freq": 7}).train_freq.frequency == 7
    optimizer = build("a2c", a2c={"rms_prop_eps": 1e-3}).policy.optimizer
    assert (type(optimizer).__name__, optimizer.defaults["eps"]) == ("RMSprop", 1e-3)
    assert isinstance(build("a2c", a2c={"use_rms_prop": False}).policy.optimizer, torch.optim.Adam)


def test_the_networks_are_as_the_settings_have_them():
    model = build(policy={"net_arch": [5, 7], "activation": "elu", "log_std_init": -1.0})
    widths = [layer.out_features for layer in model.policy.mlp_extractor.policy_net if hasattr(layer, "out_features")]
    assert widths == [5, 7]
    assert isinstance(model.policy.mlp_extractor.policy_net[1], torch.nn.ELU)
    assert model.policy.log_std.item() == -1.0


def test_the_seed_decides_the_first_weights():
    np.testing.assert_array_equal(weights(build(seed=1)), weights(build(seed=1)))
    assert (weights(build(seed=1)) != weights(build(seed=2))).any()


def test_episodes_are_averaged_over_a_hundred_or_one_of_each_environment():
    assert build(num_envs=2)._stats_window_size == 100
    assert build(num_envs=128, ppo={"n_steps": 2})._stats_window_size == 128


@pytest.mark.parametrize("kind", ["CnnPolicy", "MultiInputPolicy"])
def test_a_policy_that_does_not_suit_the_observations_is_refused_in_one_line(kind):
    with pytest.raises(ConfigError, match=f"{kind} does not suit observations") as caught:
        build(policy={"kind": kind, "net_arch": [8]})
    assert "\n" not in str(caught.value)
