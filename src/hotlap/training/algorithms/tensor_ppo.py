"""`TensorPPO`: PPO for our cars whose rollouts, normalizer, advantages and updates are tensors on one device.

It samples the same actions and, on the CPU, the same minibatches from the same random numbers and takes the same steps
as `HotlapPPO`; only the rounding differs. On a GPU a rollout and an update are one CUDA graph each. Settings that it
does not know are left to stable-baselines3.

Several processes may train one policy, each with an equal part of the cars and of every minibatch.
"""

import math
import time
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import VecEnv, VecNormalize
from torch import Tensor

from hotlap.models.action_head import num_noise_axes
from hotlap.training.algorithms.cuda_graph import beside, capture, preserve_generator
from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.minibatch_orders import draw_orders
from hotlap.training.algorithms.mlp import ActorCritic, Mlp
from hotlap.training.algorithms.moments import Moments
from hotlap.training.algorithms.ppo import HotlapPPO
from hotlap.training.algorithms.ppo_passes import NUM_LOSSES
from hotlap.training.algorithms.ppo_update import LossSettings, MinibatchLosses, PPOUpdate, Rollout
from hotlap.training.algorithms.rollout_events import RolloutEvents
from hotlap.training.algorithms.tensor_normalizer import NoNormalizer, TensorNormalizer, share_reset
from hotlap.training.algorithms.tensor_rollout import VALUE_ROWS, Actor, TensorRollout
from hotlap.training.vec_envs.racer import RacerVecEnv
from hotlap.training.vec_envs.tensor_cars import TensorCars


class _Parts(NamedTuple):
    """What a learner keeps on its device for rollouts of one length."""

    cars: TensorCars
    normalizer: TensorNormalizer | NoNormalizer
    adam: FlatAdam
    rollout: TensorRollout
    update: PPOUpdate
    orders: Tensor  # (n_epochs, num_rows): the permutations of an update on a GPU


class _Graphs(NamedTuple):
    """A rollout and an update as CUDA graphs."""

    collect: Callable[[], object]
    update: Callable[[], object]
    losses: Tensor  # of the last update


