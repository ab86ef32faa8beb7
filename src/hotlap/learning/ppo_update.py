"""PPO's update without autograd: minibatches of a rollout's tensors, the passes of both networks, and Adam.

The policy's and the value function's network share no weights, so on the CPU their passes can run in two threads.
Neither result depends on the other thread, so the bits are the same on one core. On a GPU an update is one CUDA graph.
"""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.hyperparameters import PPOSettings
from hotlap.learning.adam import Adam
from hotlap.learning.distributed.moments import pooled_moments
from hotlap.learning.distributed.processes import ALONE, Processes
from hotlap.learning.networks.actor_critic import LOG_STD, ActorCritic
from hotlap.learning.networks.layers import layer_pairs
from hotlap.learning.networks.mlp import Mlp
from hotlap.learning.networks.passes import fastest
from hotlap.learning.networks.ppo_passes import NUM_LOSSES, BatchInputs, Decisions, pass_policy, pass_value
from hotlap.learning.thread_choice import ThreadChoice

_STD_FLOOR = 1e-8  # of the advantages, as in stable-baselines3


@dataclass(frozen=True)
class RolloutRows:
    """A rollout of n decisions, as contiguous float32 tensors."""

    observations: Tensor  # (n, num_obs)
    actions: Tensor  # (num_axes, n): those with noise of their own
    log_probs: Tensor  # (n,)
    advantages: Tensor  # (n,)
    returns: Tensor  # (n,)


@dataclass(frozen=True)
class MinibatchLosses:
    """The losses of every minibatch of an update, in order: the columns of `PPOUpdate.run`'s result."""

    policy: NDArray[np.float32]
    clip_fraction: NDArray[np.float32]
    approx_kl: NDArray[np.float32]
    value: NDArray[np.float32]
    entropy: NDArray[np.float32]


