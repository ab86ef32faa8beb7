"""PPO's update without autograd: the clipped loss, its gradient written by hand, and Adam, over a rollout's tensors.

The policy's and the value function's network share no weights, so on the CPU their passes can run in two threads.
Neither result depends on the other thread, so the bits are the same on one core. On a GPU an update is one CUDA graph.
"""

import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hotlap.training.algorithms.flat_adam import FlatAdam
from hotlap.training.algorithms.mlp import ActorCritic, Mlp
from hotlap.training.algorithms.moments import Moments
from hotlap.training.algorithms.value_pass import ValuePass
from hotlap.training.processes import ALONE, Processes

HALF_LOG_TAU = 0.5 * math.log(2.0 * math.pi)
_STD_FLOOR = 1e-8  # of the advantages, as in stable-baselines3


@dataclass(frozen=True)
class LossSettings:
    """The coefficients of PPO's loss, named as stable-baselines3 names them."""

    clip_range: float
    ent_coef: float
    vf_coef: float
    max_grad_norm: float
    normalize_advantage: bool


@dataclass(frozen=True)
class Rollout:
    """A rollout of n decisions, as contiguous float32 tensors."""

    observations: Tensor  # (n, num_obs)
    actions: Tensor  # (num_axes, n): those with noise of their own
    log_probs: Tensor  # (n,)
    advantages: Tensor  # (n,)
    returns: Tensor  # (n,)


NUM_LOSSES = 5
_VALUE, _ENTROPY = 3, 4  # the columns after those of the policy's pass


@dataclass(frozen=True)
class MinibatchLosses:
    """The losses of every minibatch of an update, in order: the columns of `PPOUpdate.run`'s result."""

    policy: NDArray[np.float32]
    clip_fraction: NDArray[np.float32]
    approx_kl: NDArray[np.float32]
    value: NDArray[np.float32]
    entropy: NDArray[np.float32]


class NoThreads:
    """Always one thread."""

    def should_use(self) -> bool:
        """False."""
        return False

    def note(self, uses_thread: bool, elapsed_s: float) -> None:
        """Nothing to do."""


class ThreadChoice:
    """Whether a second thread is worth it, measured on the first minibatches; the results have the same bits.

    It is not where minibatches are small, or where two cores of a virtual machine share one real core.
    """

    def __init__(self, num_trials: int = 96) -> None:
        self._num_trials = num_trials
        self._times_s: dict[bool, list[float]] = {True: [], False: []}
        self._is_better: bool | None = None

    def should_use(self) -> bool:
        """Whether to use a second thread for the next minibatch: by turns at first, then what was faster."""
        if self._is_better is None:
            return len(self._times_s[True]) <= len(self._times_s[False])
        return self._is_better

    def note(self, uses_thread: bool, elapsed_s: float) -> None:
        """Add how long a minibatch took."""
        if self._is_better is not None:
            return
        self._times_s[uses_thread].append(elapsed_s)
        if min(map(len, self._times_s.values())) >= self._num_trials:
            with_thread, without = (statistics.median(self._times_s[uses]) for uses in (True, False))
            self._is_better = with_thread < without


