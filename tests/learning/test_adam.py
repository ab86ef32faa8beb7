"""Our Adam takes torch's steps, and a saved state goes on with the same bits."""

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.learning.adam import Adam

SHAPES = {"bias": (3,), "first": (7, 5), "second": (64, 30)}


def make_weights():
    generator = torch.Generator().manual_seed(0)
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def make_adam():
    adam = Adam(make_weights(), torch.device("cpu"), eps=1e-5)
    adam.set_lr(0.01)
    return adam


def fill_gradients(adam, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, shape in SHAPES.items():
        adam.gradient(name).copy_(torch.randn(shape, generator=generator))


@pytest.mark.parametrize("max_grad_norm", [0.5, 1e6])
def test_steps_and_moments_are_those_of_torch(max_grad_norm):
    ours = make_adam()
    parameters = {name: torch.nn.Parameter(weight) for name, weight in make_weights().items()}
    theirs = torch.optim.Adam(parameters.values(), lr=0.01, eps=1e-5)
    for step in range(12):
        fill_gradients(ours, step)
        for name, parameter in parameters.items():
            parameter.grad = ours.gradient(name).clone()
        torch.nn.utils.clip_grad_norm_(parameters.values(), max_grad_norm)
        ours.step(max_grad_norm)
        theirs.step()
    found = ours.state_dict()
    for name, parameter in parameters.items():
        state = theirs.state[parameter]
        assert found["step"] == float(state["step"]) == 12
        for moment in ("exp_avg", "exp_avg_sq"):
            np.testing.assert_allclose(found[moment][name], state[moment], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(ours.value(name), parameter.detach(), rtol=1e-5, atol=1e-6)


def test_a_saved_state_goes_on_with_the_same_bits_and_does_not_change_meanwhile():
    whole, resumed = make_adam(), make_adam()
    for step in range(3):
        fill_gradients(whole, step)
        whole.step(0.5)
    weights = {name: weight.clone() for name, weight in whole.weights().items()}
    state = whole.state_dict()
    fill_gradients(whole, 9)
    whole.step(0.5)
    resumed.load_weights(weights)
    resumed.load_state_dict(state)
    fill_gradients(resumed, 9)
    resumed.step(0.5)
    assert torch.equal(whole.values, resumed.values)


@pytest.mark.parametrize("change", [{"first": torch.zeros(5, 7)}, {"first": None}])
def test_weights_that_do_not_fit_are_refused(change):
    weights = {name: weight for name, weight in {**make_weights(), **change}.items() if weight is not None}
    with pytest.raises(StateError, match=r"the weights 'first' must have shape \(7, 5\)"):
        make_adam().load_weights(weights)


def test_a_gradient_that_is_not_a_number_reaches_the_parameters():
    adam = make_adam()
    adam.gradient("bias")[0] = float("nan")
    adam.step(0.5)
    assert torch.isnan(adam.value("bias")).all()
