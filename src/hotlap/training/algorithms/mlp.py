"""The two networks of an actor-critic policy, with forward and backward passes written by hand.

torch's autograd spends most of the time of an update of small networks on bookkeeping and temporary tensors.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.torch_layers import FlattenExtractor, MlpExtractor
from torch import Tensor, nn

from hotlap.models.action_head import PedalAxisDistribution

_aten = torch.ops.aten
_ELU_SCALES = (1.0, 1.0, 1.0)  # alpha, scale, input scale


class Activation(NamedTuple):
    """An activation, and the gradient of its input from that of its output; both work in place."""

    apply_: Callable[[Tensor], Any]
    backward_: Callable[[Tensor, Tensor], Any]  # gradient, output


def _relu_backward(gradient: Tensor, output: Tensor) -> None:
    _aten.threshold_backward(gradient, output, 0, grad_input=gradient)


def _tanh_backward(gradient: Tensor, output: Tensor) -> None:
    _aten.tanh_backward(gradient, output, grad_input=gradient)


def _elu_backward(gradient: Tensor, output: Tensor) -> None:
    _aten.elu_backward(gradient, *_ELU_SCALES, True, output, grad_input=gradient)


ACTIVATIONS: Mapping[type[nn.Module], Activation] = {
    nn.Tanh: Activation(torch.tanh_, _tanh_backward),
    nn.ReLU: Activation(torch.relu_, _relu_backward),
    nn.ELU: Activation(nn.functional.elu_, _elu_backward),
}


class ActorCritic(NamedTuple):
    """The layers of a policy whose gradients we compute ourselves; the last layer of each network has no activation."""

    policy: tuple[nn.Linear, ...]
    value: tuple[nn.Linear, ...]
    activation: Activation

    @classmethod
    def of(cls, policy: ActorCriticPolicy) -> "ActorCritic | None":
        """The layers of `policy`; None if it is not a plain MLP with Gaussian actions."""
        observations, extractor = policy.observation_space, policy.mlp_extractor
        is_plain = (
            type(policy) is ActorCriticPolicy
            and type(extractor) is MlpExtractor
            and type(policy.features_extractor) is FlattenExtractor
            and type(policy.action_dist) in (DiagGaussianDistribution, PedalAxisDistribution)
            and isinstance(observations, spaces.Box)
            and len(observations.shape) == 1
        )
        if not is_plain:
            return None
        hidden = [*extractor.policy_net, *extractor.value_net]
        kinds = {type(module) for module in hidden} - {nn.Linear}
        if len(kinds) != 1 or not kinds <= set(ACTIVATIONS):
            return None
        if any(isinstance(module, nn.ELU) and module.alpha != 1.0 for module in hidden):
            return None
        return cls(
            _linear([*extractor.policy_net, policy.action_net]),
            _linear([*extractor.value_net, policy.value_net]),
            ACTIVATIONS[kinds.pop()],
        )


def _linear(modules: Iterable[nn.Module]) -> tuple[nn.Linear, ...]:
    return tuple(module for module in modules if isinstance(module, nn.Linear))


class Mlp:
    """A network over given weights, with buffers for one batch at a time.

    `layers` are pairs of weight (outputs, inputs) and bias (outputs,); `gradients` have the same shapes, and
    `backward` fills them; None stands for a layer that is not trained. Results are valid until the next call.
    """

    def __init__(
        self,
        layers: Sequence[tuple[Tensor, Tensor]],
        activation: Activation,
        max_rows: int,
        gradients: Sequence[tuple[Tensor, Tensor] | None] = (),
    ) -> None:
        self._layers, self._gradients, self._activation = tuple(layers), tuple(gradients), activation
        *widths, _ = [len(bias) for _, bias in layers]
        device = layers[0][0].device
        self._hidden = [torch.empty(max_rows, width, device=device) for width in widths]
        self._deltas = [torch.empty_like(hidden) for hidden in self._hidden] if gradients else []
        # On a GPU a product with ones is ten times as fast as a sum over rows, and a product adds its bias for nothing.
        self._ones = torch.ones(1, max_rows, device=device) if device.type == "cuda" else None

    def forward(self, inputs: Tensor) -> Tensor:
        """The network's outputs, (outputs, rows), for inputs (rows, inputs).

        The few outputs come first because operations over short rows are slow.
        """
        *hidden_layers, (last_weight, last_bias) = self._layers
        for (weight, bias), buffer in zip(hidden_layers, self._hidden, strict=True):
            out = buffer[: len(inputs)]
            if self._ones is not None:
                inputs = torch.addmm(bias, inputs, weight.t(), out=out)
            else:  # faster on the CPU, where `addmm` first copies the bias to every row
                inputs = torch.mm(inputs, weight.t(), out=out).add_(bias)
            self._activation.apply_(inputs)
        return torch.mm(last_weight, inputs.t()).add_(last_bias[:, None])

    def backward(self, inputs: Tensor, delta: Tensor) -> None:
        """Fill the gradients after `forward(inputs)`, given the loss's gradient by the outputs, (outputs, rows)."""
        delta = delta.t()
        for index in reversed(range(len(self._layers))):
            below = self._hidden[index - 1][: len(inputs)] if index else inputs
            if (gradients := self._gradients[index]) is not None:
                weight_gradient, bias_gradient = gradients
                torch.mm(delta.t(), below, out=weight_gradient)
                if self._ones is not None:
                    torch.mm(self._ones[:, : len(inputs)], delta, out=bias_gradient[None])
                else:
                    torch.sum(delta, 0, out=bias_gradient)
            if index:
                weight, _ = self._layers[index]
                delta = torch.mm(delta, weight, out=self._deltas[index - 1][: len(inputs)])
                self._activation.backward_(delta, below)

    def backward_to_inputs(self, num_rows: int, first_input: int) -> Tensor:
        """The gradient of each row's only output by its inputs from `first_input` on, (rows, inputs), after `forward`.

        The gradients of the weights stay as they are.
        """
        (first_weight, _), (last_weight, _) = self._layers[0], self._layers[-1]
        deltas = [buffer[:num_rows] for buffer in self._deltas]
        if not deltas:
            return last_weight[:, first_input:].expand(num_rows, -1)
        deltas[-1].copy_(last_weight.expand(num_rows, -1))
        for index in reversed(range(len(deltas))):
            self._activation.backward_(deltas[index], self._hidden[index][:num_rows])
            if index:
                weight, _ = self._layers[index]
                torch.mm(deltas[index], weight, out=deltas[index - 1])
        return torch.mm(deltas[0], first_weight[:, first_input:])
