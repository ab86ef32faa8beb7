"""What an agent may do and sees: the contract's action and observation spaces."""

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.errors import ActionError
from hotlap.sim.world import NUM_OBSERVATIONS, OBS_STEER, OBS_YAW_RATE

NUM_ACTIONS = 3  # steer, throttle, brake
# Names what the observations mean and their order: a model trained on another layout must not drive on this one.
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
    """`action` as float32 of the given shape, or a clear error; the simulator itself refuses what is not finite."""
    try:
        array = np.asarray(action)
    except (TypeError, ValueError):  # rows of different lengths
        raise ActionError(f"action must be numbers of shape {shape}, got {type(action).__name__}.") from None
    if array.dtype.kind not in "fiub":
        raise ActionError(f"action must be numbers of shape {shape}, got {action!r:.40}.")
    if array.shape != shape:
        raise ActionError(f"action must have shape {shape}, got {array.shape}.")
    if array.dtype != np.float32:
        # A finite number too large for float32 is out of range like any other: it is clipped, not made infinite.
        wide = array.astype(np.float64)
        array = np.where(np.isfinite(wide), np.clip(wide, -1.0, 1.0), wide).astype(np.float32)
    # A read-only or strided array would be another type to the compiled step, and compile it anew.
    return np.require(array, requirements=["C", "W"])
