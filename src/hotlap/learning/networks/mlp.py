"""A network over given weights, with buffers of its own for one batch at a time."""

from collections.abc import Sequence

import torch
from torch import Tensor

from hotlap.learning.networks.passes import Net, activate_backward, backward, fastest, forward


class Mlp:
    """A network over given weights, with buffers for one batch at a time.

    `layers` are pairs of weight (outputs, inputs) and bias (outputs,); `gradients` have the same shapes, and
    `backward` fills them; None stands for a layer that is not trained. Results are valid until the next call.
    """

    def __init__(
        self,
        layers: Sequence[tuple[Tensor, Tensor]],
        activation: str,
        max_rows: int,
        gradients: Sequence[tuple[Tensor, Tensor] | None] = (),
    ) -> None:
        weights, biases = map(list, zip(*layers, strict=True))
        device = weights[0].device
        nothing = torch.empty(0, device=device)
        filled = [pair or (nothing, nothing) for pair in gradients] or [(nothing, nothing)] * len(layers)
        weight_gradients, bias_gradients = map(list, zip(*filled, strict=True))
        hidden = [torch.empty(max_rows, len(bias), device=device) for bias in biases[:-1]]
        deltas = [torch.empty_like(each) for each in hidden] if gradients else []
        ones = torch.ones(1, max_rows, device=device) if device.type == "cuda" else nothing
        self.net = Net(weights, biases, weight_gradients, bias_gradients, hidden, deltas, ones, activation)
        self._forward, self._backward = fastest(forward, device), fastest(backward, device)

    def forward(self, inputs: Tensor) -> Tensor:
        """The network's outputs, (outputs, rows), for inputs (rows, inputs)."""
        return self._forward(self.net, inputs)

    def backward(self, inputs: Tensor, by_outputs: Tensor) -> None:
        """Fill the gradients after `forward(inputs)`, given the loss's gradient by the outputs, (outputs, rows)."""
        self._backward(self.net, inputs, by_outputs)

    def backward_to_inputs(self, num_rows: int, first_input: int) -> Tensor:
        """The gradient of each row's only output by its inputs from `first_input` on, (rows, inputs), after `forward`.

        The gradients of the weights stay as they are.
        """
        net = self.net
        last_weight = net.weights[-1]
        deltas = [buffer[:num_rows] for buffer in net.deltas]
        if not deltas:
            return last_weight[:, first_input:].expand(num_rows, -1)
        deltas[-1].copy_(last_weight.expand(num_rows, -1))
        for index in reversed(range(len(deltas))):
            activate_backward(deltas[index], net.hidden[index][:num_rows], net.activation)
            if index:
                torch.mm(deltas[index], net.weights[index], out=deltas[index - 1])
        return torch.mm(deltas[0], net.weights[0][:, first_input:])
