"""What the info of a car in a race has beside that of a car alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.race import FINISHED, RETIRED

# Present on every step and after a reset.
RACE_KEYS = ("position", "raceProgress", "contact", "atFault", "overtakes", "slipstream", "finished")
# Present only on the step in which the car finishes.
RACE_TIME = "raceTime"
# What a car that no longer races is called.
OUT_OF_RACE = {FINISHED: "finished", RETIRED: "out"}


def race_progress_m(entrants: NDArray[np.void], lap_lengths_m: NDArray[np.float32]) -> NDArray[np.float64]:
    """How far each car is from the line: laps and what it drove of the next; negative behind the line on the grid."""
    progress_m: NDArray[np.float64] = entrants["laps_done"] * lap_lengths_m.astype(np.float64) + entrants["arc_m"]
    return progress_m


def race_columns(entrants: NDArray[np.void], lap_lengths_m: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """The columns of RACE_KEYS for every car."""
    return {
        "position": entrants["position"].copy(),
        "raceProgress": race_progress_m(entrants, lap_lengths_m),
        "contact": entrants["contact_mps"].copy(),
        "atFault": entrants["at_fault"] != 0,
        "overtakes": entrants["overtakes"].copy(),
        "slipstream": entrants["slipstream"].copy(),
        "finished": entrants["status"] == FINISHED,
    }
