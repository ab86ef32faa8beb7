"""A run's learner is built with its hyperparameters, network and seed."""

import math

import numpy as np
import pytest
import torch

from hotlap.errors import ConfigError
from hotlap.training.algorithms.registry import LEARNERS
from training.algorithms.small_learners import build, weights


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
    learner = build(algo, **{algo: settings})
    assert type(learner) is LEARNERS[algo].learner
    assert {name: getattr(learner, name) for name in settings} == settings
    assert learner.lr_schedule(0.5) == settings["learning_rate"]


def test_hyperparameters_that_the_library_converts_reach_it_too():
    assert build("ppo", ppo={"clip_range": 0.3}).clip_range(0.5) == 0.3
    assert build("sac", sac={"train_freq": 7}).train_freq.frequency == 7
    assert build("sac").target_entropy == -1.0  # the pendulum has one action
    assert build("sac", sac={"initial_ent_coef": 0.02}).log_ent_coef.item() == pytest.approx(math.log(0.02))
    assert type(build("sac", sac={"n_steps": 3}).replay_buffer).__name__ == "NStepReplayBuffer"
    optimizer = build("a2c", a2c={"rms_prop_eps": 1e-3}).policy.optimizer
    assert (type(optimizer).__name__, optimizer.defaults["eps"]) == ("RMSprop", 1e-3)
    assert isinstance(build("a2c", a2c={"use_rms_prop": False}).policy.optimizer, torch.optim.Adam)


@pytest.mark.parametrize("algo", ["ppo", "sac", "a2c"])
@pytest.mark.parametrize(("final", "rates"), [(0.2, [0.1, 0.06, 0.02]), (1.0, [0.1, 0.1, 0.1])])
def test_the_learning_rate_decays_linearly_to_its_final_fraction(algo, final, rates):
    learner = build(algo, **{algo: {"learning_rate": 0.1, "final_lr_fraction": final}})
    assert [learner.lr_schedule(left) for left in (1.0, 0.5, 0.0)] == pytest.approx(rates)


def test_the_networks_have_the_configured_shape():
    learner = build(policy={"net_arch": [5, 7], "activation": "elu", "log_std_init": -1.0})
    widths = [layer.out_features for layer in learner.policy.mlp_extractor.policy_net if hasattr(layer, "out_features")]
    assert widths == [5, 7]
    assert isinstance(learner.policy.mlp_extractor.policy_net[1], torch.nn.ELU)
    assert learner.policy.log_std.item() == -1.0


def test_the_seed_determines_the_initial_weights():
    np.testing.assert_array_equal(weights(build(seed=1)), weights(build(seed=1)))
    assert (weights(build(seed=1)) != weights(build(seed=2))).any()


def test_statistics_are_over_100_episodes_or_one_per_environment():
    assert build(num_envs=2)._stats_window_size == 100
    assert build(num_envs=128, ppo={"n_steps": 2})._stats_window_size == 128


@pytest.mark.parametrize("kind", ["CnnPolicy", "MultiInputPolicy"])
def test_a_policy_that_does_not_fit_the_observations_is_refused_in_one_line(kind):
    with pytest.raises(ConfigError, match=f"{kind} does not suit observations") as caught:
        build(policy={"kind": kind, "net_arch": [8]})
    assert "\n" not in str(caught.value)
