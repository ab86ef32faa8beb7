"""PPO, SAC and A2C of stable-baselines3, with budgets kept to the step and nothing hidden from a checkpoint."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv

from hotlap.config import as_plain
from hotlap.errors import TrainingError, one_line
from hotlap.models.model_file import PolicyKind
from hotlap.models.policy import policy_arguments, policy_kind
from hotlap.training.run_config import A2CSettings, PPOSettings, RunConfig

# How quickly the learning rate follows the policy's change, and how far it may go from where it began.
RATE_STEP = 1.5
RATE_RANGE = (0.02, 20.0)


class _SparseInfos(BaseAlgorithm):
    """The library looks into every environment's info at every step; what it looks for is there where an episode ends.

    With hundreds of cars that took a tenth of all the time.
    """

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        ended = np.flatnonzero(dones) if dones is not None else ()
        if len(ended):
            super()._update_info_buffer([infos[number] for number in ended], np.ones(len(ended), np.bool_))


class _WholeBudget(_SparseInfos, OnPolicyAlgorithm):
    """The library rounds a budget up to whole rollouts; here the last rollout is as short as the budget leaves it."""

    rollout_steps = 0  # vector steps of the rollout being collected
    is_rollout_short = False  # whether the budget cuts it short

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect a rollout, or what is left of the budget."""
        self.rollout_steps = min(n_rollout_steps, _steps_left(self))
        self.is_rollout_short = self.rollout_steps < n_rollout_steps
        if rollout_buffer.buffer_size != self.rollout_steps:
            self.rollout_buffer = self._make_buffer(self.rollout_steps)
        return super().collect_rollouts(env, callback, self.rollout_buffer, self.rollout_steps)

    def _make_buffer(self, num_steps: int) -> RolloutBuffer:
        return type(self.rollout_buffer)(
            num_steps,
            self.observation_space,
            self.action_space,
            device=self.device,
            gamma=self.gamma,
            gae_lambda=self.gae_lambda,
            n_envs=self.n_envs,
            **self.rollout_buffer_kwargs,
        )


class HotlapA2C(_WholeBudget, A2C):
    """A2C to the step."""

    def train(self) -> None:
        """Learn from the rollout; a single decision has no spread of advantages to normalize by and is let go."""
        if self.normalize_advantage and self.rollout_steps * self.n_envs == 1:
            return
        super().train()


class HotlapPPO(_WholeBudget, PPO):
    """PPO to the step, with a learning rate that can follow the policy's change and a floor under the noise."""

    def __init__(self, *args: Any, settings: PPOSettings, **kwargs: Any) -> None:
        self.settings = settings
        self.rate_scale = 1.0
        super().__init__(*args, **kwargs)

    def _setup_lr_schedule(self) -> None:
        self.lr_schedule = self._learning_rate

    def _learning_rate(self, progress_remaining: float) -> float:
        rate = self.settings.learning_rate * self.rate_scale
        # Where the rate follows the policy's change, it is the change aimed at that falls.
        return rate if self.settings.desired_kl is not None else rate * self._decay(progress_remaining)

    def _decay(self, progress_remaining: float) -> float:
        share = self.settings.final_lr_fraction
        return share + (1.0 - share) * progress_remaining

    def train(self) -> None:
        """Learn from the rollout, then see to the learning rate and the noise for the next one."""
        super().train()
        if self.settings.desired_kl is not None:
            goal = self.settings.desired_kl * self._decay(self._current_progress_remaining)
            self._follow_change(float(self.logger.name_to_value["train/approx_kl"]), goal)
        self._keep_noise()

    def _follow_change(self, change: float, goal: float) -> None:
        low, high = RATE_RANGE
        if change > 2.0 * goal:
            self.rate_scale = max(self.rate_scale / RATE_STEP, low)
        elif change < 0.5 * goal:
            self.rate_scale = min(self.rate_scale * RATE_STEP, high)

    def _keep_noise(self) -> None:
        first, last = self.settings.min_std, self.settings.final_min_std
        floor = last + (first - last) * self._current_progress_remaining
        if floor > 0.0 and hasattr(self.policy, "log_std"):
            self.policy.log_std.data.clamp_(min=math.log(floor))


class HotlapSAC(_SparseInfos, SAC):
    """SAC to the step."""

    rollout_steps = 0  # vector steps of the rollout being collected
    is_rollout_short = False  # whether the budget cuts it short

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, train_freq: TrainFreq, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Collect the decisions between two updates, or what is left of the budget."""
        self.rollout_steps = min(train_freq.frequency, _steps_left(self))
        self.is_rollout_short = self.rollout_steps < train_freq.frequency
        return super().collect_rollouts(env, callback, TrainFreq(self.rollout_steps, train_freq.unit), *args, **kwargs)


Learner = HotlapPPO | HotlapA2C | HotlapSAC


def _steps_left(model: BaseAlgorithm) -> int:
    """Vector steps to the end of the budget."""
    return math.ceil((model._total_timesteps - model.num_timesteps) / model.n_envs)


def build_model(config: RunConfig, env: VecEnv) -> Learner:
    """The algorithm of a run, seeded, over its worlds."""
    kind = policy_kind(config.policy, env.observation_space)
    try:
        return _build(config, env, kind)
    # The library checks what it is given by assertions and by whatever its parts happen to raise.
    except (AssertionError, ValueError, TypeError, RuntimeError) as error:
        raise TrainingError(
            f"{config.algo} cannot learn in {config.env} with these settings: {one_line(error)}."
        ) from None


def _build(config: RunConfig, env: VecEnv, kind: PolicyKind) -> Learner:
    settings = config.hyperparameters
    common: dict[str, Any] = {
        "policy": kind,
        "env": env,
        "policy_kwargs": policy_arguments(config.policy, config.algo),
        "device": config.device,
        "seed": config.seed,
        "stats_window_size": max(100, config.num_envs),
    }
    if isinstance(settings, PPOSettings):
        own = ("desired_kl", "final_lr_fraction", "min_std", "final_min_std")
        theirs = {name: value for name, value in as_plain(settings).items() if name not in own}
        return HotlapPPO(**common, **theirs, settings=settings)
    if isinstance(settings, A2CSettings):
        return HotlapA2C(**common, **as_plain(settings))
    return HotlapSAC(**common, **as_plain(settings))
