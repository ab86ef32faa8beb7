"""`TensorSAC`: SAC for our cars whose updates need no autograd.

It draws the same minibatches and actions from the same random numbers and takes the same steps as `HotlapSAC`; only the
rounding differs. Settings that it does not know are left to stable-baselines3.
"""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.replay_sampler import ReplaySampler
from hotlap.training.algorithms.sac import HotlapSAC
from hotlap.training.algorithms.sac_update import LOSS_NAMES, SACNets, SACUpdate
from hotlap.training.algorithms.tensor_normalizer import NoNormalizer, TensorNormalizer


class _Parts(NamedTuple):
    """What a learner updates with."""

    adams: tuple[FlatAdam, FlatAdam, FlatAdam]  # of the actor, the critics and the entropy coefficient
    normalizer: TensorNormalizer | NoNormalizer
    sampler: ReplaySampler
    update: SACUpdate
    second: ThreadPoolExecutor  # starts its thread when it is first used


class TensorSAC(HotlapSAC):
    """SAC whose updates need no autograd.

    While it learns, the policy is always up to date for callbacks; the optimizers are after `store_state`.
    """

    _parts: _Parts | None = None
    _is_ahead = False  # whether the parts know more than the optimizers

    def own_nets(self) -> SACNets | None:
        """The networks that we compute ourselves; None where stable-baselines3 does all."""
        is_plain = (
            self.device.type == "cpu"
            and not self.use_sde
            and self.target_update_interval == 1
            and isinstance(self.replay_buffer, ReplayBuffer)
            and not self.replay_buffer.optimize_memory_usage
            and all(map(FlatAdam.fits, self.named_optimizers().values()))
        )
        return SACNets.of(self.policy) if is_plain else None

    def learn(self, *args: Any, **kwargs: Any) -> "TensorSAC":
        """Learn; afterwards all of the policy and its optimizers is up to date."""
        super().learn(*args, **kwargs)
        self.store_state()
        return self

    def _make_parts(self, nets: SACNets) -> _Parts:
        optimizers = self.named_optimizers()
        adams = FlatAdam(optimizers["actor"]), FlatAdam(optimizers["critic"]), FlatAdam(optimizers["entropy"])
        buffer: Any = self.replay_buffer
        normalizer = TensorNormalizer(self.env, self.device) if isinstance(self.env, VecNormalize) else NoNormalizer()
        sampler = ReplaySampler(buffer, normalizer, self.gamma, self.settings.n_steps)
        log_ent_coef: Any = self.log_ent_coef
        update = SACUpdate(adams, nets, log_ent_coef, float(self.target_entropy), self.tau, self.batch_size)
        return _Parts(adams, normalizer, sampler, update, ThreadPoolExecutor(1, "second-critic"))

    def _prepare(self, nets: SACNets) -> _Parts:
        """The parts, with the state that the policy and its optimizers have now."""
        parts = self._parts
        if parts is None:
            parts = self._parts = self._make_parts(nets)
        elif not self._is_ahead:
            for adam in parts.adams:
                adam.load()
            parts.update.load_targets()
        self._update_learning_rate(list(self.named_optimizers().values()))
        for adam in parts.adams:
            adam.load_lr()
        parts.normalizer.load()
        return parts

    def store_state(self) -> None:
        """Bring the policy and its optimizers up to date."""
        if self._parts is None or not self._is_ahead:
            return
        for adam in self._parts.adams:
            adam.store()
        self._parts.update.store_targets()
        self._is_ahead = False

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """Update everything from `gradient_steps` minibatches."""
        nets = self.own_nets()
        if nets is None:
            super().train(gradient_steps, batch_size)
            return
        parts = self._prepare(nets)
        losses = [parts.update.run(parts.sampler.draw(batch_size), parts.second) for _ in range(gradient_steps)]
        for adam in parts.adams:
            adam.store_values()
        parts.update.store_targets()
        self._is_ahead = True
        self._n_updates += gradient_steps
        for name, value in zip(LOSS_NAMES, torch.stack(losses).mean(0).tolist(), strict=True):
            self.logger.record(f"train/{name}", value)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")
