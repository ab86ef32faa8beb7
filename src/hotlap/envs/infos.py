"""Names of the info values that `step` and `reset` return, and the info of one car or of a batch as a dict."""

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.world import INFO_DTYPE

Info = dict[str, Any]
VectorInfo = dict[str, Any]

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


def masked_info(columns: NDArray[np.void] | Mapping[str, NDArray[Any]], mask: NDArray[np.bool_]) -> VectorInfo:
    """The info of a batch's step: each column with Gymnasium's mask of the cars it is valid for."""
    info: VectorInfo = {}
    for name in STEP_KEYS:
        info[name], info[f"_{name}"] = columns[name], mask
    finished = mask & ~np.isnan(columns["lapTime"])
    if finished.any():
        for name in LAP_KEYS:
            info[name], info[f"_{name}"] = columns[name], finished
    return info
