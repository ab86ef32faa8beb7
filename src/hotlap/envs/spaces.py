"""The racer's action and observation spaces, and the check of actions."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.errors import ActionError, ConfigError
from hotlap.sim.opponent_view import (
    COLUMNS_PER_OPPONENT,
    NUM_OPPONENT_VIEW,
    OPPONENT_ALONGSIDE,
    OPPONENT_PRESENCE,
)
from hotlap.sim.race_step import NUM_RACE_OBSERVATIONS, NUM_RACE_OBSERVATIONS_2
from hotlap.sim.road_view import (
    COLUMNS_PER_GUIDE,
    FIRST_GUIDE,
    NUM_ROAD_VIEW,
    NUM_ROAD_VIEW_2,
    VIEW_BRAKE,
    VIEW_THROTTLE,
)
from hotlap.sim.world import NUM_OBSERVATIONS, OBS_STEER, OBS_YAW_RATE

# `road` is the first version of that layout, which the shipped champions see, and `road-2` the second. `race` and
# `race-2` add the other cars to them.
ObservationName = Literal["rays", "road", "road-2", "race", "race-2"]
DEFAULT_OBSERVATION: ObservationName = "rays"
# Identify the meaning and order of the observations: a model trained on any other layout is refused.
OBSERVATION_LAYOUTS: Mapping[ObservationName, str] = {
    "rays": "rays9-speed-yaw-steer-progress-offset",
    "road": "rays9-speed-yaw-steer-progress-offset+road12-1",
    "road-2": "rays9-speed-yaw-steer-progress-offset+road24-guide-3",
    "race": "rays9-speed-yaw-steer-progress-offset+road12-1+opponents4-1",
    "race-2": "rays9-speed-yaw-steer-progress-offset+road24-guide-3+opponents4-1",
}
_NUM_COLUMNS: Mapping[ObservationName, int] = {
    "rays": NUM_OBSERVATIONS,
    "road": NUM_OBSERVATIONS + NUM_ROAD_VIEW,
    "road-2": NUM_OBSERVATIONS + NUM_ROAD_VIEW_2,
    "race": NUM_RACE_OBSERVATIONS,
    "race-2": NUM_RACE_OBSERVATIONS_2,
}
SEE_GUIDE: frozenset[ObservationName] = frozenset({"road-2", "race-2"})
SEE_OPPONENTS: frozenset[ObservationName] = frozenset({"race", "race-2"})


def action_space() -> Box:
    """Steer (positive right), throttle, brake."""
    return Box(np.array([-1, 0, 0], np.float32), np.array([1, 1, 1], np.float32), dtype=np.float32)


def num_observations(observation: object = DEFAULT_OBSERVATION) -> int:
    """The number of columns of an observation; ConfigError if there is none of this name."""
    names = get_args(ObservationName)
    if observation not in names:
        raise ConfigError(f"observation must be {' or '.join(map(repr, names))}, got {observation!r:.40}.")
    return _NUM_COLUMNS[observation]  # type: ignore[index]


def observation_with(num_columns: int) -> ObservationName:
    """The observation that has so many columns."""
    return {columns: name for name, columns in _NUM_COLUMNS.items()}[num_columns]


def observation_space(observation: ObservationName = DEFAULT_OBSERVATION) -> Box:
    """Nine rays, speed, yaw rate, steering, lap progress, distance from the centreline; for `road` its view as well.

    For `race` and `race-2` the nearest four of the other cars follow, which are zero for a car alone.
    """
    size = num_observations(observation)
    low = np.zeros(size, np.float32)
    low[[OBS_YAW_RATE, OBS_STEER]] = -1.0
    low[NUM_OBSERVATIONS:] = -1.0
    if observation != "rays":
        low[[NUM_OBSERVATIONS + VIEW_THROTTLE, NUM_OBSERVATIONS + VIEW_BRAKE]] = 0.0
    if observation in SEE_GUIDE:
        guide = low[NUM_OBSERVATIONS + FIRST_GUIDE : NUM_OBSERVATIONS + NUM_ROAD_VIEW_2]
        guide[1::COLUMNS_PER_GUIDE] = 0.0  # speeds
    if observation in SEE_OPPONENTS:
        opponents = low[-NUM_OPPONENT_VIEW:]
        opponents[OPPONENT_PRESENCE::COLUMNS_PER_OPPONENT] = opponents[OPPONENT_ALONGSIDE::COLUMNS_PER_OPPONENT] = 0.0
    return Box(low, np.ones(size, np.float32), dtype=np.float32)


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
