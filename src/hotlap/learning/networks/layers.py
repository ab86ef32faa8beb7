"""Layers of a network: fresh ones with torch's initial weights, and those in a table of weights by name."""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn


def linear_layers(num_inputs: int, widths: Sequence[int]) -> list[nn.Linear]:
    """One layer for each width, drawn from torch's generator in this order."""
    return [nn.Linear(inputs, outputs) for inputs, outputs in zip((num_inputs, *widths), widths, strict=False)]


def layer_pairs(find: Callable[[str], Tensor], layers: Sequence[str]) -> list[tuple[Tensor, Tensor]]:
    """Weight and bias of each layer, as `find` gives them by name."""
    return [(find(f"{layer}.weight"), find(f"{layer}.bias")) for layer in layers]


def named_weights(layers: Mapping[str, nn.Linear]) -> dict[str, Tensor]:
    """Weight and bias of fresh layers, by name."""
    parts = [(f"{name}.{part}", getattr(layer, part)) for name, layer in layers.items() for part in ("weight", "bias")]
    return {name: tensor.detach() for name, tensor in parts}
