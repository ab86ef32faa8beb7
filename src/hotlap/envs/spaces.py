"""The racer's action and observation spaces, and the check of actions."""

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.errors import ActionError
from hotlap.sim.world import NUM_OBSERVATIONS, OBS_STEER, OBS_YAW_RATE

NUM_ACTIONS = 3  # steer, throttle, brake
# Identifies the meaning and order of the observations: a model trained on another layout is refused.
OBSERVATION_LAYOUT = "rays9-speed-yaw-steer-progress-offset"


def action_space() -> Box:
    """Steer (positive right), throttle, brake."""
    return Box(np.array([-1, 0, 0], np.float32), np.array([1, 1, 1], np.float32), dtype=np.float32)


def observation_space() -> Box:
    """Nine rays, speed, yaw rate, applied steering, lap progress, distance from the centreline."""
    low = np.zeros(NUM_OBSERVATIONS, np.float32)
    low[[OBS_YAW_RATE, OBS_STEER]] = -1.0
    return Box(low, np.ones(NUM_OBSERVATIONS, np.float32), dtype=np.float32)


def as_actions(action: object, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """`action` as float32 of the given shape, or ActionError; the simulator refuses values that are not finite."""
    try:
        array = np.asarray(action)
    except (TypeError, ValueError):  # rows of different lengths
        raise ActionError(f"action must be numbers of shape {shape}, got {type(action).__name__}.") from None
    if array.dtype.kind not in "fiub":
        raise ActionError(f"action must be numbers of shape {shape}, got {action!r:.40}.")
    if array.shape != shape:
        raise ActionError(f"action must have shape {shape}, got {array.shape}.")
    if array.dtype != np.float32:
        # A finite number too large for float32 is clipped like any other, instead of becoming infinite.
        wide = array.astype(np.float64)
        array = np.where(np.isfinite(wide), np.clip(wide, -1.0, 1.0), wide).astype(np.float32)
    # A read-only or strided array is a different type to numba, which would compile the step again.
    return np.require(array, requirements=["C", "W"])
