"""The corners of a track: where they are and how far they turn."""

from dataclasses import dataclass

import numpy as np

from hotlap.sim.ribbon import RibbonNodes
from hotlap.tracks.spline import IntArray

_CORNER_CURVATURE = 1.0 / 150.0
_CORNER_TURN_RAD = 0.35
_CORNER_GAP_M = 12.0


@dataclass(frozen=True)
class Corner:
    """A bend worth a number: its sharpest node and the angle it turns through, positive to the left."""

    apex: int
    turn_rad: float


def find_corners(nodes: RibbonNodes) -> list[Corner]:
    """The bends in driving order: runs of one turning direction that add up to 20° or more."""
    sign = np.where(np.abs(nodes.curvature_radpm) > _CORNER_CURVATURE, np.sign(nodes.curvature_radpm), 0.0)
    size = sign.size
    starts = np.flatnonzero(sign == 0.0)
    if starts.size == 0:
        return [_corner(nodes, np.arange(size))]
    order = (np.arange(size) + starts[0]) % size  # from a straight piece, so that no bend is cut by the line
    gap = max(round(_CORNER_GAP_M / nodes.step_m), 1)
    runs: list[list[int]] = []
    for k in order.tolist():
        if sign[k] == 0.0:
            continue
        is_same = bool(runs) and sign[runs[-1][-1]] == sign[k] and (k - runs[-1][-1]) % size <= gap
        if is_same:
            runs[-1].append(k)
        else:
            runs.append([k])
    corners = [_corner(nodes, np.array(run)) for run in runs]
    return sorted((c for c in corners if abs(c.turn_rad) >= _CORNER_TURN_RAD), key=lambda corner: corner.apex)


def _corner(nodes: RibbonNodes, run: IntArray) -> Corner:
    """The corner over a run of nodes; its apex is where half the turning is done, which sits still on a round bend."""
    turning = np.cumsum(nodes.curvature_radpm[run]) * nodes.step_m
    middle = int(np.searchsorted(np.abs(turning), 0.5 * abs(turning[-1])))
    return Corner(int(run[middle]), float(turning[-1]))
