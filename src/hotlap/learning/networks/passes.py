"""Forward and backward pass of a small network, written by hand as functions that TorchScript can compile.

torch's autograd spends most of the time of an update of small networks on bookkeeping and temporary tensors. What is
left is a row of short operations. Compiled, they do without Python's interpreter: each starts sooner, and a second
thread runs beside the first instead of waiting for its turn.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Net(NamedTuple):
    """The tensors of a network, one of each kind per layer; the gradients of a layer that is not trained are empty."""

    weights: list[Tensor]  # (outputs, inputs)
    biases: list[Tensor]  # (outputs,)
    weight_gradients: list[Tensor]
    bias_gradients: list[Tensor]
    hidden: list[Tensor]  # (max_rows, width), the outputs of every layer but the last
    deltas: list[Tensor]  # (max_rows, width), their gradients
    ones: Tensor  # (1, max_rows) on a GPU, where a product with ones is ten times as fast as a sum over rows
    activation: str


def forward(net: Net, inputs: Tensor) -> Tensor:
    """The outputs (outputs, rows) for inputs (rows, inputs).

    The few outputs come first because operations over short rows are slow.
    """
    below, num_hidden = inputs, len(net.hidden)
    for layer in range(num_hidden):
        out = net.hidden[layer][: inputs.shape[0]]
        if inputs.is_cuda:  # a product adds its bias for nothing
            torch.addmm(net.biases[layer], below, net.weights[layer].t(), out=out)
        else:  # where `addmm` first copies the bias to every row
            torch.mm(below, net.weights[layer].t(), out=out)
            out.add_(net.biases[layer])
        activate(out, net.activation)
        below = out
    return torch.mm(net.weights[num_hidden], below.t()).add_(net.biases[num_hidden][:, None])


def backward(net: Net, inputs: Tensor, by_outputs: Tensor) -> None:
    """Fill the gradients after `forward(inputs)`, given the loss's gradient by the outputs, (outputs, rows)."""
    num_rows, num_hidden, delta = inputs.shape[0], len(net.hidden), by_outputs.t()
    for above in range(num_hidden + 1):
        layer = num_hidden - above
        below = net.hidden[layer - 1][:num_rows] if layer > 0 else inputs
        if net.weight_gradients[layer].numel() > 0:
            torch.mm(delta.t(), below, out=net.weight_gradients[layer])
            if inputs.is_cuda:
                torch.mm(net.ones[:, :num_rows], delta, out=net.bias_gradients[layer][None])
            else:
                torch.sum(delta, [0], out=net.bias_gradients[layer])
        if layer > 0:
            out = net.deltas[layer - 1][:num_rows]
            torch.mm(delta, net.weights[layer], out=out)
            activate_backward(out, below, net.activation)
            delta = out


def activate(values: Tensor, activation: str) -> None:
    """Apply an activation in place."""
    if activation == "tanh":
        values.tanh_()
    elif activation == "relu":
        values.relu_()
    else:
        torch.nn.functional.elu_(values)


def activate_backward(gradient: Tensor, output: Tensor, activation: str) -> None:
    """Turn the gradient by an activation's output into that by its input, in place."""
    if activation == "tanh":
        torch.ops.aten.tanh_backward(gradient, output, grad_input=gradient)
    elif activation == "relu":
        torch.ops.aten.threshold_backward(gradient, output, 0, grad_input=gradient)
    else:
        torch.ops.aten.elu_backward(gradient, 1.0, 1.0, 1.0, True, output, grad_input=gradient)


def fastest(function: _Function, device: torch.device) -> _Function:
    """The function as a device runs it best: compiled on a CPU; as it is on a GPU, where it is captured in a graph."""
    return compiled(function) if device.type == "cpu" else function


@functools.cache
def compiled(function: _Function) -> _Function:
    """The function compiled by TorchScript, with the same bits; as it is where that does not work (Python 3.14)."""
    with warnings.catch_warnings():
        # torch recommends its compiler, which needs a C++ compiler on the user's machine.
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
        warnings.filterwarnings("ignore", message=".*torch.jit.script", category=FutureWarning)
        try:
            scripted: _Function = torch.jit.script(function)
        except RuntimeError:
            return function
    return scripted
