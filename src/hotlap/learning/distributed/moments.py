"""Means and variances over all processes of a run."""

import torch
from torch import Tensor


def pooled_moments(parts: Tensor) -> Tensor:
    """Mean and variance of equal samples taken together, (2, …), from those of each, (samples, 2, …)."""
    mean, variance = pooled = torch.zeros_like(parts[0])
    for part in parts:  # not `sum`: the order is then the same on every machine
        mean.add_(part[0])
    mean.div_(len(parts))
    for part in parts:
        variance.add_(part[1]).add_((part[0] - mean).square_())
    variance.div_(len(parts))
    return pooled
