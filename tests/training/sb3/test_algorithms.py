"""What our algorithms add to the library's: exact budgets, learning rates that change, a minimum standard deviation."""

import math

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.logger import Logger

from hotlap.errors import ConfigError
from hotlap.learning.schedules import LR_FACTOR
from hotlap.training.sb3.algorithms import ALGORITHMS as CLASSES
from hotlap.training.sb3.vec_envs.factory import TrainingEnvs
from small_learners import learn, pendulum, weights
from tiny_runs import ALGORITHMS, SMALL, tiny_config

EVERY_ALGORITHM = pytest.mark.parametrize("algo", ALGORITHMS)


def train_with_kl(model, monkeypatch, kl):
    """One `train` whose update changed the policy by `kl`."""
    monkeypatch.setattr(PPO, "train", lambda self: self.logger.record("train/approx_kl", kl))
    model.train()


# --- settings ---


@pytest.mark.parametrize(
    ("algo", "settings"),
    [
        ("ppo", {"learning_rate": 1e-3, "n_steps": 16, "batch_size": 8, "n_epochs": 3, "gamma": 0.9, "gae_lambda": 0.8,
                 "ent_coef": 0.01, "vf_coef": 0.4, "max_grad_norm": 0.6, "normalize_advantage": False,
                 "target_kl": 0.1}),
        ("a2c", {"learning_rate": 1e-3, "n_steps": 6, "gamma": 0.9, "gae_lambda": 0.8, "ent_coef": 0.01, "vf_coef": 0.4,
                 "max_grad_norm": 0.6, "normalize_advantage": True}),
        ("sac", {"learning_rate": 1e-3, "buffer_size": 99, "learning_starts": 7, "batch_size": 5, "tau": 0.01,
                 "gamma": 0.9, "gradient_steps": 3, "n_steps": 3, "target_entropy": -2.5}),
    ],
)  # fmt: skip
def test_every_hyperparameter_reaches_the_library(algo, settings):
    model = pendulum(algo, **{algo: settings}).model
    assert type(model) is CLASSES[algo]
    assert {name: getattr(model, name) for name in settings} == settings
    assert model.lr_schedule(0.5) == settings["learning_rate"]


def test_hyperparameters_that_the_library_converts_reach_it_too():
    assert pendulum("ppo", ppo={"clip_range": 0.3}).model.clip_range(0.5) == 0.3
    assert pendulum("sac", sac={"train_freq": 7}).model.train_freq.frequency == 7
    assert pendulum("sac").model.target_entropy == -1.0  # the pendulum has one action
    assert pendulum("sac", sac={"initial_ent_coef": 0.02}).model.log_ent_coef.item() == pytest.approx(math.log(0.02))
    assert type(pendulum("sac", sac={"n_steps": 3}).model.replay_buffer).__name__ == "NStepReplayBuffer"
    optimizer = pendulum("a2c", a2c={"rms_prop_eps": 1e-3}).model.policy.optimizer
    assert (type(optimizer).__name__, optimizer.defaults["eps"]) == ("RMSprop", 1e-3)
    assert isinstance(pendulum("a2c", a2c={"use_rms_prop": False}).model.policy.optimizer, torch.optim.Adam)


