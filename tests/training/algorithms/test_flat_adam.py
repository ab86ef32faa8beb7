"""The flat Adam takes torch's steps and leaves the optimizer's state to torch."""

import numpy as np
import pytest
import torch

from hotlap.training.algorithms.flat_adam import FlatAdam


def make_optimizer(**settings):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(*shape)) for shape in ((3,), (7, 5), (64, 30))]
    return torch.optim.Adam(parameters, lr=0.01, eps=1e-5, **settings)


@pytest.mark.parametrize("max_grad_norm", [0.5, 1e6])
def test_steps_and_moments_are_those_of_torch_and_torch_can_go_on(max_grad_norm):
    ours, theirs = make_optimizer(), make_optimizer()
    for update in range(3):
        flat = FlatAdam(ours)
        for _ in range(4):
            for parameter, twin in zip(*(one.param_groups[0]["params"] for one in (ours, theirs)), strict=True):
                twin.grad = torch.randn(twin.shape)
                flat.gradient(parameter).copy_(twin.grad)
            torch.nn.utils.clip_grad_norm_(theirs.param_groups[0]["params"], max_grad_norm)
            flat.step(max_grad_norm)
            theirs.step()
        flat.store()
        assert ours.state_dict()["state"].keys() == theirs.state_dict()["state"].keys()
        for one, other in zip(ours.state.values(), theirs.state.values(), strict=True):
            assert one.keys() == other.keys()
            assert float(one["step"]) == float(other["step"]) == 4 * (update + 1)
            for name in ("exp_avg", "exp_avg_sq"):
                np.testing.assert_allclose(one[name], other[name], rtol=1e-5, atol=1e-7)
        for parameter, twin in zip(*(one.param_groups[0]["params"] for one in (ours, theirs)), strict=True):
            np.testing.assert_allclose(parameter.detach(), twin.detach(), rtol=1e-5, atol=1e-6)


def test_a_gradient_that_is_not_a_number_reaches_the_parameters():
    optimizer = make_optimizer()
    first = optimizer.param_groups[0]["params"][0]
    flat = FlatAdam(optimizer)
    flat.gradient(first)[0] = float("nan")
    flat.step(0.5)
    assert torch.isnan(flat.value(first)).all()


@pytest.mark.parametrize("settings", [{"weight_decay": 0.1}, {"amsgrad": True}, {"maximize": True}])
def test_only_plain_adam_fits(settings):
    assert FlatAdam.fits(make_optimizer())
    assert not FlatAdam.fits(make_optimizer(**settings))
