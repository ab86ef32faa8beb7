"""Learners of a few neurons: ours over the racer's cars, and stable-baselines3's over the same or over the pendulum."""

import numpy as np

from hotlap.training.learners import build_learner
from hotlap.training.sb3.learner import SB3Learner
from tiny_runs import tiny_config


def pendulum(algo="ppo", num_envs=1, env="Pendulum-v1", **changes):
    """A learner of stable-baselines3's over a small environment."""
    return SB3Learner(tiny_config(algo, env, num_envs, **{"normalize": {"obs": False, "reward": False}, **changes}))


def ours(config):
    """Our own learner of a run."""
    learner = build_learner(config)
    assert not isinstance(learner, SB3Learner)
    return learner


def learn(learner, num_rollouts=None, on_step=lambda events: True, on_rollout=lambda learner: None):
    """Collect and update, so many times or to the end of the budget; returns the learner and the last figures."""
    figures, done = {}, 0
    while done != num_rollouts and (num_rollouts is not None or learner.plan.num_steps):
        assert learner.collect(on_step)
        on_rollout(learner)
        figures, done = learner.update(), done + 1
    return learner, figures


def weights(learner):
    """All weights in one array."""
    return np.concatenate([array.ravel() for array in learner.policy().weights.values()])