@EVERY_ALGORITHM
@pytest.mark.parametrize(("final", "rates"), [(0.2, [0.1, 0.06, 0.02]), (1.0, [0.1, 0.1, 0.1])])
def test_the_learning_rate_decays_linearly_to_its_final_fraction(algo, final, rates):
    model = pendulum(algo, **{algo: {"learning_rate": 0.1, "final_lr_fraction": final}}).model
    assert [model.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == pytest.approx(rates)


def test_the_networks_have_the_configured_shape():
    policy = pendulum(policy={"net_arch": [5, 7], "activation": "elu", "log_std_init": -1.0}).model.policy
    widths = [layer.out_features for layer in policy.mlp_extractor.policy_net if hasattr(layer, "out_features")]
    assert widths == [5, 7]
    assert isinstance(policy.mlp_extractor.policy_net[1], torch.nn.ELU)
    assert policy.log_std.item() == -1.0


def test_the_seed_determines_the_initial_weights():
    np.testing.assert_array_equal(weights(pendulum(seed=1)), weights(pendulum(seed=1)))
    assert (weights(pendulum(seed=1)) != weights(pendulum(seed=2))).any()


@pytest.mark.parametrize("kind", ["CnnPolicy", "MultiInputPolicy"])
def test_a_policy_that_does_not_fit_the_observations_is_refused_in_one_line(kind):
    with pytest.raises(ConfigError, match=f"{kind} does not suit observations") as caught:
        pendulum(policy={"kind": kind, "net_arch": [8]})
    assert "\n" not in str(caught.value)


# --- PPO's learning rate and standard deviation ---


def test_the_learning_rate_adapts_to_the_kl_divergence_whose_desired_value_decays(monkeypatch):
    model = pendulum(ppo={"learning_rate": 0.1, "desired_kl": 0.01, "final_lr_fraction": 0.1}).model
    for progress_remaining, lr_scale in ((1.0, 1.0), (0.0, 1.0 / LR_FACTOR)):  # 0.006 is near 0.01, far above 0.001
        model._current_progress_remaining = progress_remaining
        train_with_kl(model, monkeypatch, 0.006)
        assert model.lr_scale == pytest.approx(lr_scale)
        assert model.lr_schedule(1.0) == pytest.approx(0.1 * lr_scale)


@pytest.mark.parametrize(("progress_remaining", "min_std"), [(1.0, 0.5), (0.5, 0.3), (0.0, 0.1)])
def test_the_standard_deviation_is_clamped(monkeypatch, progress_remaining, min_std):
    model = pendulum(ppo={"min_std": 0.5, "final_min_std": 0.1}).model
    monkeypatch.setattr(PPO, "train", lambda self: None)
    for std in (0.01, 5.0):
        model.policy.log_std.data.fill_(math.log(std))
        model._current_progress_remaining = progress_remaining
        model.train()
        assert model.policy.log_std.exp().item() == pytest.approx(max(std, min_std))


def test_discrete_actions_have_no_standard_deviation_to_clamp():
    learn(pendulum(env="CartPole-v1", steps=32, ppo={"min_std": 0.5}))


def test_target_kl_ends_an_update_early():
    learner, _ = learn(pendulum(steps=64, ppo={"target_kl": 1e-9, "n_epochs": 5}))
    assert learner.model._n_updates < 2 * 5


# --- step budgets ---


@EVERY_ALGORITHM
@pytest.mark.parametrize(("num_envs", "asked", "done"), [(1, 50, 50), (1, 64, 64), (3, 50, 51), (3, 96, 96), (1, 1, 1)])
def test_a_budget_is_rounded_up_to_a_vector_step_only(algo, num_envs, asked, done):
    learner = pendulum(algo, num_envs, steps=asked)
    step, actions_taken = learner.model.env.step, []

    def counting(actions):
        actions_taken.append(len(actions))
        return step(actions)

    learner.model.env.step = counting
    learn(learner)
    assert (sum(actions_taken), learner.num_timesteps) == (done, done)


@pytest.mark.parametrize(("num_envs", "steps", "done", "last"), [(1, 65, 65, 1), (3, 100, 102, 2)])
def test_a_last_rollout_of_few_steps_ends_at_the_budget_and_gives_finite_weights(num_envs, steps, done, last):
    learner, _ = learn(pendulum(num_envs=num_envs, steps=steps))
    assert (learner.num_timesteps, learner.model.rollout_buffer.buffer_size) == (done, last)
    assert np.isfinite(weights(learner)).all()


@pytest.mark.parametrize(
    ("num_envs", "is_normalized", "is_updated"), [(1, True, False), (1, False, True), (2, True, True)]
)
def test_a2c_skips_a_single_decision_where_advantages_are_normalized(num_envs, is_normalized, is_updated):
    found = []
    for num_steps in (10, 11):  # rollouts have 5
        learner = pendulum("a2c", num_envs, steps=num_steps * num_envs, a2c={"normalize_advantage": is_normalized})
        found.append(weights(learn(learner)[0]))
    assert np.isfinite(found[1]).all()
    assert (found[0] != found[1]).any() == is_updated


@pytest.mark.parametrize("num_envs", [1, 3])
@pytest.mark.parametrize(("algo", "stock", "num_steps"), [("ppo", PPO, 64), ("a2c", A2C, 20), ("sac", SAC, 40)])
def test_whole_rollouts_give_the_weights_of_the_stock_library(num_envs, algo, stock, num_steps):
    ours, _ = learn(pendulum(algo, num_envs, steps=num_envs * num_steps))
    config = tiny_config(algo, "Pendulum-v1", num_envs, normalize={"obs": False, "reward": False})
    arguments = {"seed": 42, "policy_kwargs": {"net_arch": [8]}, **SMALL[algo]}
    theirs = stock("MlpPolicy", TrainingEnvs(config).env, **arguments)
    theirs.set_logger(Logger(None, []))
    theirs.learn(num_envs * num_steps)
    expected = torch.cat([value.flatten() for value in theirs.policy.state_dict().values()]).numpy()
    np.testing.assert_array_equal(weights(ours), expected)
