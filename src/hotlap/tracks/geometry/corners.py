"""Finds and names the corners of a track."""

import math
from dataclasses import dataclass

import numpy as np

from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.spline import IntArray

_CORNER_CURVATURE = 1.0 / 150.0
_CORNER_TURN_RAD = 0.35
_CORNER_GAP_M = 12.0

_HAIRPIN_RAD = math.radians(135.0)
_KINK_RAD = math.radians(50.0)
_SWEEPER_RADIUS_M = 60.0
_CHICANE_RAD = math.radians(75.0)
_CHICANE_M = 60.0


@dataclass(frozen=True)
class Corner:
    """A numbered corner: the node of its apex, the angle it turns through, positive to the left, and its extent."""

    apex: int
    turn_rad: float
    first: int  # node where the road begins to turn
    last: int  # less than `first` where the start line lies in the corner


def find_corners(nodes: RibbonNodes) -> list[Corner]:
    """The corners in driving order: runs of one turning direction that add up to 20° or more."""
    sign = np.where(np.abs(nodes.curvature_radpm) > _CORNER_CURVATURE, np.sign(nodes.curvature_radpm), 0.0)
    size = sign.size
    starts = np.flatnonzero(sign == 0.0)
    if starts.size == 0:
        return [_corner(nodes, np.arange(size))]
    order = (np.arange(size) + starts[0]) % size  # from a straight, so that the start line cuts no corner
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
    """The corner over a run of nodes; its apex is where half the angle is turned, which is stable on a round corner."""
    turning = np.cumsum(nodes.curvature_radpm[run]) * nodes.step_m
    middle = int(np.searchsorted(np.abs(turning), 0.5 * abs(turning[-1])))
    return Corner(int(run[middle]), float(turning[-1]), int(run[0]), int(run[-1]))


def name_corners(nodes: RibbonNodes, corners: list[Corner]) -> list[str]:
    """The name of each corner: hairpin, chicane, sweeper, kink, or just left or right."""
    names = [_corner_kind(corner, nodes) for corner in corners]
    for index, corner in enumerate(corners):
        after = (index + 1) % len(corners)
        gap_m = (corners[after].apex - corner.apex) % nodes.num_nodes * nodes.step_m
        are_opposed = corner.turn_rad * corners[after].turn_rad < 0.0
        is_quick = max(abs(corner.turn_rad), abs(corners[after].turn_rad)) < _CHICANE_RAD and gap_m < _CHICANE_M
        if are_opposed and is_quick:
            names[index] = names[after] = "chicane"
    return names


def _corner_kind(corner: Corner, nodes: RibbonNodes) -> str:
    side = "left" if corner.turn_rad > 0.0 else "right"
    turn_rad, curvature = abs(corner.turn_rad), abs(float(nodes.curvature_radpm[corner.apex]))
    if curvature * _SWEEPER_RADIUS_M < 1.0:
        return f"{side} sweeper"
    if turn_rad >= _HAIRPIN_RAD:
        return "hairpin"
    return f"{side} kink" if turn_rad < _KINK_RAD else side
