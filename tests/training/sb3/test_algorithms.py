"""What our PPO adds to the library's: learning-rate decay and adaptation, and a minimum standard deviation."""

import math

import numpy as np
import pytest
from stable_baselines3 import PPO

from hotlap.training.algorithms.ppo import LR_FACTOR
from training.algorithms.small_learners import build, weights


def train_with_kl(learner, monkeypatch, kl):
    """One `train` whose update changed the policy by `kl`."""
    monkeypatch.setattr(PPO, "train", lambda self: self.logger.record("train/approx_kl", kl))
    learner.train()


@pytest.mark.parametrize(("kl", "factor"), [(0.021, 1 / LR_FACTOR), (0.019, 1.0), (0.0051, 1.0), (0.0049, LR_FACTOR)])
def test_the_learning_rate_adapts_to_the_kl_divergence(monkeypatch, kl, factor):
    learner = build(ppo={"learning_rate": 0.1, "desired_kl": 0.01})
    train_with_kl(learner, monkeypatch, kl)
    assert learner.lr_schedule(1.0) == pytest.approx(0.1 * factor)


def test_the_adaptive_learning_rate_is_bounded(monkeypatch):
    learner = build(ppo={"learning_rate": 0.1, "desired_kl": 0.01})
    for kl, bound in ((0.0, 2.0), (1.0, 0.002)):
        for _ in range(50):
            train_with_kl(learner, monkeypatch, kl)
        assert learner.lr_schedule(1.0) == pytest.approx(bound)


def test_with_an_adaptive_learning_rate_the_desired_kl_decays(monkeypatch):
    learner = build(ppo={"desired_kl": 0.01, "final_lr_fraction": 0.1})
    for progress_remaining, lr_scale in ((1.0, 1.0), (0.0, 1.0 / LR_FACTOR)):  # 0.006 is near 0.01, far above 0.001
        learner._current_progress_remaining = progress_remaining
        train_with_kl(learner, monkeypatch, 0.006)
        assert learner.lr_scale == pytest.approx(lr_scale)


@pytest.mark.parametrize(("progress_remaining", "min_std"), [(1.0, 0.5), (0.5, 0.3), (0.0, 0.1)])
def test_the_standard_deviation_is_clamped(monkeypatch, progress_remaining, min_std):
    learner = build(ppo={"min_std": 0.5, "final_min_std": 0.1})
    monkeypatch.setattr(PPO, "train", lambda self: None)
    for std in (0.01, 5.0):
        learner.policy.log_std.data.fill_(math.log(std))
        learner._current_progress_remaining = progress_remaining
        learner.train()
        assert learner.policy.log_std.exp().item() == pytest.approx(max(std, min_std))


def test_discrete_actions_have_no_standard_deviation_to_clamp():
    build(env="CartPole-v1", ppo={"min_std": 0.5}).learn(32)


def test_a_last_rollout_of_one_step_gives_finite_weights():
    learner = build().learn(65)
    assert learner.rollout_steps == 1
    assert np.isfinite(weights(learner)).all()
