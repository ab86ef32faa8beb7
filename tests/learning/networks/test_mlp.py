"""Outputs and gradients of a network are those of torch's modules and autograd."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from hotlap.learning.networks.mlp import Mlp

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize(("widths", "untrained"), [((5, 8, 6, 1), 1), ((5, 1), None)])
def test_outputs_and_gradients_by_weights_and_by_inputs_are_those_of_torch(widths, activation, untrained):
    torch.manual_seed(2)
    layers = [nn.Linear(*pair) for pair in pairwise(widths)]
    module = nn.Sequential(*[part for layer in layers for part in (layer, ACTIVATIONS[activation]())][:-1])
    pairs = [(layer.weight.detach(), layer.bias.detach()) for layer in layers]
    gradients = [None if index == untrained else tuple(map(torch.zeros_like, pair)) for index, pair in enumerate(pairs)]
    mlp = Mlp(pairs, activation, 9, gradients)
    inputs, by_outputs = torch.randn(7, 5, requires_grad=True), torch.randn(7, 1)
    expected = module(inputs)
    torch.testing.assert_close(mlp.forward(inputs.detach()).t(), expected.detach())
    [slopes] = torch.autograd.grad(expected.sum(), [inputs], retain_graph=True)
    torch.testing.assert_close(mlp.backward_to_inputs(7, 2), slopes[:, 2:])
    mlp.backward(inputs.detach(), by_outputs.t())
    expected.backward(by_outputs)
    for layer, pair in zip(layers, gradients, strict=True):
        for own, parameter in zip(pair or (), (layer.weight, layer.bias), strict=False):
            torch.testing.assert_close(own, parameter.grad)
