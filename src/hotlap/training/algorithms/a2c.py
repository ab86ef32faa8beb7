"""A2C: stable-baselines3's, with an exact step budget and a learning rate that decays linearly."""

from typing import Any

from stable_baselines3 import A2C

from hotlap.training.algorithms.schedules import decay
from hotlap.training.algorithms.step_budget import OnPolicyLearner
from hotlap.training.hyperparameters import A2CSettings


class HotlapA2C(OnPolicyLearner, A2C):
    """A2C with an exact step budget and a learning rate that decays linearly."""

    def __init__(self, *args: Any, settings: A2CSettings, **kwargs: Any) -> None:
        self.settings = settings
        super().__init__(*args, **kwargs)

    @classmethod
    def constructor_arguments(cls, settings: A2CSettings) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        found = super().constructor_arguments(settings)
        del found["final_lr_fraction"]
        return found | {"settings": settings}

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        return self.settings.learning_rate * decay(self.settings.final_lr_fraction, progress_remaining)

    def train(self) -> None:
        """Update the policy; a rollout of one step is skipped where advantages are normalized (their std is NaN)."""
        if self.normalize_advantage and self.rollout_steps * self.n_envs == 1:
            return
        super().train()
