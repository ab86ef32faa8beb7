"""Stacked observations: the last few of every car, and optionally Fourier features of its lap progress."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.config import Range, check_count
from hotlap.envs.fleet import FleetState
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName, observation_space
from hotlap.errors import StateError
from hotlap.sim.world import OBS_PROGRESS

MAX_STACK = 16
MAX_LAP_FOURIER = 64
STACKS, LAP_FOURIERS = Range(1, MAX_STACK), Range(0, MAX_LAP_FOURIER)

_COLUMN = "stack"


def stacked_observation_space(
    depth: int, lap_fourier: int = 0, observation: ObservationName = DEFAULT_OBSERVATION
) -> Box:
    """The space of `depth` observations, oldest first, followed by the Fourier features of the lap progress."""
    _check(depth, lap_fourier)
    single, ones = observation_space(observation), np.ones(2 * lap_fourier, np.float32)
    low, high = np.tile(single.low, depth), np.tile(single.high, depth)
    return Box(np.concatenate([low, -ones]), np.concatenate([high, ones]), dtype=np.float32)


def _check(depth: object, lap_fourier: object) -> None:
    """Refuse a stack or a number of Fourier features out of its range."""
    check_count("stack", depth, STACKS, "observations")
    check_count("lap_fourier", lap_fourier, LAP_FOURIERS)


class ObservationStack:
    """The last `depth` observations of each car, oldest first, zeros before the start of its episode.

    The layout is that of stable-baselines3's VecFrameStack. Then follow the sine and cosine of the first `lap_fourier`
    multiples of the lap progress: a small network can hardly tell corners apart by one slowly rising number.
    """

    def __init__(self, num_cars: int, depth: int, num_obs: int, lap_fourier: int = 0) -> None:
        _check(depth, lap_fourier)
        self._history = np.zeros((num_cars, depth, num_obs), np.float32)
        self._frequencies_rad = np.float32(2.0 * np.pi) * np.arange(1, lap_fourier + 1, dtype=np.float32)

    @property
    def history(self) -> NDArray[np.float32]:
        """The observations, (num_cars, depth, num_obs); not a copy."""
        return self._history

    @property
    def value(self) -> NDArray[np.float32]:
        """A fresh array of shape (num_cars, depth * num_obs + 2 * lap_fourier)."""
        rows = self._history.reshape(len(self._history), -1)
        if not len(self._frequencies_rad):
            return rows.copy()
        angles = self._history[:, -1, OBS_PROGRESS, None] * self._frequencies_rad
        return np.concatenate([rows, np.sin(angles), np.cos(angles)], axis=1)

    def begin(self, obs: NDArray[np.float32], mask: NDArray[np.bool_] | None = None) -> None:
        """Clear the history of the cars in `mask` (default: all) and add their rows of `obs` (num_cars, num_obs)."""
        cars = slice(None) if mask is None else np.flatnonzero(mask)
        self._history[cars] = 0.0
        self._history[cars, -1] = obs[cars]

    def push(self, obs: NDArray[np.float32]) -> None:
        """Add every car's next observation (num_cars, num_obs) and drop its oldest."""
        self._history[:, :-1] = self._history[:, 1:]
        self._history[:, -1] = obs

    def get_state(self) -> FleetState:
        """A copy of the history, one row per car."""
        return {_COLUMN: self._history.reshape(len(self._history), -1).copy()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `get_state`; StateError, with nothing changed, if it does not fit."""
        if not isinstance(state, Mapping) or set(state) != {_COLUMN}:
            raise StateError("state: it must be one array called 'stack'. Save it again with get_state().")
        stack = np.asarray(state[_COLUMN])
        cars, depth, num_obs = self._history.shape
        if stack.shape != (cars, depth * num_obs) or stack.dtype != np.float32:
            raise StateError(
                f"state: the stack must be float32 of shape {(cars, depth * num_obs)}, "
                f"got {stack.dtype} of shape {stack.shape}. Was it saved with another depth or number of cars?"
            )
        if not np.isfinite(stack).all():
            raise StateError("state: the stack must be finite. Save it again with get_state().")
        self._history[:] = stack.reshape(self._history.shape)
