"""Learners of any class for a tiny run, to compare ours with stable-baselines3's."""

from stable_baselines3.common.logger import Logger

from hotlap.models.action_head import fix_action_head
from hotlap.training.algorithms import registry
from hotlap.training.vec_envs.factory import TrainingEnvs


def make_learner(kind, config):
    """A learner of class `kind` over the run's own cars, with a silent logger."""
    learner = kind(
        policy="MlpPolicy",
        env=TrainingEnvs(config).env,
        policy_kwargs=registry.policy_arguments(config.policy, config.algo),
        seed=3,
        device="cpu",
        **kind.constructor_arguments(config.hyperparameters),
    )
    fix_action_head(learner.policy, config.policy)
    learner.set_logger(Logger(None, []))
    return learner
