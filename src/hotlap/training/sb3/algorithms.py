"""stable-baselines3's PPO, A2C and SAC with exact step budgets and our additional settings."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv

from hotlap.config import as_plain
from hotlap.learning.schedules import adapt_lr_scale, linear_decay
from hotlap.learning.step_budget import RolloutPlan, plan_rollout
from hotlap.models.action_head import match_brake_noise


class BudgetedAlgorithm(BaseAlgorithm):
    """What our algorithms add to stable-baselines3's: a budget kept to the step, and a learning rate that decays.

    The library rounds a step budget up to whole rollouts; here the last rollout is as short as the budget requires.
    """

    own_settings: ClassVar[tuple[str, ...]] = ("final_lr_fraction",)  # those that stable-baselines3 does not have

    def __init__(self, *args: Any, settings: Any, **kwargs: Any) -> None:
        self.settings = settings
        super().__init__(*args, **kwargs)

    @classmethod
    def constructor_arguments(cls, settings: Any) -> dict[str, Any]:
        """The library's arguments for an algorithm's hyperparameters, and all settings for what we add."""
        found = as_plain(settings)
        return {name: value for name, value in found.items() if name not in cls.own_settings} | {"settings": settings}

    @property
    def steps_per_rollout(self) -> int:
        """The steps of every environment in a whole rollout."""
        raise NotImplementedError

    @property
    def plan(self) -> RolloutPlan:
        """The next rollout."""
        return plan_rollout(self.num_timesteps, self._total_timesteps, self.n_envs, self.steps_per_rollout)

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Every optimizer, by a name that checkpoints use."""
        return {"policy": self.policy.optimizer}

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        rate: float = self.settings.learning_rate * linear_decay(self.settings.final_lr_fraction, progress_remaining)
        return rate

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        """Do nothing: the run's own log keeps the last episodes."""


class OnPolicy(BudgetedAlgorithm, OnPolicyAlgorithm):
    """An on-policy algorithm with an exact step budget."""

    @property
    def steps_per_rollout(self) -> int:
        """The steps of every environment in a whole rollout."""
        return self.n_steps

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect a rollout, or what is left of the budget."""
        rollout_buffer.buffer_size = self.plan.num_steps  # its arrays are made anew before each rollout
        return super().collect_rollouts(env, callback, rollout_buffer, rollout_buffer.buffer_size)


class HotlapPPO(OnPolicy, PPO):
    """PPO with an adaptive learning rate and a minimum standard deviation of the actions."""

    own_settings = (*BudgetedAlgorithm.own_settings, "desired_kl", "min_std", "final_min_std")
    lr_scale = 1.0

    def _learning_rate(self, progress_remaining: float) -> float:
        if self.settings.desired_kl is None:
            return super()._learning_rate(progress_remaining)
        # An adaptive learning rate does not decay by itself: its target, `desired_kl`, does.
        rate: float = self.settings.learning_rate * self.lr_scale
        return rate

    def train(self) -> None:
        """Update the policy from the rollout, then adapt the learning rate and clamp the standard deviation."""
        super().train()
        match_brake_noise(self.policy)
        settings, remaining = self.settings, self._current_progress_remaining
        if settings.desired_kl is not None:
            kl = float(self.logger.name_to_value["train/approx_kl"])
            desired_kl = settings.desired_kl * linear_decay(settings.final_lr_fraction, remaining)
            self.lr_scale = adapt_lr_scale(self.lr_scale, kl, desired_kl)
        min_std = settings.final_min_std + (settings.min_std - settings.final_min_std) * remaining
        if min_std > 0.0 and hasattr(self.policy, "log_std"):  # discrete actions have none
            self.policy.log_std.data.clamp_(min=math.log(min_std))


class HotlapA2C(OnPolicy, A2C):
    """A2C."""

    def train(self) -> None:
        """Update the policy; a rollout of one step is skipped where advantages are normalized (their std is NaN)."""
        if self.normalize_advantage and self.rollout_buffer.buffer_size * self.n_envs == 1:
            return
        super().train()
        match_brake_noise(self.policy)


class HotlapSAC(BudgetedAlgorithm, SAC):
    """SAC."""

    own_settings = (*BudgetedAlgorithm.own_settings, "initial_ent_coef")

    @classmethod
    def constructor_arguments(cls, settings: Any) -> dict[str, Any]:
        """The library's arguments, and all settings for what we add."""
        return super().constructor_arguments(settings) | {"ent_coef": f"auto_{settings.initial_ent_coef!r}"}

    @property
    def steps_per_rollout(self) -> int:
        """The steps of every environment between two updates."""
        frequency: int = self.train_freq.frequency  # type: ignore[union-attr]
        return frequency

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, train_freq: TrainFreq, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Collect the steps between two updates, or what is left of the budget."""
        planned = TrainFreq(self.plan.num_steps, train_freq.unit)
        return super().collect_rollouts(env, callback, planned, *args, **kwargs)

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Those of the actor, the critic and the entropy coefficient."""
        model: Any = self
        parts = {"actor": model.actor.optimizer, "critic": model.critic.optimizer}
        return parts | {"entropy": model.ent_coef_optimizer}  # the coefficient is always learned


ALGORITHMS: dict[str, type[BudgetedAlgorithm]] = {"ppo": HotlapPPO, "a2c": HotlapA2C, "sac": HotlapSAC}


def is_off_policy(model: BudgetedAlgorithm) -> bool:
    """Whether it learns from a replay buffer."""
    return isinstance(model, OffPolicyAlgorithm)