class PPOUpdate:
    """Updates the working copy of a policy in `adam` from a rollout, whose tensors are filled anew for each update."""

    def __init__(
        self,
        adam: FlatAdam,
        nets: ActorCritic,
        log_std: Tensor,
        rollout: Rollout,
        settings: LossSettings,
        batch_size: int,
        processes: Processes = ALONE,
        max_threads: int = 2,
    ) -> None:
        """`rollout` and `batch_size` are this process's part; gradients and losses are means over all processes."""
        self._rollout, self._settings, self._adam, self._processes = rollout, settings, adam, processes
        self.batch_size = min(batch_size, len(rollout.returns))
        has_threads = rollout.returns.device.type == "cpu" and max_threads > 1
        self._threads = ThreadChoice() if has_threads else NoThreads()
        num_axes = len(rollout.actions)
        self._policy_net = self._make_net(nets.policy, nets, num_axes)
        self._value_net = self._make_net(nets.value, nets)
        self._value_pass = (
            ValuePass(*self._tensors(nets.value), nets.activation, self.batch_size) if has_threads else None
        )
        self._log_std, self._log_std_gradient = adam.value(log_std)[:num_axes], adam.gradient(log_std)[:num_axes]
        # Of this minibatch and of the next, in turns.
        self._observations = rollout.observations.new_empty(2, self.batch_size, rollout.observations.shape[1])

    def _make_net(self, layers: Sequence[nn.Linear], nets: ActorCritic, num_outputs: int | None = None) -> Mlp:
        """A network over the working copy, with its first outputs only where a number is given."""
        values, gradients = self._tensors(layers)
        trained = [pair if layer.weight.requires_grad else None for layer, pair in zip(layers, gradients, strict=True)]
        for pairs in (values, trained):
            if (last := pairs[-1]) is not None:
                pairs[-1] = last[0][:num_outputs], last[1][:num_outputs]
        return Mlp(values, nets.activation, self.batch_size, trained)

    def _tensors(self, layers: Sequence[nn.Linear]) -> tuple[list[tuple[Tensor, Tensor]], list[tuple[Tensor, Tensor]]]:
        """Weight and bias of each layer in the working copy, and where their gradients belong."""
        find = self._adam
        values = [(find.value(layer.weight), find.value(layer.bias)) for layer in layers]
        return values, [(find.gradient(layer.weight), find.gradient(layer.bias)) for layer in layers]

    def run(self, orders: Iterable[Tensor]) -> Tensor:
        """Pass over the rollout once for each of `orders`, which are permutations of its rows.

        Returns the losses, one row per minibatch, for `MinibatchLosses`.
        """
        losses: list[Tensor] = []
        batches, is_gathered = list(self._minibatches(orders)), False
        with ThreadPoolExecutor(1, "value-net") as second:  # starts no thread unless it is used
            for index, (rows, moments) in enumerate(batches):
                losses.append(self._rollout.returns.new_zeros(NUM_LOSSES))
                value_pass = self._value_pass if self._threads.should_use() else None
                begin_s = time.perf_counter()
                observations = self._buffer(index, rows)
                if not is_gathered:
                    torch.index_select(self._rollout.observations, 0, rows, out=observations)
                returns = self._rollout.returns.index_select(0, rows)
                is_gathered = value_pass is not None  # the next minibatch
                if value_pass is not None:
                    next_rows = batches[index + 1][0] if index + 1 < len(batches) else rows[:0]
                    following = self._rollout.observations, next_rows, self._buffer(index + 1, next_rows)
                    factor, loss = self._value_factor(returns), losses[-1][_VALUE]
                    pending = second.submit(value_pass.run, observations, returns, factor, loss, *following)
                    self._pass_policy(observations, rows, losses[-1], moments)
                    pending.result()
                else:
                    self._pass_policy(observations, rows, losses[-1], moments)
                    self._pass_value(observations, returns, losses[-1])
                self._threads.note(value_pass is not None, time.perf_counter() - begin_s)
                self._processes.average(self._adam.gradients)
                self._adam.step(self._settings.max_grad_norm)
        together = torch.stack(losses)
        self._processes.average(together)
        return together

    def _buffer(self, index: int, rows: Tensor) -> Tensor:
        """Where the observations of a minibatch are gathered."""
        return self._observations[index % 2, : len(rows)]

    def _minibatches(self, orders: Iterable[Tensor]) -> Iterator[tuple[Tensor, tuple[Tensor, Tensor] | None]]:
        """Each minibatch's rows, with the spread and mean of its advantages where other processes have some of them.

        Those of all minibatches are exchanged at once: advantages do not change during an update.
        """
        if self._processes.is_alone:
            yield from ((rows, None) for order in orders for rows in torch.split(order, self.batch_size))
            return
        batches: list[Tensor] = []
        parts: list[Tensor] = []
        for order in orders:
            batches += torch.split(order, self.batch_size)
            parts += self._advantage_moments(order)
        together = Moments.of(torch.cat(parts, 1).double(), self._processes)
        for index, rows in enumerate(batches):
            num_rows = len(rows) * self._processes.size
            variance = together.variance[index] * (num_rows / (num_rows - 1))
            yield rows, (variance.sqrt_().float(), together.mean[index].float())

    def _advantage_moments(self, order: Tensor) -> list[Tensor]:
        """Means and variances (2, n) of the minibatches of an epoch: of the whole ones, then of the rest."""
        advantages, size = self._rollout.advantages.index_select(0, order), self.batch_size
        num_whole = len(order) // size * size
        groups = [advantages[:num_whole].view(-1, size), advantages[None, num_whole:]]
        found = (torch.var_mean(group, 1, correction=0) for group in groups if group.numel())
        return [torch.stack([mean, variance]) for variance, mean in found]

    def _pass_policy(
        self, observations: Tensor, rows: Tensor, found: Tensor, moments: tuple[Tensor, Tensor] | None
    ) -> None:
        """Fill the gradients of the policy's network and of the standard deviation."""
        settings, rollout, log_std = self._settings, self._rollout, self._log_std
        advantages = rollout.advantages.index_select(0, rows)
        if settings.normalize_advantage and (moments or len(rows) > 1):
            spread, mean = moments or torch.std_mean(advantages)
            advantages.sub_(mean).div_(spread.add_(_STD_FLOOR))
        means, std = self._policy_net.forward(observations), log_std.exp()[:, None]
        noise = rollout.actions.index_select(1, rows).sub_(means).div_(std)  # (num_axes, rows)
        squares = noise.square()
        log_norm = log_std.sum() + len(log_std) * HALF_LOG_TAU
        log_ratio = squares.sum(0).mul_(-0.5).sub_(log_norm).sub_(rollout.log_probs.index_select(0, rows))
        ratio = log_ratio.exp()
        off = ratio - 1.0
        clipped = ratio.clamp(1.0 - settings.clip_range, 1.0 + settings.clip_range).mul_(advantages)
        free = ratio.mul_(advantages)
        is_clipped = (off.abs() > settings.clip_range).float()
        terms = torch.stack((-torch.minimum(free, clipped), is_clipped, off.sub_(log_ratio)))
        torch.mean(terms, 1, out=found[:_VALUE])
        found[_ENTROPY] = -(log_norm + 0.5 * len(log_std))
        # Where the clipped term is the smaller one, it is constant.
        by_log_prob = free.masked_fill_(free > clipped, 0.0).div_(-len(rows))
        torch.mv(squares.sub_(1.0), by_log_prob, out=self._log_std_gradient)
        self._log_std_gradient.sub_(settings.ent_coef)
        self._policy_net.backward(observations, noise.div_(std).mul_(by_log_prob))

    def _pass_value(self, observations: Tensor, returns: Tensor, found: Tensor) -> None:
        """Fill the gradients of the value function's network."""
        errors = self._value_net.forward(observations).sub_(returns)
        found[_VALUE] = errors.square().mean()
        self._value_net.backward(observations, errors.mul_(self._value_factor(returns)))

    def _value_factor(self, returns: Tensor) -> float:
        """The derivative of the loss by a value is this times its error."""
        return 2.0 * self._settings.vf_coef / len(returns)
