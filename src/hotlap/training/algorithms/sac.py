"""SAC: stable-baselines3's, with an exact step budget and a learning rate that decays linearly."""

from typing import Any

import torch
from stable_baselines3 import SAC

from hotlap.runs.hyperparameters import SACSettings
from hotlap.training.algorithms.schedules import DecayingLearningRate
from hotlap.training.algorithms.step_budget import OffPolicyLearner


class HotlapSAC(DecayingLearningRate, OffPolicyLearner, SAC):
    """SAC with an exact step budget and a learning rate that decays linearly."""

    own_settings = (*DecayingLearningRate.own_settings, "initial_ent_coef")

    @classmethod
    def constructor_arguments(cls, settings: SACSettings) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        return super().constructor_arguments(settings) | {"ent_coef": f"auto_{settings.initial_ent_coef!r}"}

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Those of the actor, the critic and, where it is learned, the entropy coefficient."""
        found = {"actor": self.actor.optimizer, "critic": self.critic.optimizer}
        if self.ent_coef_optimizer is not None:
            found["entropy"] = self.ent_coef_optimizer
        return found
