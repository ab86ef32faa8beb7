"""A trained policy that drives and does not learn, as tensors on one device."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotlap.envs.spaces import action_space, num_observations
from hotlap.errors import ModelError
from hotlap.models.actor_layers import ACTORS, VARIANCE_FLOOR, actor_layers
from hotlap.models.model_file import ModelFile, PolicyArrays
from hotlap.sim.world import OBS_PROGRESS

_ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "elu": torch.nn.functional.elu}


class FrozenPolicy:
    """Drives cars with the mean actions of a model that sees one observation; `rows` are the cars it may have.

    Weights are written in place, so a CUDA graph of `act` stays valid when another version is loaded.
    """

    def __init__(self, model: ModelFile, rows: Tensor) -> None:
        card = model.card
        if card.stack != 1 or ACTORS[card.algorithm].is_squashed:
            raise ModelError(
                f"{model.path}: is of {card.algorithm} with a stack of {card.stack}; opponents need PPO or "
                "A2C and no stack. Use another model."
            )
        self.rows, device = rows, rows.device
        self._algorithm, self._clip = card.algorithm, math.inf if card.clip_obs is None else card.clip_obs
        self._activate = _ACTIVATIONS[card.policy.activation or ACTORS[card.algorithm].default_activation]
        self.observation = card.observation
        self._num_obs = num_observations(card.observation)
        self._frequencies_rad = 2.0 * torch.pi * torch.arange(1, card.lap_fourier + 1, device=device)
        self._layers = [
            (torch.zeros(weight.shape, device=device), torch.zeros(bias.shape, device=device))
            for weight, bias in actor_layers(model.weights, card.algorithm)
        ]
        num_inputs = self._layers[0][0].shape[1]
        self._mean, self._inverse = torch.zeros(num_inputs, device=device), torch.ones(num_inputs, device=device)
        low, high = action_space().low, action_space().high
        self._low, self._high = torch.as_tensor(low, device=device), torch.as_tensor(high, device=device)
        self.load(PolicyArrays(model.weights, model.normalizer))

    def load(self, policy: PolicyArrays) -> None:
        """Drive with these weights from now on."""
        for pair, found in zip(self._layers, actor_layers(policy.weights, self._algorithm), strict=True):
            for own, array in zip(pair, found, strict=True):
                own.copy_(torch.from_numpy(np.array(array, np.float32)))
        if "obs_mean" in policy.normalizer:
            mean, variance = policy.normalizer["obs_mean"], policy.normalizer["obs_var"]
            self._mean.copy_(torch.from_numpy(np.array(mean, np.float32)))
            self._inverse.copy_(torch.from_numpy((1.0 / np.sqrt(variance + VARIANCE_FLOOR)).astype(np.float32)))

    def act(self, obs: Tensor) -> Tensor:
        """Actions (rows, 3) for raw observations (rows, …), of which the policy sees the first columns."""
        inputs = obs[:, : self._num_obs]
        if len(self._frequencies_rad):
            angles = inputs[:, OBS_PROGRESS, None] * self._frequencies_rad
            inputs = torch.cat([inputs, angles.sin(), angles.cos()], 1)
        hidden = ((inputs - self._mean) * self._inverse).clamp(-self._clip, self._clip)
        for weight, bias in self._layers[:-1]:
            hidden = self._activate(torch.addmm(bias, hidden, weight.t()))
        weight, bias = self._layers[-1]
        return torch.addmm(bias, hidden, weight.t()).clamp(self._low, self._high)

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """The numbers it drives with, by name."""
        return {name: tensor.cpu().numpy().copy() for name, tensor in self._tensors().items()}

    def load_state_dict(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state_dict` returned."""
        for name, tensor in self._tensors().items():
            tensor.copy_(torch.from_numpy(np.asarray(state[name])))

    def _tensors(self) -> dict[str, Tensor]:
        found = {"mean": self._mean, "inverse": self._inverse}
        for number, (weight, bias) in enumerate(self._layers):
            found |= {f"weight{number}": weight, f"bias{number}": bias}
        return found
