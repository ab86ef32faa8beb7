"""The value network's pass in one call has the bits of `Mlp`'s, and gathers what comes next."""

import threading

import pytest
import torch
from torch import nn

from hotlap.training.algorithms.mlp import ACTIVATIONS, Mlp
from hotlap.training.algorithms.value_pass import ValuePass

NUM_INPUTS, MAX_ROWS = 13, 300


@pytest.fixture(autouse=True)
def one_thread():
    """As in a training: the bits of a product depend on the number of torch's threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def pairs(widths, fill):
    shapes = zip(widths[1:], widths, strict=False)
    return [(fill(num_outputs, num_inputs), fill(num_outputs)) for num_outputs, num_inputs in shapes]


@pytest.mark.parametrize("kind", [nn.Tanh, nn.ReLU, nn.ELU])
@pytest.mark.parametrize("hidden", [[96, 96], [24, 8, 12], [16], []])
@pytest.mark.parametrize("num_rows", [MAX_ROWS, 7])
def test_it_has_the_bits_of_the_network(kind, hidden, num_rows):
    torch.manual_seed(1)
    widths = [NUM_INPUTS, *hidden, 1]
    layers = pairs(widths, lambda *shape: 0.3 * torch.randn(*shape))
    ours, theirs = pairs(widths, torch.empty), pairs(widths, torch.empty)
    inputs, returns, factor = torch.randn(num_rows, NUM_INPUTS), torch.randn(num_rows), 0.01
    net = Mlp(layers, ACTIVATIONS[kind], MAX_ROWS, theirs)
    errors = net.forward(inputs).sub_(returns)
    expected_loss = errors.square().mean()
    net.backward(inputs, errors.mul_(factor))

    source, rows, loss = torch.randn(50, NUM_INPUTS), torch.tensor([3, 1, 44]), torch.zeros(())
    gathered = torch.empty(3, NUM_INPUTS)
    one = ValuePass(layers, ours, ACTIVATIONS[kind], MAX_ROWS)
    thread = threading.Thread(target=one.run, args=(inputs, returns, factor, loss, source, rows, gathered))
    thread.start()
    thread.join()
    assert loss == expected_loss
    for mine, its in zip(sum(ours, ()), sum(theirs, ()), strict=True):
        assert torch.equal(mine, its)
    assert torch.equal(gathered, source[rows])
