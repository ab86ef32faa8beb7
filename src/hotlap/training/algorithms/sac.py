"""SAC: stable-baselines3's, with an exact step budget and a learning rate that decays linearly."""

from typing import Any

import torch
from stable_baselines3 import SAC

from hotlap.training.algorithms.schedules import decay
from hotlap.training.algorithms.step_budget import OffPolicyLearner
from hotlap.training.hyperparameters import SACSettings


class HotlapSAC(OffPolicyLearner, SAC):
    """SAC with an exact step budget and a learning rate that decays linearly."""

    def __init__(self, *args: Any, settings: SACSettings, **kwargs: Any) -> None:
        self.settings = settings
        super().__init__(*args, **kwargs)

    @classmethod
    def constructor_arguments(cls, settings: SACSettings) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        found = super().constructor_arguments(settings)
        del found["final_lr_fraction"], found["initial_ent_coef"]
        if settings.n_steps == 1:
            del found["n_steps"]  # older versions of the library do not know it
        return found | {"ent_coef": f"auto_{settings.initial_ent_coef!r}", "settings": settings}

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        return self.settings.learning_rate * decay(self.settings.final_lr_fraction, progress_remaining)

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Those of the actor, the critic and, where it is learned, the entropy coefficient."""
        found = {"actor": self.actor.optimizer, "critic": self.critic.optimizer}
        if self.ent_coef_optimizer is not None:
            found["entropy"] = self.ent_coef_optimizer
        return found
