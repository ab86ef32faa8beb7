"""The value network's part of a PPO update on the CPU, as one call that a second thread can make beside the policy's.

Two threads of Python operations wait for each other's turn at the interpreter after each of them. So the whole pass is
one TorchScript function, which does not need the interpreter. Its operations are those of `Mlp`, with the same bits.
"""

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from hotlap.training.algorithms.mlp import ACTIVATIONS, Activation

_KINDS = {nn.Tanh: 0, nn.ReLU: 1, nn.ELU: 2}
_scripted: Callable[..., None] | None = None


def _pass(
    inputs: Tensor,
    returns: Tensor,
    weights: list[Tensor],
    biases: list[Tensor],
    weight_gradients: list[Tensor],
    bias_gradients: list[Tensor],
    hidden: list[Tensor],
    deltas: list[Tensor],
    kind: int,
    factor: float,
    loss: Tensor,
    source: Tensor,
    next_rows: Tensor,
    next_inputs: Tensor,
) -> None:
    """Fill the gradients, where the loss's derivative by a value is `factor` times its error; `loss`: mean square.

    Then gather the inputs of the next minibatch: the policy's pass takes longer than this one.
    """
    num_hidden, num_rows = len(hidden), inputs.shape[0]
    below = inputs
    for layer in range(num_hidden):
        out = hidden[layer][:num_rows]
        torch.mm(below, weights[layer].t(), out=out)
        out.add_(biases[layer])
        if kind == 0:
            out.tanh_()
        elif kind == 1:
            out.relu_()
        else:
            torch.nn.functional.elu_(out)
        below = out
    errors = torch.mm(weights[num_hidden], below.t()).add_(biases[num_hidden][:, None]).sub_(returns)
    loss.copy_(errors.square().mean())
    delta = errors.mul_(factor).t()
    for above in range(num_hidden + 1):
        layer = num_hidden - above
        below = hidden[layer - 1][:num_rows] if layer > 0 else inputs
        torch.mm(delta.t(), below, out=weight_gradients[layer])
        torch.sum(delta, [0], out=bias_gradients[layer])
        if layer > 0:
            out = deltas[layer - 1][:num_rows]
            torch.mm(delta, weights[layer], out=out)
            if kind == 0:
                torch.ops.aten.tanh_backward(out, below, grad_input=out)
            elif kind == 1:
                torch.ops.aten.threshold_backward(out, below, 0, grad_input=out)
            else:
                torch.ops.aten.elu_backward(out, 1.0, 1.0, 1.0, True, below, grad_input=out)
            delta = out
    torch.index_select(source, 0, next_rows, out=next_inputs)


class ValuePass:
    """The pass over given weights and gradients, one pair (weight, bias) of each per layer."""

    def __init__(
        self,
        layers: Sequence[tuple[Tensor, Tensor]],
        gradients: Sequence[tuple[Tensor, Tensor]],
        activation: Activation,
        max_rows: int,
    ) -> None:
        weights, biases = zip(*layers, strict=True)
        weight_gradients, bias_gradients = zip(*gradients, strict=True)
        hidden = [torch.empty(max_rows, len(bias)) for bias in biases[:-1]]
        deltas = [torch.empty_like(each) for each in hidden]
        self._lists = [list(each) for each in (weights, biases, weight_gradients, bias_gradients, hidden, deltas)]
        [self._kind] = [_KINDS[module] for module, each in ACTIVATIONS.items() if each is activation]
        self._call = _script()

    def run(self, observations: Tensor, returns: Tensor, factor: float, loss: Tensor, *following: Tensor) -> None:
        """Fill the gradients for rows of observations and returns.

        `following` gathers observations afterwards: where from, which rows, where to.
        """
        self._call(observations, returns, *self._lists, self._kind, factor, loss, *following)


def _script() -> Callable[..., None]:
    """The pass as a TorchScript function, made once in a process."""
    global _scripted
    if _scripted is None:
        with warnings.catch_warnings():
            # torch recommends its compiler, which needs a C++ compiler on the user's machine.
            warnings.filterwarnings("ignore", message=".*torch.jit.script", category=DeprecationWarning)
            warnings.filterwarnings("ignore", message=".*torch.jit.script", category=FutureWarning)
            _scripted = torch.jit.script(_pass)
    return _scripted
