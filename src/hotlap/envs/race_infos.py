"""What the info of a car in a race has beside that of a car alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.race import FINISHED

# Present on every step and after a reset.
RACE_KEYS = ("position", "raceProgress", "contact", "atFault", "overtakes", "slipstream", "finished")
# Present only on the step in which the car finishes.
RACE_TIME = "raceTime"


def race_columns(entrants: NDArray[np.void], lap_lengths_m: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """The columns of RACE_KEYS for every car; progress (m) counts from the line, and is negative behind it."""
    return {
        "position": entrants["position"].copy(),
        "raceProgress": entrants["laps_done"] * lap_lengths_m + entrants["arc_m"],
        "contact": entrants["contact_mps"].copy(),
        "atFault": entrants["at_fault"] != 0,
        "overtakes": entrants["overtakes"].copy(),
        "slipstream": entrants["slipstream"].copy(),
        "finished": entrants["status"] == FINISHED,
    }
