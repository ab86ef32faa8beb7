import torch

from hotlap.learning.distributed.moments import pooled_moments


def test_moments_of_equal_samples_are_those_of_all_values():
    values = torch.randn(3, 50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 5.0
    values[1] *= 10.0
    parts = torch.stack([torch.stack([part.mean(0), part.var(0, correction=0)]) for part in values])
    mean, variance = pooled_moments(parts)
    torch.testing.assert_close(mean, values.flatten(0, 1).mean(0))
    torch.testing.assert_close(variance, values.flatten(0, 1).var(0, correction=0))
