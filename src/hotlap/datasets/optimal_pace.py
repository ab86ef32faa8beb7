"""The optimal lap as a clock along the road: how long it still takes to the line, and how much time was lost to it."""

import numpy as np
from numpy.typing import NDArray

from hotlap.evaluation.lap_comparison import optimal_profile
from hotlap.optimal.reference import Reference
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.tracks.registry import Track

Floats = NDArray[np.float64]

_DECIMALS = 6  # microseconds; the last bits depend on the platform's math library


class OptimalPace:
    """The optimal flying lap of a track as a function of the place along the centreline."""

    def __init__(self, track: Track, reference: Reference) -> None:
        self._length_m, self._lap_s = track.nodes.length_m, reference.lap_time_s
        self._arc_m: Floats = np.arange(track.nodes.num_nodes + 1, dtype=np.float64) * track.nodes.step_m
        self._time_s, _, _ = optimal_profile(reference.raceline, track.nodes, self._lap_s, self._arc_m)

    def time_to_go_s(self, arc_m: Floats) -> Floats:
        """Seconds that the optimal flying lap takes from these places to the line."""
        to_go_s: Floats = np.round(self._lap_s - self._since_line_s(arc_m), _DECIMALS)
        return to_go_s

    def gap_s(self, arc_m: Floats) -> Floats:
        """Seconds lost to the optimal flying lap since the first row; a row is a tick later than the one before."""
        along_m = np.unwrap(arc_m, period=self._length_m)
        laps = np.floor(along_m / self._length_m)
        optimal_s = laps * self._lap_s + self._since_line_s(along_m)
        driven_s = np.arange(len(arc_m)) / TICKS_PER_SECOND
        gap_s: Floats = np.round(driven_s - (optimal_s - optimal_s[0]), _DECIMALS)
        return gap_s

    def _since_line_s(self, arc_m: Floats) -> Floats:
        since_s: Floats = np.interp(arc_m % self._length_m, self._arc_m, self._time_s)
        return since_s
