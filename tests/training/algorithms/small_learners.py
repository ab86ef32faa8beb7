"""Learners of a few neurons over the pendulum."""

import torch
from stable_baselines3.common.logger import Logger

from hotlap.training.algorithms.registry import build_learner
from hotlap.training.vec_envs.factory import TrainingEnvs
from tiny_runs import tiny_config


def build(algo="ppo", num_envs=1, **changes):
    """A small learner with a logger that writes nowhere."""
    env = changes.pop("env", "Pendulum-v1")
    config = tiny_config(algo, env, num_envs, **{"normalize": {"obs": False, "reward": False}, **changes})
    learner = build_learner(config, TrainingEnvs(config).env)
    learner.set_logger(Logger(None, []))
    return learner


def weights(learner):
    """All weights in one array."""
    return torch.cat([value.flatten() for value in learner.policy.state_dict().values()]).cpu().numpy()
