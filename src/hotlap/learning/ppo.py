"""PPO whose rollouts, normalizer, advantages and updates are tensors on one device.

From the same random numbers it takes the same actions and the same steps as stable-baselines3's PPO, and on the CPU
the same minibatches; only the rounding differs. It adds a learning rate that adapts to the KL divergence of the last
update, and a lower bound on the standard deviation of the actions.

A decision is one action of one car, a step one decision of every car. `collect` fills a `Rollout`: for each step the
policy's actions, what the cars did, and at the end values, advantages and returns. `update` passes over its decisions
in random order several times (`PPOUpdate`): for each minibatch the gradients of both networks, then one step of Adam.

On a GPU a rollout and an update are one CUDA graph each. Several processes may train one policy, each with an equal
part of the cars and of every minibatch; gradients, statistics and losses are means over all of them.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hotlap.envs.spaces import action_space
from hotlap.hyperparameters import PPOSettings
from hotlap.learning.adam import Adam, as_tensors
from hotlap.learning.cars import Cars
from hotlap.learning.cuda_graph import beside, capture, preserve_generator
from hotlap.learning.distributed.moments import pooled_moments
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.events import OnStep, RolloutEvents, StepEvents, step_events
from hotlap.learning.generators import Generators
from hotlap.learning.minibatches import draw_orders
from hotlap.learning.networks.actor_critic import LOG_STD, ActorCritic, initial_weights
from hotlap.learning.networks.layers import layer_pairs
from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.networks.ppo_passes import NUM_LOSSES
from hotlap.learning.normalizer import Normalizer
from hotlap.learning.ppo_update import MinibatchLosses, PPOUpdate, RolloutRows
from hotlap.learning.rollout import VALUE_ROWS, Actor, Rollout
from hotlap.learning.schedules import LR_SCALE_RANGE, adapt_lr_scale, linear_decay
from hotlap.learning.step_budget import RolloutPlan, plan_rollout
from hotlap.models.model_file import PolicyArrays, PolicySettings

ADAM_EPS = 1e-5  # as in stable-baselines3's PPO


class _Parts(NamedTuple):
    """What collects and learns from rollouts of one length: buffers, and networks that are views of Adam's weights."""

    rollout: Rollout
    update: PPOUpdate
    orders: Tensor  # (n_epochs, num_rows): the permutations of an update on a GPU; empty on a CPU
    losses: Tensor  # of the last update on a GPU; empty on a CPU
    collect_graph: Callable[[], object] | None = None  # on a GPU
    update_graph: Callable[[], object] | None = None