class PPOUpdate:
    """Updates the weights in `adam` from a rollout, whose tensors are filled anew for each update."""

    def __init__(
        self,
        adam: Adam,
        nets: ActorCritic,
        rollout: RolloutRows,
        settings: PPOSettings,
        batch_size: int,
        processes: Processes = ALONE,
        max_threads: int = 2,
    ) -> None:
        """`rollout` and `batch_size` are this process's part; gradients and losses are means over all processes."""
        self._rollout, self._settings, self._adam, self._processes = rollout, settings, adam, processes
        self.batch_size = min(batch_size, len(rollout.returns))
        device = rollout.returns.device
        self._threads = ThreadChoice(is_possible=device.type == "cpu" and max_threads > 1)
        num_axes = len(rollout.actions)
        self._policy_net = self._make_net(nets, nets.policy, num_axes).net
        self._value_net = self._make_net(nets, nets.value).net
        self._pass_policy, self._pass_value = fastest(pass_policy, device), fastest(pass_value, device)
        self._log_std, self._log_std_gradient = adam.value(LOG_STD)[:num_axes], adam.gradient(LOG_STD)[:num_axes]
        # Of this minibatch and of the next, in turns.
        self._observations = rollout.observations.new_empty(2, self.batch_size, rollout.observations.shape[1])

    def _make_net(self, nets: ActorCritic, layers: Sequence[str], num_outputs: int | None = None) -> Mlp:
        """A network over Adam's weights, with its first outputs only where a number is given."""
        values = layer_pairs(self._adam.value, layers)
        gradients: list[tuple[Tensor, Tensor] | None] = [*layer_pairs(self._adam.gradient, layers)]
        for index, layer in enumerate(layers):
            if layer in nets.fixed:
                gradients[index] = None
        values[-1] = values[-1][0][:num_outputs], values[-1][1][:num_outputs]
        if (last := gradients[-1]) is not None:
            gradients[-1] = last[0][:num_outputs], last[1][:num_outputs]
        return Mlp(values, nets.activation, self.batch_size, gradients)

    def run(self, orders: Iterable[Tensor]) -> Tensor:
        """Pass over the rollout once for each of `orders`, which are permutations of its rows.

        Returns the losses, one row per minibatch, for `MinibatchLosses`.
        """
        batches = self._minibatches(orders)
        losses = self._rollout.returns.new_zeros(len(batches), NUM_LOSSES)
        first = self._inputs(0, batches[0].rows)
        torch.index_select(first.table, 0, first.rows, out=first.out)
        with ThreadPoolExecutor(1, "value-net") as second:  # starts no thread unless it is used
            for index in range(len(batches)):
                begin_s, uses_thread = time.perf_counter(), self._threads.should_use()
                self._pass_both(index, batches, losses[index], second if uses_thread else None)
                self._threads.note(uses_thread, time.perf_counter() - begin_s)
                self._processes.average(self._adam.gradients)
                self._adam.step(self._settings.max_grad_norm)
        self._processes.average(losses)
        return losses

    def _pass_both(self, index: int, batches: Sequence[Decisions], losses: Tensor, second: Executor | None) -> None:
        """Fill the gradients of both networks, the value function's in a second thread where there is one."""
        settings, batch = self._settings, batches[index]
        observations = self._inputs(index, batch.rows).out
        next_rows = batches[index + 1].rows if index + 1 < len(batches) else batch.rows[:0]
        following = self._inputs(index + 1, next_rows)
        policy = self._policy_net, observations, batch, self._log_std, self._log_std_gradient
        value = self._value_net, observations, batch.returns, settings.vf_coef, losses, following
        pending = second and second.submit(self._pass_value, *value)
        self._pass_policy(*policy, settings.clip_range, settings.ent_coef, losses)
        if pending:
            pending.result()
        else:
            self._pass_value(*value)

    def _inputs(self, index: int, rows: Tensor) -> BatchInputs:
        """The observations of minibatch `index`, and where they are gathered."""
        return BatchInputs(self._rollout.observations, rows, self._observations[index % 2, : len(rows)])

    def _minibatches(self, orders: Iterable[Tensor]) -> list[Decisions]:
        """The minibatches of all epochs, gathered but for their observations."""
        rollout, size = self._rollout, self.batch_size
        epochs = [
            Decisions(
                order,
                rollout.actions.index_select(1, order),
                rollout.log_probs.index_select(0, order),
                rollout.advantages.index_select(0, order),
                rollout.returns.index_select(0, order),
            )
            for order in orders
        ]
        if self._settings.normalize_advantage:
            self._normalize([epoch.advantages for epoch in epochs])
        starts = range(0, len(rollout.returns), size)
        return [Decisions(*(part[..., at : at + size] for part in epoch)) for epoch in epochs for at in starts]

    def _normalize(self, epochs: Iterable[Tensor]) -> None:
        """Bring the advantages of every minibatch, over all processes, to mean 0 and standard deviation 1.

        The moments of all minibatches are exchanged at once: advantages do not change during an update.
        """
        size, num_processes = self.batch_size, self._processes.size
        tables: list[Tensor] = []  # (minibatches, rows): the whole ones of each epoch, and the smaller one at its end
        for advantages in epochs:
            num_whole = len(advantages) // size * size
            tables += [advantages[:num_whole].view(-1, size), advantages[None, num_whole:]]
        tables = [table for table in tables if table.shape[1] * num_processes > 1]  # one value has no deviation
        if not tables:
            return
        variances, means = map(
            torch.cat, zip(*(torch.var_mean(table, 1, correction=0) for table in tables), strict=True)
        )
        if num_processes > 1:
            means, variances = pooled_moments(self._processes.gather(torch.stack([means, variances]).double()))
        counts = [len(table) for table in tables]
        for table, mean, variance in zip(
            tables, torch.split(means, counts), torch.split(variances, counts), strict=True
        ):
            num_rows = table.shape[1] * num_processes
            spread = (variance * (num_rows / (num_rows - 1))).sqrt_().add_(_STD_FLOOR)
            table.sub_(mean[:, None]).div_(spread[:, None])
