"""SAC's update without autograd: critics, actor and entropy coefficient, their gradients written by hand, and Adam.

The two critics share no weights, so their passes can run in two threads. Neither result depends on the other thread, so
the bits are the same on one core.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import SquashedDiagGaussianDistribution
from stable_baselines3.common.policies import ContinuousCritic
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.sac.policies import LOG_STD_MAX, LOG_STD_MIN, Actor, SACPolicy
from torch import Tensor, nn

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.mlp import ACTIVATIONS, Mlp
from hotlap.training.algorithms.ppo_passes import HALF_LOG_TAU
from hotlap.training.algorithms.ppo_update import ThreadChoice
from hotlap.training.algorithms.replay_sampler import Minibatch

_SQUASH_FLOOR = 1e-6  # added to the slope of tanh before its logarithm, as in stable-baselines3
NUM_CRITICS = 2
LOSS_NAMES = ("ent_coef", "actor_loss", "critic_loss", "ent_coef_loss")  # of `SACUpdate.run`'s result


_T = TypeVar("_T")


class _Both(Protocol):
    """Does something for 0 and for 1, perhaps at the same time."""

    def __call__(self, work: Callable[[int], _T], /) -> tuple[_T, _T]: ...


class SACNets(NamedTuple):
    """The layers of a policy whose gradients we compute ourselves."""

    actor: tuple[nn.Linear, ...]  # the hidden layers
    mean: nn.Linear
    log_std: nn.Linear
    critics: tuple[tuple[nn.Linear, ...], ...]
    targets: tuple[tuple[nn.Linear, ...], ...]
    activation: str

    @classmethod
    def of(cls, policy: SACPolicy) -> "SACNets | None":
        """The layers of `policy`; None if it is not plain MLPs with two critics."""
        actor: Any = policy.actor  # the library's types are those of other settings
        distribution: Any = actor.action_dist
        observations, critics = policy.observation_space, policy.critic.q_networks
        is_plain = (
            type(policy) is SACPolicy
            and type(policy.actor) is Actor
            and type(policy.critic) is ContinuousCritic
            and type(actor.features_extractor) is FlattenExtractor
            and type(distribution) is SquashedDiagGaussianDistribution
            and isinstance(observations, spaces.Box)
            and len(observations.shape) == 1
            and len(critics) == NUM_CRITICS
        )
        if not is_plain:
            return None
        networks: list[Any] = [actor.latent_pi, *critics]
        kinds = {type(module) for network in networks for module in network} - {nn.Linear}
        if len(kinds) != 1 or not kinds <= set(ACTIVATIONS):
            return None
        targets: Any = policy.critic_target.q_networks
        hidden, *critic_layers = map(_linear, networks)
        return cls(
            hidden,
            actor.mu,
            actor.log_std,
            tuple(critic_layers),
            tuple(map(_linear, targets)),
            ACTIVATIONS[kinds.pop()],
        )


def _linear(modules: Iterable[nn.Module]) -> tuple[nn.Linear, ...]:
    return tuple(module for module in modules if isinstance(module, nn.Linear))


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
    log_slopes = actions.square().neg_().add_(1.0).add_(_SQUASH_FLOOR).log_()
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
        self._actor_adam, self._critic_adam, self._ent_coef_adam = adams
        self._nets, self._target_entropy, self._tau = nets, target_entropy, tau
        self._log_ent_coef = self._ent_coef_adam.value(log_ent_coef)
        self._ent_coef_gradient = self._ent_coef_adam.gradient(log_ent_coef)
        self._actor = _ActorNet(self._actor_adam, nets, batch_size)
        self._target_values = torch.zeros_like(self._critic_adam.values)
        self._critics = [self._critic(layers, batch_size) for layers in nets.critics]
        self._targets = [Mlp(self._target_layers(layers), nets.activation, batch_size) for layers in nets.critics]
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
        """One update of everything; returns the values that `LOSS_NAMES` names.

        `second` is where half of the work is done, if that is faster.
        """
        uses_thread, begin_s = self._threads.should_use(), time.perf_counter()

        def both(work: Callable[[int], _T]) -> tuple[_T, _T]:
            if not uses_thread:
                return work(0), work(1)
            other = second.submit(work, 1)
            return work(0), other.result()

        losses = self._update(batch, both)
        self._threads.note(uses_thread, time.perf_counter() - begin_s)
        return losses

    def _update(self, batch: Minibatch, both: _Both) -> Tensor:
        noise, next_noise = torch.randn_like(batch.actions), torch.randn_like(batch.actions)
        self._actor.load_head()

        def sample(index: int) -> _Sample:
            if index == 0:
                return self._actor.sample(batch.observations, noise)
            return self._actor.sample_next(batch.next_observations, next_noise)

        own, following = both(sample)
        ent_coef = self._log_ent_coef.exp()  # before it is adapted
        ent_coef_loss = self._adapt_ent_coef(own)
        critic_loss = self._fit_critics(batch, following, ent_coef, both)
        actor_loss = self._improve_actor(batch, own, ent_coef, both)
        self._target_values.lerp_(self._critic_adam.values, self._tau)
        return torch.cat([ent_coef, actor_loss[None], critic_loss[None], ent_coef_loss])

    def _adapt_ent_coef(self, own: _Sample) -> Tensor:
        surplus = own.log_probs.mean().add_(self._target_entropy).neg_()
        loss = self._log_ent_coef * surplus
        self._ent_coef_gradient.copy_(surplus)
        self._ent_coef_adam.step()
        return loss

    def _fit_critics(self, batch: Minibatch, following: _Sample, ent_coef: Tensor, both: _Both) -> Tensor:
        num_rows = len(batch.rewards)
        inputs = _join(self._inputs[:num_rows], batch.observations, batch.actions)
        next_inputs = _join(self._next_inputs[:num_rows], batch.next_observations, following.actions.t())
        next_values = both(lambda index: self._targets[index].forward(next_inputs)[0])
        targets = torch.minimum(*next_values).sub_(ent_coef * following.log_probs)
        targets.mul_(batch.discounts).add_(batch.rewards)

        def fit(index: int) -> Tensor:
            errors = self._critics[index].forward(inputs).sub_(targets)
            loss = errors.square().mean()
            self._critics[index].backward(inputs, errors.div_(num_rows))
            return loss

        losses = both(fit)
        self._critic_adam.step()
        return torch.add(*losses).mul_(0.5)

    def _improve_actor(self, batch: Minibatch, own: _Sample, ent_coef: Tensor, both: _Both) -> Tensor:
        num_rows, num_obs = batch.observations.shape
        inputs = _join(self._inputs[:num_rows], batch.observations, own.actions.t())

        def rate(index: int) -> tuple[Tensor, Tensor]:
            values = self._critics[index].forward(inputs)[0]
            return values, self._critics[index].backward_to_inputs(num_rows, num_obs)

        (values, slopes), (other_values, other_slopes) = both(rate)
        loss = (ent_coef * own.log_probs).sub_(torch.minimum(values, other_values)).mean()
        by_action = torch.where((values <= other_values)[:, None], slopes, other_slopes).t()
        self._actor.backward(batch.observations, _actor_gradient(own, by_action, ent_coef))
        self._actor_adam.step()
        return loss


def _join(out: Tensor, observations: Tensor, actions: Tensor) -> Tensor:
    """The inputs of a critic."""
    num_obs = observations.shape[1]
    out[:, :num_obs] = observations
    out[:, num_obs:] = actions
    return out


def _actor_gradient(sample: _Sample, by_action: Tensor, ent_coef: Tensor) -> Tensor:
    """The gradient of the actor's loss by its outputs, (2 * num_actions, n); `by_action` is that of the values."""
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
