"""Measures a road: its widths, straights and corners, to compare generated roads with real ones."""

from dataclasses import dataclass

import numpy as np

from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.corners import Corner, find_corners
from hotlap.tracks.geometry.spline import FloatArray

STRAIGHT_RADIUS_M = 300.0  # a road that bends less is straight
_KINK_M = 31.0  # surveyed lines have kinks; curvature is averaged over this length to find straights
_APEX_M = 5.0  # the same to find the tightest radius of a corner
_MAX_RAMP_M = 40.0  # from the end of a straight to the corner that it leads to


@dataclass(frozen=True)
class CornerStatistics:
    """A corner as a driver meets it."""

    entry_m: float  # length of the straight before it; 0 after another bend
    radius_m: float  # tightest, of the centreline
    width_m: float  # of the road, where the corner is tightest
    turn_rad: float  # positive to the left


@dataclass(frozen=True)
class RoadStatistics:
    """The measures of one lap."""

    length_m: float
    min_width_m: float
    median_width_m: float
    max_width_m: float
    longest_straight_m: float
    straight_fraction: float  # of the lap
    turning_radpkm: float  # to both sides
    corners: tuple[CornerStatistics, ...]


def measure_road(nodes: RibbonNodes) -> RoadStatistics:
    """The statistics of a road."""
    width_m = nodes.road_left_m + nodes.road_right_m
    bend = _average(nodes.curvature_radpm, _KINK_M / nodes.step_m)
    is_straight = np.abs(bend) < 1.0 / STRAIGHT_RADIUS_M
    straight_m = _run_lengths(is_straight) * nodes.step_m
    sharp = np.abs(_average(nodes.curvature_radpm, _APEX_M / nodes.step_m))
    return RoadStatistics(
        length_m=nodes.length_m,
        min_width_m=float(width_m.min()),
        median_width_m=float(np.median(width_m)),
        max_width_m=float(width_m.max()),
        longest_straight_m=float(straight_m.max()),
        straight_fraction=float(is_straight.mean()),
        turning_radpkm=float(np.abs(bend).mean()) * 1000.0,
        corners=tuple(_measure_corner(nodes, corner, straight_m, sharp, width_m) for corner in find_corners(nodes)),
    )


def _measure_corner(
    nodes: RibbonNodes, corner: Corner, straight_m: FloatArray, sharp: FloatArray, width_m: FloatArray
) -> CornerStatistics:
    size = nodes.num_nodes
    inside = (corner.first + np.arange((corner.last - corner.first) % size + 1)) % size
    before = (corner.first - np.arange(int(_MAX_RAMP_M / nodes.step_m) + 1)) % size
    straight = np.flatnonzero(straight_m[before] > 0.0)
    tightest = int(inside[np.argmax(sharp[inside])])
    return CornerStatistics(
        entry_m=float(straight_m[before[straight[0]]]) if straight.size else 0.0,
        radius_m=1.0 / float(sharp[tightest]),
        width_m=float(width_m[tightest]),
        turn_rad=corner.turn_rad,
    )


def _average(values: FloatArray, num_nodes: float) -> FloatArray:
    """The running mean over an odd number of nodes, about `num_nodes`, round the lap."""
    half = min(int(0.5 * num_nodes), (values.size - 1) // 2)
    sums = np.cumsum(np.concatenate((np.zeros(1), values[values.size - half :], values, values[:half])))
    return np.asarray((sums[2 * half + 1 :] - sums[: values.size]) / (2 * half + 1))


def _run_lengths(is_in: np.ndarray) -> FloatArray:
    """For each index the length of the run of set flags it is part of, round the lap; 0 where the flag is not set."""
    if is_in.all():
        return np.full(is_in.size, float(is_in.size))
    first = int(np.argmin(is_in))
    flags = np.roll(is_in, -first)
    runs = np.cumsum(np.diff(flags, prepend=False) != 0)
    lengths = np.bincount(runs)[runs]
    return np.roll(np.where(flags, lengths, 0), first).astype(np.float64)
