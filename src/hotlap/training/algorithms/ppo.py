"""PPO. The clipped loss and the update are stable-baselines3's `PPO.train`, unchanged.

We add an exact step budget, a learning rate that decays linearly or adapts to the KL divergence of the last update, and
a lower bound on the standard deviation of the actions.
"""

import math

from stable_baselines3 import PPO

from hotlap.models.action_head import match_brake_noise
from hotlap.training.algorithms.schedules import DecayingLearningRate
from hotlap.training.algorithms.step_budget import OnPolicyLearner

# The learning rate is multiplied or divided by this after an update, within these multiples of its initial value.
LR_FACTOR = 1.5
LR_SCALE_RANGE = (0.02, 20.0)


class HotlapPPO(DecayingLearningRate, OnPolicyLearner, PPO):
    """PPO with an exact step budget, an adaptive learning rate and a minimum standard deviation of the actions."""

    own_settings = (*DecayingLearningRate.own_settings, "desired_kl", "min_std", "final_min_std")
    lr_scale = 1.0

    def _learning_rate(self, progress_remaining: float) -> float:
        if self.settings.desired_kl is None:
            return super()._learning_rate(progress_remaining)
        # An adaptive learning rate does not decay by itself: its target, `desired_kl`, does.
        rate: float = self.settings.learning_rate * self.lr_scale
        return rate

    def train(self) -> None:
        """Update the policy from the rollout, then adapt the learning rate and clamp the standard deviation."""
        self._update()
        match_brake_noise(self.policy)
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
