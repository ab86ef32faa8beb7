"""The last few observations of every car as one: what a policy sees that must judge change without memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.envs.fleet import State
from hotlap.envs.spaces import observation_space
from hotlap.errors import ConfigError, StateError

MAX_STACK = 16

_COLUMN = "stack"


def stacked_observation_space(depth: int) -> Box:
    """What `depth` observations of the racer span, oldest first."""
    _check_depth(depth)
    single = observation_space()
    return Box(np.tile(single.low, depth), np.tile(single.high, depth), dtype=np.float32)


def _check_depth(depth: object) -> None:
    if type(depth) is not int or not 1 <= depth <= MAX_STACK:
        raise ConfigError(f"stack must be a whole number of observations from 1 to {MAX_STACK}, got {depth!r:.40}.")


class ObservationStack:
    """The last `depth` observations of each car, oldest first, zeros where its episode is younger than that.

    The layout is that of stable-baselines3's VecFrameStack.
    """

    def __init__(self, num_cars: int, depth: int, num_obs: int) -> None:
        _check_depth(depth)
        self._history = np.zeros((num_cars, depth, num_obs), np.float32)

    @property
    def value(self) -> NDArray[np.float32]:
        """A fresh array of shape (num_cars, depth * num_obs)."""
        return self._history.reshape(len(self._history), -1).copy()

    def begin(self, obs: NDArray[np.float32], mask: NDArray[np.bool_] | None = None) -> None:
        """Forget the cars in `mask` (all) and start with their rows of `obs` (num_cars, num_obs)."""
        cars = slice(None) if mask is None else mask
        self._history[cars] = 0.0
        self._history[cars, -1] = obs[cars]

    def push(self, obs: NDArray[np.float32]) -> None:
        """Add every car's next observation (num_cars, num_obs) and drop its oldest."""
        self._history[:, :-1] = self._history[:, 1:]
        self._history[:, -1] = obs

    def get_state(self) -> State:
        """A copy of the history, as `value` shows it."""
        return {_COLUMN: self.value}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that `get_state` gave; refused, with nothing changed, if it does not fit."""
        if not isinstance(state, Mapping) or set(state) != {_COLUMN}:
            raise StateError("state: a stack's state is one array called 'stack'. Save it again with get_state().")
        stack = np.asarray(state[_COLUMN])
        cars, depth, num_obs = self._history.shape
        if stack.shape != (cars, depth * num_obs) or stack.dtype != np.float32:
            raise StateError(
                f"state: the stack must be float32 of shape {(cars, depth * num_obs)}, "
                f"got {stack.dtype} of shape {stack.shape}. Was it saved with another depth or number of cars?"
            )
        if not np.isfinite(stack).all():
            raise StateError("state: the stack must hold finite numbers only. Save it again with get_state().")
        self._history[:] = stack.reshape(self._history.shape)
