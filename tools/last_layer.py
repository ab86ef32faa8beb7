"""The last layer of a driver's network as coordinates of a search, for `polish_driver`."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ConfigError
from hotlap.models.model_file import ModelFile
from hotlap.sim.policy_forward import PackedPolicy
from hotlap.sim.world import OBS_PROGRESS

Numbers = NDArray[np.float32]


class LastLayer:
    """The layer after the last hidden one, as coordinates of unit size: zeros are the model's own weights."""

    def __init__(self, model: ModelFile, packed: PackedPolicy, features: NDArray[np.float64], count: int) -> None:
        self._model, self._numbers = model, packed.numbers
        layer = packed.layers[num_hidden(model)]
        self._shape = int(layer["num_inputs"]), int(layer["num_outputs"])
        first, size = int(layer["first_weight"]), self._shape[0] * self._shape[1]
        self._weights = slice(first, first + size)
        self._biases = slice(int(layer["first_bias"]), int(layer["first_bias"]) + self._shape[1])
        self._mean = features.mean(0)
        _, sizes, directions = np.linalg.svd(features - self._mean, full_matrices=False)
        count = min(count, int((sizes > 1e-6 * sizes[0]).sum()))
        self._basis = directions[:count].T / (sizes[:count] / np.sqrt(len(features)))
        self.size = (count + 1) * self._shape[1]

    def numbers_at(self, coordinates: NDArray[np.float64]) -> Numbers:
        """All numbers of the packed policy with this layer."""
        *change, bias = coordinates.reshape(-1, self._shape[1])
        weights = self._basis @ np.asarray(change)
        numbers = self._numbers.astype(np.float64)
        numbers[self._weights] += weights.ravel()
        numbers[self._biases] += bias - self._mean @ weights
        return numbers.astype(np.float32)

    def model_with(self, numbers: Numbers) -> ModelFile:
        """The model with the layer of these numbers."""
        name = f"mlp_extractor.policy_net.{2 * num_hidden(self._model)}"
        if f"{name}.weight" not in self._model.weights:
            name = "action_net"
        weights = {
            f"{name}.weight": np.ascontiguousarray(numbers[self._weights].reshape(self._shape).T),
            f"{name}.bias": numbers[self._biases].copy(),
        }
        return replace(self._model, weights={**self._model.weights, **weights})


def num_hidden(model: ModelFile) -> int:
    """How many hidden layers the actor has."""
    return len(model.card.policy.net_arch or ())


def hidden_features(packed: PackedPolicy, obs: NDArray[np.float32], num_layers: int) -> NDArray[np.float64]:
    """The outputs of the last hidden layer for these observations, in float64."""
    shape, numbers = packed.shape[0], packed.numbers.astype(np.float64)
    inputs = obs[:, : shape["num_observations"]].astype(np.float64)
    angles = 2.0 * np.pi * inputs[:, OBS_PROGRESS, None] * np.arange(1, shape["num_fourier"] + 1)
    inputs = np.concatenate([inputs, np.sin(angles), np.cos(angles)], axis=1)
    mean_high, mean_low, inverse = numbers[: 3 * shape["num_inputs"]].reshape(3, -1)
    values = np.clip((inputs - mean_high - mean_low) * inverse, -shape["clip"], shape["clip"])
    for layer in packed.layers[:num_layers]:
        size, first = layer["num_inputs"] * layer["num_outputs"], layer["first_weight"]
        weights = numbers[first : first + size].reshape(layer["num_inputs"], layer["num_outputs"])
        values = np.tanh(values @ weights + numbers[layer["first_bias"] :][: layer["num_outputs"]])
    return values


def check_model(model: ModelFile) -> None:
    """Refuse models whose last hidden layer `hidden_features` cannot compute."""
    card = model.card
    if (
        card.stack != 1
        or card.algorithm == "sac"
        or (card.policy.activation or "tanh") != "tanh"
        or not num_hidden(model)
    ):
        raise ConfigError(
            f"{model.path}: must be of PPO or A2C, with tanh, hidden layers and a stack of 1. Use another model."
        )
