"""What PPO does with a minibatch: the clipped loss and its gradient for both networks, for TorchScript or as it is."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from hotlap.learning.networks.passes import Net, backward, forward

# Of a minibatch: policy, clip fraction, approximate KL, value, entropy; by number, as TorchScript knows no constants.
NUM_LOSSES = 5


def half_log_tau() -> float:
    """What the logarithm of a Gaussian's density has for each axis beside its deviation."""
    return 0.5 * math.log(2.0 * math.pi)


HALF_LOG_TAU = half_log_tau()


class Decisions(NamedTuple):
    """The decisions of a minibatch, gathered from a rollout; a pass overwrites them."""

    rows: Tensor  # of the rollout, (n,)
    actions: Tensor  # (num_axes, n)
    log_probs: Tensor  # (n,)
    advantages: Tensor  # (n,), normalized
    returns: Tensor  # (n,)


class BatchInputs(NamedTuple):
    """The observations of a minibatch: which rows of which table, and where they are gathered."""

    table: Tensor
    rows: Tensor
    out: Tensor


def pass_policy(
    net: Net,
    observations: Tensor,
    batch: Decisions,
    log_std: Tensor,
    log_std_gradient: Tensor,
    clip_range: float,
    ent_coef: float,
    losses: Tensor,
) -> None:
    """Fill the gradients of the policy's network and of the standard deviation, and the losses but the value's."""
    means, std = forward(net, observations), log_std.exp()[:, None]
    noise = batch.actions.sub_(means).div_(std)  # (num_axes, n)
    squares, advantages = noise.square(), batch.advantages
    log_norm = log_std.sum() + log_std.shape[0] * half_log_tau()
    log_ratio = squares.sum(0).mul_(-0.5).sub_(log_norm).sub_(batch.log_probs)
    ratio = log_ratio.exp()
    off = ratio - 1.0
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range).mul_(advantages)
    free = ratio.mul_(advantages)
    is_clipped = (off.abs() > clip_range).float()
    terms = torch.stack([-torch.minimum(free, clipped), is_clipped, off.sub_(log_ratio)])
    torch.mean(terms, [1], out=losses[:3])
    losses[4] = -(log_norm + 0.5 * log_std.shape[0])
    # Where the clipped term is the smaller one, it is constant.
    by_log_prob = free.masked_fill_(free > clipped, 0.0).div_(-observations.shape[0])
    torch.mv(squares.sub_(1.0), by_log_prob, out=log_std_gradient)
    log_std_gradient.sub_(ent_coef)
    backward(net, observations, noise.div_(std).mul_(by_log_prob))


def pass_value(
    net: Net, observations: Tensor, returns: Tensor, vf_coef: float, losses: Tensor, following: BatchInputs
) -> None:
    """Fill the gradients of the value function's network and the value's loss.

    Then gather the observations of the next minibatch: the policy's pass takes longer than this one.
    """
    errors = forward(net, observations).sub_(returns)
    losses[3] = errors.square().mean()
    backward(net, observations, errors.mul_(2.0 * vf_coef / observations.shape[0]))
    torch.index_select(following.table, 0, following.rows, out=following.out)
