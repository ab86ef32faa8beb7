"""Means and variances over all processes of a run."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hotlap.learning.distributed.processes import Processes


@dataclass(frozen=True)
class Moments:
    """Means and variances of equal samples, one from each process, taken together."""

    mean: Tensor
    variance: Tensor  # of the population

    @classmethod
    def of(cls, own: Tensor, processes: Processes) -> "Moments":
        """From this process's means and variances, stacked (2, …)."""
        return cls.of_parts(processes.gather(own))

    @classmethod
    def of_parts(cls, parts: Tensor) -> "Moments":
        """From the means and variances of all processes, (size, 2, …)."""
        mean, variance = torch.zeros_like(parts[0])
        for part in parts:  # not `sum`: the order is then the same on every machine
            mean.add_(part[0])
        mean.div_(len(parts))
        for part in parts:
            variance.add_(part[1]).add_((part[0] - mean).square_())
        return cls(mean, variance.div_(len(parts)))
