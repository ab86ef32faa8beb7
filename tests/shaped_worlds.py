"""Environments that have spaces of every kind and do nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

ROW = spaces.Box(-1.0, 1.0, (3,))
BOUNDS = np.array([[1.0, 2.0], [0.1, 5.0]], np.float32)
SHAPES: dict[str, tuple[spaces.Space[Any], spaces.Space[Any]]] = {
    "Tables-v0": (spaces.Box(-1.0, 1.0, (2, 3)), spaces.Box(-BOUNDS, 2.0 * BOUNDS)),
    "Keys-v0": (spaces.Dict({"a": ROW, "b": spaces.Discrete(4)}), ROW),
    "Places-v0": (spaces.Discrete(5), ROW),
    "Pictures-v0": (spaces.Box(0, 255, (40, 44, 3), np.uint8), spaces.Box(-1e9, 1e9, (2,))),
    "Choices-v0": (ROW, spaces.MultiDiscrete([2, 3])),
    "Switches-v0": (ROW, spaces.MultiBinary(3)),
}


class Shaped(gym.Env[Any, Any]):
    """Shows anything, whatever is done."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (as Gymnasium has it)

    def __init__(self, name: str) -> None:
        self.observation_space, self.action_space = SHAPES[name]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return self.observation_space.sample(), 0.0, False, False, {}


@contextmanager
def registered() -> Iterator[None]:
    """Gymnasium knows them, by their names among SHAPES."""
    for name in SHAPES:
        gym.register(name, entry_point=Shaped, kwargs={"name": name}, disable_env_checker=True, max_episode_steps=20)
    try:
        yield
    finally:
        for name in SHAPES:
            del gym.registry[name]