class TensorPPO(HotlapPPO):
    """PPO whose rollouts and updates need no autograd and no Python objects for each environment."""

    max_threads = 2  # on the CPU, beside torch's own; the bits do not depend on it
    _parts: _Parts | None = None
    _graphs: _Graphs | None = None
    _loaded_obs: Any = None  # the `_last_obs` that the parts were loaded with or stored to

    def own_nets(self) -> ActorCritic | None:
        """The networks that we compute ourselves; None where stable-baselines3 does all."""
        policy = self.policy
        is_plain = (
            not self.use_sde
            and self.clip_range_vf is None
            and self.target_kl is None
            and isinstance(policy, ActorCriticPolicy)
            and FlatAdam.fits(policy.optimizer)
            and self._cars_env() is not None
        )
        return ActorCritic.of(policy) if is_plain else None

    def _cars_env(self) -> RacerVecEnv | None:
        """The cars under at most a normalizer."""
        env = self.env.venv if type(self.env) is VecNormalize else self.env
        return env if type(env) is RacerVecEnv else None

    @property
    def rollout(self) -> TensorRollout | None:
        """The last rollout; None before the first."""
        return self._parts.rollout if self._parts is not None else None

    @property
    def has_atomic_rollouts(self) -> bool:
        """Whether a rollout cannot be stopped halfway."""
        return self.uses_graphs and self.own_nets() is not None

    @property
    def uses_graphs(self) -> bool:
        """Whether a rollout and an update are CUDA graphs."""
        return self.device.type == "cuda"

    # --- parts ---

    def _make_parts(self, nets: ActorCritic, num_steps: int) -> _Parts:
        env, policy, device = self._cars_env(), self.policy, self.device
        if env is None:
            raise TypeError("these environments are not our cars")
        cars, adam = TensorCars(env, device), FlatAdam(policy.optimizer)
        processes = self.processes
        normalizer = (
            TensorNormalizer(self.env, device, processes) if isinstance(self.env, VecNormalize) else NoNormalizer()
        )

        def net(layers: Any, num_rows: int) -> Mlp:
            values = [(adam.value(layer.weight), adam.value(layer.bias)) for layer in layers]
            return Mlp(values, nets.activation, num_rows)

        low, high = (torch.as_tensor(bound, device=device) for bound in (self.action_space.low, self.action_space.high))  # type: ignore[attr-defined]
        num_axes = num_noise_axes(policy)
        actor = Actor(net(nets.policy, env.num_envs), adam.value(policy.log_std)[:num_axes], low, high, processes)
        num_threads = self.max_threads if device.type == "cpu" else 1
        value_nets = [net(nets.value, VALUE_ROWS[device.type]) for _ in range(num_threads)]
        episode_steps = math.ceil(env.fleet.settings.episode.max_ticks / env.action_repeat)
        rollout = TensorRollout(cars, normalizer, actor, value_nets, num_steps, 1 + (num_steps - 1) // episode_steps)
        rows = Rollout(
            rollout.observations.flatten(0, 1),
            rollout.actions[:num_axes].flatten(1),
            rollout.log_probs.flatten(),
            rollout.advantages.flatten(),
            rollout.returns.flatten(),
        )
        settings = LossSettings(
            self.clip_range(1.0),  # type: ignore[operator]
            self.ent_coef,
            self.vf_coef,
            self.max_grad_norm,
            bool(self.normalize_advantage),
        )
        update = PPOUpdate(
            adam, nets, policy.log_std, rows, settings, self.batch_size, processes, max_threads=self.max_threads
        )
        num_orders = self.n_epochs if self.uses_graphs else 0
        orders = torch.zeros(num_orders, len(rows.returns), dtype=torch.int64, device=device)
        return _Parts(cars, normalizer, adam, rollout, update, orders)

    def _prepare(self, nets: ActorCritic, num_steps: int) -> _Parts:
        """The parts, with the state that the learner and its environments have now."""
        parts = self._parts
        if parts is None or parts.rollout.num_steps != num_steps or self.uses_graphs != (self._graphs is not None):
            self.store_state()
            parts = self._parts = self._make_parts(nets, num_steps)
            self._loaded_obs = None
            self._graphs = self._capture(parts) if self.uses_graphs else None
        if self._loaded_obs is not self._last_obs:
            self._load(parts)
        parts.adam.load_values()  # the standard deviation may have been clamped
        return parts

    def _load(self, parts: _Parts) -> None:
        parts.cars.load()
        parts.normalizer.load()
        parts.adam.load()
        parts.rollout.obs.copy_(torch.as_tensor(self._last_obs))
        self._loaded_obs = self._last_obs

    def store_state(self) -> None:
        """Bring the learner and its environments up to date with the device."""
        parts = self._parts
        if parts is None or self._loaded_obs is not self._last_obs:
            return
        parts.cars.store()
        parts.normalizer.store()
        self._last_obs = self._loaded_obs = parts.rollout.obs.cpu().numpy().copy()
        self._last_episode_starts = parts.rollout.ended[-1].cpu().numpy().copy()

    def release_graphs(self) -> None:
        """Drop the CUDA graphs; they are captured again when they are needed."""
        self._graphs = None

    def _capture(self, parts: _Parts) -> _Graphs:
        """Capture a rollout and an update. Warming up changes everything; the caller loads it again."""
        parts.orders.copy_(torch.arange(parts.orders.shape[1]))
        num_batches = self.n_epochs * math.ceil(parts.orders.shape[1] / parts.update.batch_size)
        losses = torch.zeros(num_batches, NUM_LOSSES, device=self.device)

        def collect() -> None:
            self._fill(parts, lambda _: True)

        def update() -> None:
            losses.copy_(parts.update.run(parts.orders))

        env: Any = self._cars_env()
        state = env.get_state()
        with preserve_generator(self.device):
            self._load(parts)
            graphs = capture(collect, self.device), capture(update, self.device)
        env.set_state(state)
        self._loaded_obs = None
        return _Graphs(*graphs, losses)

    def _setup_learn(self, *args: Any, **kwargs: Any) -> Any:
        env = self.env
        if self.processes.is_alone or not isinstance(env, VecNormalize) or not env.norm_obs:
            return super()._setup_learn(*args, **kwargs)
        before: Any = deepcopy(env.obs_rms)
        found, after = super()._setup_learn(*args, **kwargs), env.obs_rms
        if after.count != before.count:  # type: ignore[attr-defined]
            self._last_obs = share_reset(env, before, self.processes)
        return found

    # --- rollout ---

    def _fill(self, parts: _Parts, on_step: Callable[[int], bool]) -> bool:
        """Collect a rollout; `on_step` is told each decision and may end it."""
        rollout = parts.rollout
        rollout.begin()
        for step in range(rollout.num_steps):
            rollout.decide(step)
            if not on_step(step):
                return False
        rollout.finish(self.gamma, self.gae_lambda)
        return True

    def _collect(
        self, env: VecEnv, callback: BaseCallback, rollout_buffer: RolloutBuffer, n_rollout_steps: int
    ) -> bool:
        nets = self.own_nets()
        if nets is None:
            return super()._collect(env, callback, rollout_buffer, n_rollout_steps)
        callback.on_rollout_start()
        parts = self._prepare(nets, n_rollout_steps)
        started_s = self._cars_env().start_s  # type: ignore[union-attr]

        # Callbacks read the names of stable-baselines3's local variables. Values are computed after the rollout.
        named = {"self": self, "env": env, "callback": callback, "n_rollout_steps": n_rollout_steps}
        named |= {"rollout_buffer": rollout_buffer, "rollout": parts.rollout}

        def tell(events: RolloutEvents, row: int, step: int) -> bool:
            rollout = parts.rollout
            infos = events.infos(row, round(time.time() - started_s, 6))
            results: dict[str, Any] = {"actions": rollout.actions[:, step].t(), "clipped_actions": parts.cars.actions}
            results |= {"log_probs": rollout.log_probs[step], "rewards": rollout.rewards[step], "new_obs": rollout.obs}
            results |= {"dones": events.dones[row], "infos": infos, "reward_term_means": events.reward_term_means(row)}
            self.num_timesteps += self.total_envs
            callback.update_locals({**named, **results})
            self.ep_info_buffer.extend(infos.episode(*each) for each in infos.events.episodes())  # type: ignore[union-attr]
            return callback.on_step()

        if self._graphs is None and self.processes.is_alone:
            is_complete = self._fill(
                parts, lambda step: tell(RolloutEvents(parts.rollout, slice(step, step + 1)), 0, step)
            )
        else:
            events = self._collect_whole(parts)
            is_complete = all(tell(events, step, step) for step in range(n_rollout_steps))
        if self._graphs is None:
            self.store_state()
        if is_complete:
            callback.update_locals(named)
            callback.on_rollout_end()
        return is_complete

    def _collect_whole(self, parts: _Parts) -> RolloutEvents:
        """Collect a rollout without telling anybody; returns the events of all processes."""
        if self._graphs is None:
            self._fill(parts, lambda _: True)
            events = RolloutEvents(parts.rollout, slice(None))
        else:
            self._graphs.collect()
            with beside(self.device, lambda: self._begin_update(parts)):
                events = RolloutEvents(parts.rollout, slice(None))
        if not self.processes.is_alone:
            events.gather(self.processes)
        return events

    # --- update ---

    def _begin_update(self, parts: _Parts) -> None:
        """Start an update on the GPU; it computes while the callbacks read the rollout."""
        num_rows = parts.orders.shape[1]
        # The library counts the rollout's steps only afterwards, and its schedules depend on them.
        self._update_current_progress_remaining(
            self.num_timesteps + num_rows * self.processes.size, self._total_timesteps
        )
        self._update_learning_rate(self.policy.optimizer)
        parts.adam.load_lr()
        if self.processes.is_alone:
            for order in parts.orders:
                torch.randperm(num_rows, out=order, device=order.device)
        else:
            for order, found in zip(
                parts.orders, draw_orders(parts.rollout, self.n_epochs, self.processes), strict=True
            ):
                order.copy_(found)
        self._graphs.update()  # type: ignore[union-attr]

    def _update(self) -> None:
        parts = self._parts
        if parts is None or self.own_nets() is None:
            super()._update()
            return
        self.policy.set_training_mode(True)
        if self._graphs is None:
            self._update_learning_rate(self.policy.optimizer)
            parts.adam.load_lr()
            losses = parts.update.run(draw_orders(parts.rollout, self.n_epochs, self.processes))
        else:
            losses = self._graphs.losses
        parts.adam.store()
        self._n_updates += self.n_epochs
        self._log_update(parts.rollout, MinibatchLosses(*losses.cpu().numpy().T))

    def _log_update(self, rollout: TensorRollout, losses: MinibatchLosses) -> None:
        """Log what stable-baselines3's PPO logs: means over all minibatches, the KL over those of the last epoch."""
        last_epoch = len(losses.policy) // self.n_epochs
        loss = losses.policy[-1] + self.ent_coef * losses.entropy[-1] + self.vf_coef * losses.value[-1]
        values, returns = rollout.values[:-1], rollout.returns
        unexplained, variance = self._variances(returns - values, returns)
        explained = 1.0 - unexplained / variance
        figures = {
            "entropy_loss": losses.entropy.mean(),
            "policy_gradient_loss": losses.policy.mean(),
            "value_loss": losses.value.mean(),
            "approx_kl": losses.approx_kl[-last_epoch:].mean(),
            "clip_fraction": losses.clip_fraction.mean(),
            "loss": loss,
            "explained_variance": explained,
            "std": self.policy.log_std.detach().exp().mean(),
            "clip_range": self.clip_range(1.0),  # type: ignore[operator]
        }
        for name, figure in figures.items():
            self.logger.record(f"train/{name}", float(figure))
        self.logger.record("train/n_updates", self._n_updates, exclude="tensorboard")

    def _variances(self, *values: Tensor) -> list[Tensor]:
        """The variance of each over all processes."""
        if self.processes.is_alone:
            return [each.var(correction=0) for each in values]
        own = torch.stack([torch.stack([each.mean(), each.var(correction=0)]) for each in values], 1)
        return list(Moments.of(own.cpu().double(), self.processes).variance)
