"""SAC's update without autograd: critics, actor and entropy coefficient, their gradients written by hand, and Adam.

The two critics share no weights, so their passes can run in two threads. Neither result depends on the other thread, so
the bits are the same on one core.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

from hotlap.learning.adam import Adam
from hotlap.learning.networks.layers import layer_pairs
from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.networks.ppo_passes import HALF_LOG_TAU
from hotlap.learning.networks.soft_actor_critic import SoftActorCritic
from hotlap.learning.replay import Minibatch
from hotlap.learning.thread_choice import ThreadChoice

LOG_STD_RANGE = (-20.0, 2.0)  # as in stable-baselines3
_SQUASH_FLOOR = 1e-6  # added to the slope of tanh before its logarithm, as in stable-baselines3
LOG_ENT_COEF = "log_ent_coef"
LOSS_NAMES = ("ent_coef", "actor_loss", "critic_loss", "ent_coef_loss")  # of `SACUpdate.run`'s result


_T = TypeVar("_T")


class _Both(Protocol):
    """Does something for 0 and for 1, perhaps at the same time."""

    def __call__(self, work: Callable[[int], _T], /) -> tuple[_T, _T]: ...


class _Sample(NamedTuple):
    """Actions drawn from the actor, and what the gradient needs; each (num_actions, n) but the log probabilities."""

    actions: Tensor
    log_probs: Tensor  # (n,)
    noise: Tensor
    std: Tensor
    is_std_free: Tensor  # whether the standard deviation is not at a bound


class ActorNet:
    """The actor over Adam's weights: mean and log standard deviation are one last layer."""

    def __init__(self, adam: Adam, nets: SoftActorCritic, num_rows: int) -> None:
        self._adam, self._heads = adam, (nets.mean, nets.log_std)
        self._num_actions, num_inputs = adam.value(f"{nets.mean}.weight").shape
        weight, bias = torch.zeros(2 * self._num_actions, num_inputs), torch.zeros(2 * self._num_actions)
        self._head, self._head_gradient = (weight, bias), (torch.zeros_like(weight), torch.zeros_like(bias))
        hidden, gradients = layer_pairs(adam.value, nets.hidden), layer_pairs(adam.gradient, nets.hidden)
        # Two sets of buffers: those of the first pass are needed when the gradient is computed.
        self._net = Mlp([*hidden, self._head], nets.activation, num_rows, [*gradients, self._head_gradient])
        self._next_net = Mlp([*hidden, self._head], nets.activation, num_rows)

    def load_head(self) -> None:
        """Copy the weights of the last layer together."""
        for layer, rows in zip(self._heads, self._head_rows, strict=True):
            self._head[0][rows] = self._adam.value(f"{layer}.weight")
            self._head[1][rows] = self._adam.value(f"{layer}.bias")

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
            self._adam.gradient(f"{layer}.weight").copy_(self._head_gradient[0][rows])
            self._adam.gradient(f"{layer}.bias").copy_(self._head_gradient[1][rows])


def _squash(outputs: Tensor, noise: Tensor) -> _Sample:
    num_actions = len(outputs) // 2
    means, raw = outputs[:num_actions], outputs[num_actions:]
    log_std = raw.clamp(*LOG_STD_RANGE)
    std, noise = log_std.exp(), noise.t()
    actions = torch.addcmul(means, std, noise).tanh_()
    log_slopes = actions.square().neg_().add_(1.0).add_(_SQUASH_FLOOR).log_()
    log_probs = noise.square().mul_(-0.5).sub_(log_std).sub_(HALF_LOG_TAU).sub_(log_slopes).sum(0)
    return _Sample(actions, log_probs, noise, std, log_std == raw)


class SACUpdate:
    """Updates actor, critics and entropy coefficient, and lets the target critics follow."""

    def __init__(
        self,
        adams: tuple[Adam, Adam, Adam],
        nets: SoftActorCritic,
        target_values: Tensor,
        target_entropy: float,
        tau: float,
        batch_size: int,
        generator: torch.Generator,
    ) -> None:
        """`adams` are those of the actor, the critics and the entropy coefficient.

        `target_values` are the weights of the target critics, laid out as the critics' in their Adam.
        """
        self._actor_adam, self._critic_adam, self._ent_coef_adam = adams
        self._target_entropy, self._tau, self._generator = target_entropy, tau, generator
        self._log_ent_coef = self._ent_coef_adam.value(LOG_ENT_COEF)
        self._ent_coef_gradient = self._ent_coef_adam.gradient(LOG_ENT_COEF)
        self._actor = ActorNet(self._actor_adam, nets, batch_size)
        self._target_values, adam = target_values, self._critic_adam
        targets = adam.weights(target_values)
        self._critics, self._targets = [], []
        for layers in nets.critics:
            values, gradients = layer_pairs(adam.value, layers), layer_pairs(adam.gradient, layers)
            self._critics.append(Mlp(values, nets.activation, batch_size, gradients))
            self._targets.append(Mlp(layer_pairs(targets.__getitem__, layers), nets.activation, batch_size))
        num_inputs = adam.value(f"{nets.critics[0][0]}.weight").shape[1]
        self._inputs, self._next_inputs = torch.zeros(2, batch_size, num_inputs)
        self._threads = ThreadChoice()

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
        noise, next_noise = (torch.randn(batch.actions.shape, generator=self._generator) for _ in range(2))
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