class PPO:
    """Learns to drive `cars` for `total_steps` decisions. All its state, that of cars and normalizer too, is its own.

    Call `collect` and `update` in turns until `num_timesteps` has reached the budget; the last rollout may be shorter.
    """

    replay_bytes = 0  # it has no replay buffer

    def __init__(
        self,
        settings: PPOSettings,
        policy: PolicySettings,
        cars: Cars,
        normalizer: Normalizer,
        *,
        total_steps: int,
        seed: int,
        processes: Processes = ALONE,
        max_threads: int = 2,
    ) -> None:
        """`cars` are this process's part of all; `max_threads` changes no bit of the results."""
        self._settings, self._total_steps, self._max_threads = settings, total_steps, max_threads
        self._batch_size = processes.share(settings.batch_size, "ppo.batch_size")
        self._cars, self._normalizer, self.processes = cars, normalizer, processes
        self._device = cars.obs.device
        self._generators = Generators(seed, self._device)
        num_obs, self._num_actions = cars.obs.shape[1], cars.actions.shape[1]
        self._nets = ActorCritic.of(policy, self._num_actions)
        # Adam holds the weights in one vector. All else has views of it, so it is only ever written in place.
        with self._generators.initializing():
            self._adam = Adam(initial_weights(policy, num_obs, self._num_actions), self._device, ADAM_EPS)
        self._parts: _Parts | None = None
        self._lr_scale = 1.0
        self.num_timesteps = 0  # decisions of all cars of all processes
        cars.reset(seed + processes.rank * len(cars))
        normalizer.reset(cars.obs)

    @property
    def total_envs(self) -> int:
        """The cars of all processes."""
        return len(self._cars) * self.processes.size

    @property
    def has_atomic_rollouts(self) -> bool:
        """Whether a rollout cannot be stopped halfway: on a GPU."""
        return self._uses_graphs

    @property
    def _uses_graphs(self) -> bool:
        return self._device.type == "cuda"

    @property
    def plan(self) -> RolloutPlan:
        """How long the next rollout is; the last one ends at the step budget."""
        return plan_rollout(self.num_timesteps, self._total_steps, self.total_envs, self._settings.n_steps)

    # --- collect ---

    def collect(self, on_step: OnStep) -> bool:
        """Collect a rollout; `on_step` is told every step and may end it. Returns whether it is complete.

        On a GPU the update is launched right after the rollout, and the steps are told while it computes.
        """
        self._cars.renew_opponents(self.num_timesteps, self.policy)
        restarted = self._cars.renew_roads()
        if restarted is not None:  # cars whose road was replaced
            self._normalizer.forget_returns(restarted)
        parts = self._parts_for(self.plan.num_steps)
        if self._uses_graphs or not self.processes.is_alone:
            events = self._collect_whole(parts)
            # A listener that ends the rollout here saves the state from before it: this one is further already.
            return all(self._tell(on_step, partial(events.at, row)) for row in range(parts.rollout.num_steps))
        return self._fill(parts.rollout, lambda: self._tell(on_step, partial(step_events, self._cars)))

    def _tell(self, on_step: OnStep, make_events: Callable[[int], StepEvents]) -> bool:
        """Count a step and tell it; returns whether the rollout goes on."""
        self.num_timesteps += self.total_envs
        return on_step(make_events(self.num_timesteps))

    def _fill(self, rollout: Rollout, on_step: Callable[[], bool] = lambda: True) -> bool:
        """Drive all steps of a rollout, then compute its advantages; returns whether it is complete."""
        rollout.begin()
        for step in range(rollout.num_steps):
            rollout.decide(step)
            if not on_step():
                return False
        rollout.finish(self._settings.gamma, self._settings.gae_lambda)
        return True

    def _collect_whole(self, parts: _Parts) -> RolloutEvents:
        """Collect a rollout, and on a GPU launch its update; returns the events of all processes."""
        if parts.collect_graph is None:
            self._fill(parts.rollout)
            return RolloutEvents(parts.rollout, self.processes)
        parts.collect_graph()
        with beside(self._device, lambda: self._launch_update(parts)):
            return RolloutEvents(parts.rollout, self.processes)

    # --- update ---

    def update(self) -> dict[str, float]:
        """Update the weights from the rollout, or wait for the update launched before; returns the figures to log."""
        parts, settings = self._parts, self._settings
        if parts is None:
            raise RuntimeError("update() before collect()")
        remaining = self._progress_remaining(self.num_timesteps)
        if parts.update_graph is None:
            self._adam.set_lr(self._learning_rate(remaining))
            losses = parts.update.run(self._draw_orders(parts.rollout))
        else:
            losses = parts.losses
        figures = self._figures(parts.rollout, MinibatchLosses(*losses.cpu().numpy().T))
        figures["train/learning_rate"] = self._learning_rate(remaining)
        if settings.desired_kl is not None:
            desired_kl = settings.desired_kl * linear_decay(settings.final_lr_fraction, remaining)
            self._lr_scale = adapt_lr_scale(self._lr_scale, figures["train/approx_kl"], desired_kl)
        self._limit_std(remaining)
        return figures

    def _launch_update(self, parts: _Parts) -> None:
        """Start an update on the GPU, with the learning rate for when all steps of the rollout are counted."""
        num_rows = parts.orders.shape[1]
        num_timesteps = self.num_timesteps + num_rows * self.processes.size
        self._adam.set_lr(self._learning_rate(self._progress_remaining(num_timesteps)))
        if self.processes.is_alone:
            for order in parts.orders:
                torch.randperm(num_rows, out=order, device=order.device, generator=self._generators.torch)
        else:
            for order, found in zip(parts.orders, self._draw_orders(parts.rollout), strict=True):
                order.copy_(found)
        parts.update_graph()  # type: ignore[misc]

    def _draw_orders(self, rollout: Rollout) -> Iterator[Tensor]:
        """The order of the decisions for each epoch."""
        num_steps, num_cars = rollout.rewards.shape
        return draw_orders(num_steps, num_cars, self._settings.n_epochs, self._generators.numpy, self.processes)

    def _progress_remaining(self, num_timesteps: int) -> float:
        """From 1 at the start of the run to 0 at its end."""
        return 1.0 - float(num_timesteps) / float(self._total_steps)

    def _learning_rate(self, progress_remaining: float) -> float:
        """Of the next update: it decays, or it follows the KL divergence of the updates before."""
        settings = self._settings
        if settings.desired_kl is None:
            return settings.learning_rate * linear_decay(settings.final_lr_fraction, progress_remaining)
        # An adaptive learning rate does not decay by itself: its target, `desired_kl`, does.
        return settings.learning_rate * self._lr_scale

    def _limit_std(self, progress_remaining: float) -> None:
        """Apply the lower bound of the standard deviation.

        With the head `pedal_axis` throttle and brake have one noise: the brake's deviation is the throttle's.
        """
        log_std, num_axes = self._adam.value(LOG_STD), self._nets.num_axes
        log_std[num_axes:] = log_std[num_axes - 1]
        first, last = self._settings.min_std, self._settings.final_min_std
        min_std = last + (first - last) * progress_remaining
        if min_std > 0.0:
            log_std.clamp_(min=math.log(min_std))

    def _figures(self, rollout: Rollout, losses: MinibatchLosses) -> dict[str, float]:
        """What stable-baselines3's PPO logs: means over all minibatches, the KL over those of the last epoch."""
        settings = self._settings
        batches_per_epoch = len(losses.policy) // settings.n_epochs
        # The entropy here is a loss: the negative entropy.
        loss = losses.policy[-1] + settings.ent_coef * losses.entropy[-1] + settings.vf_coef * losses.value[-1]
        returns = rollout.returns
        unexplained, variance = self._variances(returns - rollout.values[:-1], returns)
        figures = {
            "entropy_loss": losses.entropy.mean(),
            "policy_gradient_loss": losses.policy.mean(),
            "value_loss": losses.value.mean(),
            "approx_kl": losses.approx_kl[-batches_per_epoch:].mean(),
            "clip_fraction": losses.clip_fraction.mean(),
            "loss": loss,
            "explained_variance": 1.0 - unexplained / variance,
            "std": self._adam.value(LOG_STD).exp().mean(),
            "clip_range": settings.clip_range,
        }
        return {f"train/{name}": float(figure) for name, figure in figures.items()}

    def _variances(self, *values: Tensor) -> list[Tensor]:
        """The variance of each over all processes."""
        if self.processes.is_alone:
            return [each.var(correction=0) for each in values]
        own = torch.stack([torch.stack([each.mean(), each.var(correction=0)]) for each in values], 1)
        return list(pooled_moments(self.processes.gather(own.cpu().double()))[1])

    # --- parts ---

    def _parts_for(self, num_steps: int) -> _Parts:
        """The parts for rollouts of this length."""
        if self._parts is None or self._parts.rollout.num_steps != num_steps:
            self._parts = self._make_parts(num_steps)
            if self._uses_graphs:
                self._parts = self._capture(self._parts)
        return self._parts

    def _make_parts(self, num_steps: int) -> _Parts:
        cars, nets, device = self._cars, self._nets, self._device
        space = action_space()
        low, high = (torch.as_tensor(bound, device=device) for bound in (space.low, space.high))
        log_std = self._adam.value(LOG_STD)[: nets.num_axes]
        actor = Actor(self._net(nets.policy, len(cars)), log_std, low, high, self._generators.torch, self.processes)
        num_threads = self._max_threads if device.type == "cpu" else 1
        value_nets = [self._net(nets.value, VALUE_ROWS[device.type]) for _ in range(num_threads)]
        episode_steps = math.ceil(cars.fleet.settings.episode.max_ticks / cars.action_repeat)
        max_cuts = 1 + (num_steps - 1) // episode_steps  # how often a car can reach the time limit in a rollout
        rollout = Rollout(cars, self._normalizer, actor, value_nets, num_steps, max_cuts)
        rows = RolloutRows(
            rollout.observations.flatten(0, 1),
            rollout.actions[: nets.num_axes].flatten(1),
            rollout.log_probs.flatten(),
            rollout.advantages.flatten(),
            rollout.returns.flatten(),
        )
        update = PPOUpdate(
            self._adam, nets, rows, self._settings, self._batch_size, self.processes, max_threads=self._max_threads
        )
        num_orders = self._settings.n_epochs if self._uses_graphs else 0
        orders = torch.zeros(num_orders, len(rows.returns), dtype=torch.int64, device=device)
        num_batches = num_orders * math.ceil(len(rows.returns) / update.batch_size)
        return _Parts(rollout, update, orders, torch.zeros(num_batches, NUM_LOSSES, device=device))

    def _net(self, layers: tuple[str, ...], num_rows: int) -> Mlp:
        return Mlp(layer_pairs(self._adam.value, layers), self._nets.activation, num_rows)

    def _capture(self, parts: _Parts) -> _Parts:
        """The parts with a rollout and an update as CUDA graphs. Warming up changes the state, so it is restored."""
        parts.orders.copy_(torch.arange(parts.orders.shape[1]))
        state, generator = self.state_dict(), self._generators.torch
        with preserve_generator(generator):
            collect = capture(lambda: self._fill(parts.rollout), generator)
            update = capture(lambda: parts.losses.copy_(parts.update.run(parts.orders)), generator)
        self.load_state_dict(state)
        return parts._replace(collect_graph=collect, update_graph=update)

    def close(self) -> None:
        """Close the cars, and drop the CUDA graphs: processes that use GPUs end without them only."""
        self._parts = None
        self._cars.close()

    # --- state ---

    def policy(self) -> PolicyArrays:
        """The weights, by stable-baselines3's names, and the normalizer's statistics. Copies."""
        weights = {name: weight.cpu().numpy().copy() for name, weight in self._adam.weights().items()}
        return PolicyArrays(weights, self._normalizer.state_dict())

    def load_policy(self, policy: PolicyArrays) -> None:
        """Start from the weights of a model, and its statistics of observations where they are normalized.

        An adaptive learning rate begins at its lower end.
        """
        self._adam.load_weights(as_tensors(policy.weights))
        self._normalizer.load_observations(policy.normalizer)
        # A trained policy has little noise, and the rate that suits a new one would destroy it in one update.
        self._lr_scale = LR_SCALE_RANGE[0] if self._settings.desired_kl is not None else 1.0

    def state_dict(self, *, with_replay: bool = True) -> dict[str, Any]:
        """All that a bit-identical continuation needs, after an `update`; of the cars only those of this process."""
        policy = self.policy()
        counters = {"num_timesteps": self.num_timesteps, "lr_scale": self._lr_scale}
        return {
            "learner": {"counters": counters},
            "policy": policy.weights,
            "optimizers": {"policy": self._adam.state_dict()},
            "normalizer": policy.normalizer,
            "envs": self._cars.state_dict(),
            "rng": self._generators.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        counters = state["learner"]["counters"]
        self._adam.load_weights(as_tensors(state["policy"]))
        self._adam.load_state_dict(state["optimizers"]["policy"])
        self._normalizer.load_state_dict(state["normalizer"])
        self._cars.load_state_dict(state["envs"])
        self._generators.load_state_dict(state["rng"])
        self.num_timesteps, self._lr_scale = int(counters["num_timesteps"]), float(counters["lr_scale"])
