"""The base classes of our learners: exact step budgets, sparse infos, and what a checkpoint needs to know."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.type_aliases import RolloutReturn, TrainFreq
from stable_baselines3.common.vec_env import VecEnv

from hotlap.config import as_plain
from hotlap.learning.distributed.processes import ALONE, Processes


class Learner(BaseAlgorithm):
    """What our algorithms add to stable-baselines3's.

    The library rounds a step budget up to whole rollouts; here the last rollout is as short as the budget requires.
    """

    has_replay_buffer: ClassVar[bool] = False
    rollout_steps = 0  # vector steps of the rollout being collected
    is_rollout_short = False  # whether the step budget cuts it short
    processes: Processes = ALONE  # those that train this run together

    @classmethod
    def constructor_arguments(cls, settings: Any) -> dict[str, Any]:
        """The constructor's arguments for an algorithm's hyperparameters."""
        return as_plain(settings)

    @property
    def total_envs(self) -> int:
        """The environments of all processes; the library's `n_envs` are those of this one."""
        return self.n_envs * self.processes.size

    @property
    def has_atomic_rollouts(self) -> bool:
        """Whether a rollout cannot be stopped halfway; then a stop waits for its end."""
        return False

    def release_graphs(self) -> None:
        """Drop what must be gone before processes that exchange tensors on GPUs can part."""

    def store_state(self) -> None:
        """Bring what the learner and its environments keep in main memory up to date, before it is saved or read."""

    def named_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Every optimizer, by a name that checkpoints use."""
        return {"policy": self.policy.optimizer}

    def _plan_rollout(self, num_steps: int) -> int:
        """The length of the next rollout in vector steps: `num_steps`, or what is left of the budget."""
        left = math.ceil((self._total_timesteps - self.num_timesteps) / self.total_envs)
        self.rollout_steps = min(num_steps, left)
        self.is_rollout_short = self.rollout_steps < num_steps
        return self.rollout_steps

    def _update_info_buffer(self, infos: list[dict[str, Any]], dones: NDArray[np.bool_] | None = None) -> None:
        # The library reads every environment's info at every step, a tenth of all the time with hundreds of cars. The
        # keys it needs are there only when an episode ends.
        ended = np.flatnonzero(dones) if dones is not None else ()
        if len(ended):
            super()._update_info_buffer([infos[index] for index in ended], np.ones(len(ended), np.bool_))


class OnPolicyLearner(Learner, OnPolicyAlgorithm):
    """An on-policy algorithm with an exact step budget."""

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        """Collect a rollout, or what is left of the budget."""
        num_steps = self._plan_rollout(n_rollout_steps)
        if rollout_buffer.buffer_size != num_steps:
            self.rollout_buffer = self._make_buffer(num_steps)
        return self._collect(env, callback, self.rollout_buffer, num_steps)

    def _collect(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        return super().collect_rollouts(env, callback, rollout_buffer, n_rollout_steps)

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


class OffPolicyLearner(Learner, OffPolicyAlgorithm):
    """An off-policy algorithm with an exact step budget."""

    has_replay_buffer = True

    def collect_rollouts(
        self, env: VecEnv, callback: BaseCallback, train_freq: TrainFreq, *args: Any, **kwargs: Any
    ) -> RolloutReturn:
        """Collect the steps between two updates, or what is left of the budget."""
        planned = TrainFreq(self._plan_rollout(train_freq.frequency), train_freq.unit)
        return super().collect_rollouts(env, callback, planned, *args, **kwargs)
