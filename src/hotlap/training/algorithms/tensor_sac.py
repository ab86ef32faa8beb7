"""`TensorSAC`: SAC for our cars whose updates need no autograd."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecNormalize
from torch import Tensor

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.sac import HotlapSAC
from hotlap.training.algorithms.sac_update import Minibatch, SACNets, SACUpdate
from hotlap.training.algorithms.tensor_normalizer import NoNormalizer, TensorNormalizer


class _Parts(NamedTuple):
    adams: tuple[FlatAdam, FlatAdam, FlatAdam]
    normalizer: Any
    update: SACUpdate


class TensorSAC(HotlapSAC):
    """SAC whose updates need no autograd."""

    _parts: _Parts | None = None
    _is_ahead = False

    def _make_parts(self, nets):
        adams = tuple(FlatAdam(o) for o in (self.actor.optimizer, self.critic.optimizer, self.ent_coef_optimizer))
        normalizer = TensorNormalizer(self.env, self.device) if isinstance(self.env, VecNormalize) else NoNormalizer()
        update = SACUpdate(adams, nets, self.log_ent_coef, self.target_entropy, self.tau, self.batch_size)
        return _Parts(adams, normalizer, update)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        if self._parts is None:
            self._parts = self._make_parts(SACNets.of(self.policy))
        parts = self._parts
        self._update_learning_rate([self.actor.optimizer, self.critic.optimizer, self.ent_coef_optimizer])
        for adam in parts.adams:
            adam.load_lr()
        parts.normalizer.load()
        parts.update.target_entropy = self.target_entropy
        losses = []
        with ThreadPoolExecutor(1, "second-critic") as second:
            for _ in range(gradient_steps):
                losses.append(parts.update.run(self._draw(batch_size), second))
        parts.adams[0].store_values()
        self._is_ahead = True
        self._n_updates += gradient_steps
        found = torch.stack(losses).mean(0).tolist()
        for name, v in zip(("ent_coef", "actor_loss", "critic_loss", "ent_coef_loss"), found):
            self.logger.record("train/" + name, v)
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def store_state(self) -> None:
        if self._parts is None or not self._is_ahead:
            return
        for adam in self._parts.adams:
            adam.store()
        self._parts.update.store_targets()
        self._is_ahead = False



    def _draw(self, batch_size):
        buffer = self.replay_buffer
        filled = buffer.buffer_size if buffer.full else buffer.pos
        steps = np.random.randint(0, filled, size=batch_size)
        cars = np.random.randint(0, buffer.n_envs, size=batch_size)
        steps, cars = torch.from_numpy(steps), torch.from_numpy(cars)

        def rows(array, index):
            return torch.index_select(torch.from_numpy(array).flatten(0, 1), 0, index)

        index = steps * buffer.n_envs + cars
        normalizer = self._parts.normalizer
        rewards = rows(buffer.rewards, index)
        normalizer.normalize_rewards(rewards, out=rewards)
        ended, timeouts = rows(buffer.dones, index), rows(buffer.timeouts, index)
        last = index
        discounts = torch.full_like(rewards, self.gamma)
        if self.settings.n_steps > 1:
            newest = (buffer.pos - 1) % buffer.buffer_size
            running = (ended == 0) & (steps != newest)
            scale = 1.0
            for _ in range(1, self.settings.n_steps):
                scale *= self.gamma
                steps = (steps + 1) % buffer.buffer_size
                then = steps * buffer.n_envs + cars
                more = rows(buffer.rewards, then)
                normalizer.normalize_rewards(more, out=more)
                rewards += scale * more * running
                last = torch.where(running, then, last)
                discounts = torch.where(running, discounts * self.gamma, discounts)
                running &= (rows(buffer.dones, then) == 0) & (steps != newest)
            ended, timeouts = rows(buffer.dones, last), rows(buffer.timeouts, last)
        discounts *= 1.0 - ended * (1.0 - timeouts)
        obs, next_obs = rows(buffer.observations, index), rows(buffer.next_observations, last)
        normalizer.normalize_obs(obs, out=obs)
        normalizer.normalize_obs(next_obs, out=next_obs)
        return Minibatch(obs, rows(buffer.actions, index), next_obs, rewards, discounts)
