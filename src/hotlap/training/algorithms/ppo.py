"""PPO. The clipped loss and the update are stable-baselines3's `PPO.train`, unchanged.

We add an exact step budget, a learning rate that decays linearly or adapts to the KL divergence of the last update, and
a lower bound on the standard deviation of the actions.
"""

import math
from typing import Any

from stable_baselines3 import PPO

from hotlap.training.algorithms.schedules import decay
from hotlap.training.algorithms.step_budget import OnPolicyLearner
from hotlap.training.hyperparameters import PPOSettings

# The learning rate is multiplied or divided by this after an update, within these multiples of its initial value.
LR_FACTOR = 1.5
LR_SCALE_RANGE = (0.02, 20.0)
# Settings that stable-baselines3's PPO does not have.
OWN_SETTINGS = ("desired_kl", "final_lr_fraction", "min_std", "final_min_std")


class HotlapPPO(OnPolicyLearner, PPO):
    """PPO with an exact step budget, an adaptive learning rate and a minimum standard deviation of the actions."""

    def __init__(self, *args: Any, settings: PPOSettings, **kwargs: Any) -> None:
        self.settings = settings
        self.lr_scale = 1.0
        super().__init__(*args, **kwargs)

    @classmethod
    def constructor_arguments(cls, settings: PPOSettings) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        found = super().constructor_arguments(settings)
        return {name: value for name, value in found.items() if name not in OWN_SETTINGS} | {"settings": settings}

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        rate = self.settings.learning_rate * self.lr_scale
        # An adaptive learning rate does not decay by itself: its target, `desired_kl`, does.
        return rate if self.settings.desired_kl is not None else rate * self._decay(progress_remaining)

    def _decay(self, progress_remaining: float) -> float:
        return decay(self.settings.final_lr_fraction, progress_remaining)

    def train(self) -> None:
        """Update the policy from the rollout, then adapt the learning rate and clamp the standard deviation."""
        self._update()
        if self.settings.desired_kl is not None:
            desired_kl = self.settings.desired_kl * self._decay(self._current_progress_remaining)
            self._adapt_lr_to_kl(float(self.logger.name_to_value["train/approx_kl"]), desired_kl)
        self._clamp_std()

    def _update(self) -> None:
        super().train()

    def _adapt_lr_to_kl(self, kl: float, desired_kl: float) -> None:
        low, high = LR_SCALE_RANGE
        if kl > 2.0 * desired_kl:
            self.lr_scale = max(self.lr_scale / LR_FACTOR, low)
        elif kl < 0.5 * desired_kl:
            self.lr_scale = min(self.lr_scale * LR_FACTOR, high)

    def _clamp_std(self) -> None:
        first, last = self.settings.min_std, self.settings.final_min_std
        min_std = last + (first - last) * self._current_progress_remaining
        if min_std > 0.0 and hasattr(self.policy, "log_std"):  # discrete actions have none
            self.policy.log_std.data.clamp_(min=math.log(min_std))
