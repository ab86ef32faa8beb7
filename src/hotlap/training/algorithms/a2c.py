"""A2C: stable-baselines3's, with an exact step budget and a learning rate that decays linearly."""

from stable_baselines3 import A2C

from hotlap.models.action_head import match_brake_noise
from hotlap.training.algorithms.schedules import DecayingLearningRate
from hotlap.training.algorithms.step_budget import OnPolicyLearner


class HotlapA2C(DecayingLearningRate, OnPolicyLearner, A2C):
    """A2C with an exact step budget and a learning rate that decays linearly."""

    def train(self) -> None:
        """Update the policy; a rollout of one step is skipped where advantages are normalized (their std is NaN)."""
        if self.normalize_advantage and self.rollout_steps * self.n_envs == 1:
            return
        super().train()
        match_brake_noise(self.policy)
