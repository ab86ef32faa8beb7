"""`RacerFeatures`: what a racer's network sees, computed inside a model for plain stable-baselines3.

The class is written into the exported file, code included, so that loading needs no Hotlap. It must therefore use
nothing of Hotlap, and nothing of this module but itself and what is imported here.
"""

from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor


class RacerFeatures(BaseFeaturesExtractor):
    """From the racer's observations, the last `stack` of them, to normalized network inputs.

    `progress` is the column of the last observation's lap progress, `normalizer` has `mean`, `var`, what is
    added to it (`floor`), and `clip`. `about` is not used here: it tells an import what the model is.
    """

    frequencies_rad: Tensor
    mean: Tensor
    scale: Tensor

    def __init__(
        self,
        observation_space: spaces.Box,
        lap_fourier: int,
        progress: int,
        normalizer: dict[str, Any] | None,
        about: dict[str, Any],
    ) -> None:
        super().__init__(observation_space, observation_space.shape[0] + 2 * lap_fourier)
        self.progress = progress
        self.clip = None if normalizer is None else normalizer["clip"]
        multiples = torch.arange(1, lap_fourier + 1, dtype=torch.float32)
        self._keep("frequencies_rad", torch.tensor(2.0 * torch.pi, dtype=torch.float32) * multiples)
        if normalizer is not None:
            self._keep("mean", torch.tensor(normalizer["mean"], dtype=torch.float64))
            variance = torch.tensor(normalizer["var"], dtype=torch.float64)
            self._keep("scale", torch.sqrt(variance + normalizer["floor"]))

    def _keep(self, name: str, values: Tensor) -> None:
        # Not among the weights: each is rebuilt from the arguments.
        self.register_buffer(name, values, persistent=False)

    def forward(self, observations: Tensor) -> Tensor:
        """Network inputs (N, features_dim) of observations (N, stack * columns)."""
        angles = observations[:, self.progress, None] * self.frequencies_rad
        inputs = torch.cat([observations, torch.sin(angles), torch.cos(angles)], dim=1)
        if self.clip is None:
            return inputs
        # In float64, as in training: a feature that hardly varied is divided by almost zero.
        return ((inputs - self.mean) / self.scale).clamp(-self.clip, self.clip).float()
