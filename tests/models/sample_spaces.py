"""Observation and action spaces of every kind."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ROW = spaces.Box(-1.0, 1.0, (3,))
BOUNDS = np.array([[1.0, 2.0], [0.1, 5.0]], np.float32)
SPACES: dict[str, tuple[spaces.Space[Any], spaces.Space[Any]]] = {
    "matrices": (spaces.Box(-1.0, 1.0, (2, 3)), spaces.Box(-BOUNDS, 2.0 * BOUNDS)),
    "dict": (spaces.Dict([("z", ROW), ("a", spaces.Discrete(4))]), ROW),  # keys not in alphabetical order
    "discrete": (spaces.Discrete(5), ROW),
    "pictures": (spaces.Box(0, 255, (40, 44, 3), np.uint8), spaces.Box(-1e9, 1e9, (2,))),
    "multi-discrete": (ROW, spaces.MultiDiscrete([2, 3])),
    "multi-binary": (ROW, spaces.MultiBinary(3)),
}


class SpacesOnlyEnv(gym.Env[Any, Any]):
    """An environment with these spaces that is never stepped."""

    def __init__(self, name: str) -> None:
        self.observation_space, self.action_space = SPACES[name]
