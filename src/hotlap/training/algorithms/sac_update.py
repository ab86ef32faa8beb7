"""SAC's update without autograd: critics, actor and entropy coefficient, their gradients written by hand, and Adam.

The two critics share no weights, so their passes can run in two threads. Neither result depends on the other thread, so
the bits are the same on one core.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import SquashedDiagGaussianDistribution
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.sac.policies import LOG_STD_MAX, LOG_STD_MIN, Actor, ContinuousCritic, SACPolicy
from torch import Tensor, nn

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.mlp import ACTIVATIONS, Activation, Mlp
from hotlap.training.algorithms.ppo_update import HALF_LOG_TAU, ThreadChoice

_SQUASH_FLOOR = 1e-6  # added to the slope of tanh before its logarithm, as in stable-baselines3
NUM_CRITICS = 2
NUM_LOSSES = 4


class SACNets(NamedTuple):
    """The layers of a policy whose gradients we compute ourselves."""

    actor: tuple[nn.Linear, ...]  # the hidden layers
    mean: nn.Linear
    log_std: nn.Linear
    critics: tuple[tuple[nn.Linear, ...], ...]
    targets: tuple[tuple[nn.Linear, ...], ...]
    activation: Activation

    @classmethod
    def of(cls, policy: SACPolicy) -> "SACNets | None":
        """The layers of `policy`; None if it is not plain MLPs with two critics."""
        actor, critic, target = policy.actor, policy.critic, policy.critic_target
        observations = policy.observation_space
        is_plain = (
            type(policy) is SACPolicy
            and type(actor) is Actor
            and type(critic) is ContinuousCritic
            and type(actor.features_extractor) is FlattenExtractor
            and type(actor.action_dist) is SquashedDiagGaussianDistribution
            and isinstance(observations, spaces.Box)
            and len(observations.shape) == 1
            and len(critic.q_networks) == NUM_CRITICS
        )
        if not is_plain:
            return None
        networks = [actor.latent_pi, *critic.q_networks]
        kinds = {type(module) for network in networks for module in network} - {nn.Linear}
        if len(kinds) != 1 or not kinds <= set(ACTIVATIONS):
            return None
        mean, log_std = actor.mu, actor.log_std
        assert isinstance(mean, nn.Linear)
        assert isinstance(log_std, nn.Linear)
        return cls(
            _linear(actor.latent_pi),
            mean,
            log_std,
            tuple(map(_linear, critic.q_networks)),
            tuple(map(_linear, target.q_networks)),
            ACTIVATIONS[kinds.pop()],
        )


def _linear(modules: nn.Sequential) -> tuple[nn.Linear, ...]:
    return tuple(module for module in modules if isinstance(module, nn.Linear))


@dataclass(frozen=True)
class Minibatch:
    """Decisions drawn from a replay buffer, normalized."""

    observations: Tensor  # (n, num_obs)
    actions: Tensor  # (n, num_actions), from -1 to 1
    next_observations: Tensor  # (n, num_obs)
    rewards: Tensor  # (n,)
    discounts: Tensor  # (n,): of the value of the next observation; 0 where the episode terminated


class _Sample(NamedTuple):
    """Actions drawn from the actor, and what the gradient needs; each (num_actions, n) but the log probabilities."""

    actions: Tensor
    log_probs: Tensor  # (n,)
    noise: Tensor
    std: Tensor
    is_std_free: Tensor  # whether the standard deviation is not at a bound


class _ActorNet:
    """The actor with working weights: mean and log standard deviation are one last layer."""

    def __init__(self, adam: FlatAdam, nets: SACNets, num_rows: int) -> None:
        self._adam, self._heads = adam, (nets.mean, nets.log_std)
        self._num_actions = nets.mean.out_features
        weight, bias = torch.zeros(2 * self._num_actions, nets.mean.in_features), torch.zeros(2 * self._num_actions)
        self._head, self._head_gradient = (weight, bias), (torch.zeros_like(weight), torch.zeros_like(bias))
        hidden = [(adam.value(layer.weight), adam.value(layer.bias)) for layer in nets.actor]
        gradients = [(adam.gradient(layer.weight), adam.gradient(layer.bias)) for layer in nets.actor]
        # Two sets of buffers: those of the first pass are needed when the gradient is computed.
        self._net = Mlp([*hidden, self._head], nets.activation, num_rows, [*gradients, self._head_gradient])
        self._next_net = Mlp([*hidden, self._head], nets.activation, num_rows)

    def load_head(self) -> None:
        """Take the last layer over from the working copy."""
        for layer, rows in zip(self._heads, self._head_rows, strict=True):
            self._head[0][rows] = self._adam.value(layer.weight)
            self._head[1][rows] = self._adam.value(layer.bias)

    @property
    def _head_rows(self) -> tuple[slice, slice]:
        return slice(0, self._num_actions), slice(self._num_actions, None)

    def sample(self, observations: Tensor, noise: Tensor) -> _Sample:
        """Actions for `backward`; `noise` is (n, num_actions)."""
        return _squash(self._net.forward(observations), noise)

    def sample_next(self, observations: Tensor, noise: Tensor) -> _Sample:
        """Actions without a gradient."""
        return _squash(self._next_net.forward(observations), noise)

    def backward(self, observations: Tensor, by_outputs: Tensor) -> None:
        """Fill the gradients from that of the outputs (2 * num_actions, n), after `sample(observations)`."""
        self._net.backward(observations, by_outputs)
        for layer, rows in zip(self._heads, self._head_rows, strict=True):
            self._adam.gradient(layer.weight).copy_(self._head_gradient[0][rows])
            self._adam.gradient(layer.bias).copy_(self._head_gradient[1][rows])


def _squash(outputs: Tensor, noise: Tensor) -> _Sample:
    num_actions = len(outputs) // 2
    means, raw = outputs[:num_actions], outputs[num_actions:]
    log_std = raw.clamp(LOG_STD_MIN, LOG_STD_MAX)
    std, noise = log_std.exp(), noise.t()
    actions = torch.addcmul(means, std, noise).tanh_()
    log_slopes = actions.square().neg_().add_(1.0 + _SQUASH_FLOOR).log_()
    log_probs = noise.square().mul_(-0.5).sub_(log_std).sub_(HALF_LOG_TAU).sub_(log_slopes).sum(0)
    return _Sample(actions, log_probs, noise, std, log_std == raw)


class SACUpdate:
    """Updates the working copies of actor, critics and entropy coefficient, and the target critics."""

    def __init__(
        self,
        adams: tuple[FlatAdam, FlatAdam, FlatAdam],
        nets: SACNets,
        log_ent_coef: Tensor,
        target_entropy: float,
        tau: float,
        batch_size: int,
    ) -> None:
        """`adams` are those of the actor, the critics and the entropy coefficient."""
        self._actor_adam, self._critic_adam, self._entropy_adam = adams
        self._nets, self.target_entropy, self._tau = nets, target_entropy, tau
        self._log_ent_coef, self._entropy_gradient = (
            self._entropy_adam.value(log_ent_coef),
            self._entropy_adam.gradient(log_ent_coef),
        )
        self._actor = _ActorNet(self._actor_adam, nets, batch_size)
        self._target_values = torch.zeros_like(self._critic_adam.values)
        self._critics = [self._critic(layers, batch_size) for layers in nets.critics]
        self._targets = [
            Mlp(self._target_layers(layers), nets.activation, batch_size) for layers in nets.critics
        ]
        num_inputs = nets.critics[0][0].in_features
        self._inputs, self._next_inputs = torch.zeros(2, batch_size, num_inputs)
        self._threads = ThreadChoice()
        self.load_targets()

    def _critic(self, layers: Sequence[nn.Linear], batch_size: int) -> Mlp:
        adam = self._critic_adam
        values = [(adam.value(layer.weight), adam.value(layer.bias)) for layer in layers]
        gradients = [(adam.gradient(layer.weight), adam.gradient(layer.bias)) for layer in layers]
        return Mlp(values, self._nets.activation, batch_size, gradients)

    def _target_layers(self, layers: Sequence[nn.Linear]) -> list[tuple[Tensor, Tensor]]:
        view, values = self._critic_adam.view, self._target_values
        return [(view(values, layer.weight), view(values, layer.bias)) for layer in layers]

    @torch.no_grad()
    def load_targets(self) -> None:
        """Take over the weights of the target critics."""
        for mine, its in self._target_pairs():
            mine.copy_(its)

    @torch.no_grad()
    def store_targets(self) -> None:
        """Give the weights of the target critics back to the policy."""
        for mine, its in self._target_pairs():
            its.copy_(mine)

    def _target_pairs(self) -> list[tuple[Tensor, Tensor]]:
        found = []
        for layers, targets in zip(self._nets.critics, self._nets.targets, strict=True):
            for (weight, bias), target in zip(self._target_layers(layers), targets, strict=True):
                found += [(weight, target.weight), (bias, target.bias)]
        return found

    @torch.no_grad()
    def run(self, batch: Minibatch, second: Executor) -> Tensor:
        """One update of everything; returns entropy coefficient, and losses of actor, critics and coefficient.

        `second` is where the second critic is computed, if that is faster.
        """
        begin_s, uses_thread = time.perf_counter(), self._threads.should_use()

        def both(work: Callable[[int], None]) -> None:
            if uses_thread:
                other = second.submit(work, 1)
                work(0)
                other.result()
            else:
                work(0)
                work(1)

        losses = self._update(batch, both)
        self._threads.note(uses_thread, time.perf_counter() - begin_s)
        return losses

    def _update(self, batch: Minibatch, both: Callable[[Callable[[int], None]], None]) -> Tensor:
        num_rows, num_actions = batch.actions.shape
        inputs, next_inputs = self._inputs[:num_rows], self._next_inputs[:num_rows]
        num_obs = batch.observations.shape[1]
        noises = torch.randn(num_rows, num_actions), torch.randn(num_rows, num_actions)
        samples: list[_Sample] = [None, None]  # type: ignore[list-item]
        self._actor.load_head()

        def draw(index: int) -> None:
            if index == 0:
                samples[0] = self._actor.sample(batch.observations, noises[0])
                inputs[:, :num_obs] = batch.observations
                inputs[:, num_obs:] = batch.actions
            else:
                found = samples[1] = self._actor.sample_next(batch.next_observations, noises[1])
                next_inputs[:, :num_obs] = batch.next_observations
                next_inputs[:, num_obs:] = found.actions.t()

        both(draw)
        own, following = samples
        log_ent_coef = float(self._log_ent_coef)
        ent_coef = self._log_ent_coef.exp()
        surplus = -(own.log_probs.mean() + self.target_entropy)
        ent_coef_loss = log_ent_coef * surplus
        self._entropy_gradient.copy_(surplus)
        self._entropy_adam.step()

        next_values: list[Tensor] = [ent_coef, ent_coef]

        def look_ahead(index: int) -> None:
            next_values[index] = self._targets[index].forward(next_inputs)[0]

        both(look_ahead)
        targets = torch.minimum(*next_values).sub_(ent_coef * following.log_probs)
        targets.mul_(batch.discounts).add_(batch.rewards)
        critic_losses: list[Tensor] = [ent_coef, ent_coef]

        def fit(index: int) -> None:
            errors = self._critics[index].forward(inputs).sub_(targets)
            critic_losses[index] = errors.square().mean()
            self._critics[index].backward(inputs, errors.div_(num_rows))

        both(fit)
        self._critic_adam.step()

        inputs[:, num_obs:] = own.actions.t()
        values, slopes = [ent_coef, ent_coef], [ent_coef, ent_coef]

        def rate(index: int) -> None:
            values[index] = self._critics[index].forward(inputs)[0]
            slopes[index] = self._critics[index].backward_to_inputs(num_rows, num_obs)

        both(rate)
        actor_loss = (ent_coef * own.log_probs).sub_(torch.minimum(*values)).mean()
        by_action = torch.where((values[0] <= values[1])[:, None], *slopes).t()
        self._actor.backward(batch.observations, _actor_gradient(own, by_action, ent_coef))
        self._actor_adam.step()
        self._target_values.lerp_(self._critic_adam.values, self._tau)
        return torch.stack([ent_coef[0], actor_loss, 0.5 * (critic_losses[0] + critic_losses[1]), ent_coef_loss])


def _actor_gradient(sample: _Sample, by_action: Tensor, ent_coef: Tensor) -> Tensor:
    """The gradient of the actor's loss by its outputs, (2 * num_actions, n), given that of the values by the actions."""
    num_actions, num_rows = sample.actions.shape
    slopes = sample.actions.square().neg_().add_(1.0)
    # Of the log probability by the action before tanh.
    found = torch.empty(2 * num_actions, num_rows)
    by_mean, by_log_std = found[:num_actions], found[num_actions:]
    torch.div(2.0 * sample.actions * slopes, slopes + _SQUASH_FLOOR, out=by_mean)
    by_mean.mul_(ent_coef).sub_(slopes.mul_(by_action)).div_(num_rows)
    torch.mul(by_mean, sample.std, out=by_log_std).mul_(sample.noise).sub_(ent_coef / num_rows)
    by_log_std.mul_(sample.is_std_free)
    return found
