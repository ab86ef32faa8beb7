"""Names of the info values that `step` and `reset` return, and one car's info as a dict."""

import math
from operator import itemgetter
from typing import Any

from hotlap.sim.world import INFO_DTYPE

Info = dict[str, Any]

INFO_KEYS = INFO_DTYPE.names or ()

# The weighted reward terms, which sum to the reward. They are the first columns of INFO_DTYPE.
REWARD_KEYS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")

# Present only on the step that completes a lap. They are the last columns of INFO_DTYPE.
LAP_KEYS = ("lapTime", "lapClean")

# Present on every step.
STEP_KEYS = tuple(key for key in INFO_KEYS if key not in LAP_KEYS)

# The keys of reset's info and their columns: here `speed` is the car's speed, not the reward term.
RESET_COLUMNS = {
    "lap": "lap",
    "checkpoint": "checkpoint",
    "stepCount": "stepCount",
    "tick": "tick",
    "speed": "rawSpeed",
}

# These keys mean the same after a reset as after a step.
SHARED_KEYS = tuple(key for key, column in RESET_COLUMNS.items() if key == column)

_reset_values = itemgetter(*(INFO_KEYS.index(column) for column in RESET_COLUMNS.values()))


def step_info(values: tuple[Any, ...]) -> Info:
    """The info of a step as plain values, from a record of INFO_DTYPE; LAP_KEYS only if a lap was completed."""
    info = dict(zip(INFO_KEYS, values, strict=True))
    if math.isnan(info["lapTime"]):
        del info["lapTime"], info["lapClean"]
    return info


def reset_info(values: tuple[Any, ...]) -> Info:
    """The info of a reset as plain values, from a record of INFO_DTYPE."""
    return dict(zip(RESET_COLUMNS, _reset_values(values), strict=True))
