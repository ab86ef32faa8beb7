"""Where the walls stand: a runoff beyond the road, less where a bend or another leg of the track leaves no room.

Walls stand at least `CAR_ROOM_M` beyond the road's edge, so that a car whose centre is on the road touches none. Where
the inside of a bend is too tight for that, the road is narrowed.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.geometry.polyline import Crossing, near_pairs
from hotlap.tracks.geometry.road import Road
from hotlap.tracks.geometry.spline import FloatArray, IntArray

CAR_ROOM_M = CarParameters().radius_m + 0.05

_WALL_MARGIN = 0.15  # least 1 - curvature * wall distance
_WALL_ADVANCE = 0.1  # least advance of a wall from node to node, as a fraction of the step
_WALL_SLOPE = 0.5  # metres outward per metre of track
_LEG_RATIO = 1.5  # separate legs are this much farther apart along the road than directly
_LONGEST_CROSSING_M = 200.0
_LEAST_HALF_M = 0.25  # of a road that is narrowed for its walls


def build_walls(road: Road, crossings: list[Crossing], runoff_m: float) -> tuple[Road, FloatArray, FloatArray]:
    """The road, narrowed where its walls would leave a car no room, and the distances to its left and right wall."""
    caps = leg_caps(road, crossings, runoff_m)
    left_m, left = _build_side(road, 1.0, caps[0], runoff_m)
    right_m, right = _build_side(road, -1.0, caps[1], runoff_m)
    return replace(road, left=left_m, right=right_m), left, right


def _build_side(road: Road, sign: float, cap: FloatArray, runoff_m: float) -> tuple[FloatArray, FloatArray]:
    """The half-width on one side, and the distance to its wall."""
    width = road.left if sign > 0.0 else road.right
    room_m = min(CAR_ROOM_M, runoff_m)
    wall = wall_distance(road, sign, cap, runoff_m, width)
    if (wall - width).min() >= room_m:
        return width, wall
    # How far out walls can stand whatever the width, and the width that leaves a car room before them.
    least = np.full_like(width, _LEAST_HALF_M + room_m)
    free = wall_distance(road, sign, cap, runoff_m, least)
    width = _cut(width, width + room_m - free, road.step)
    return width, wall_distance(road, sign, cap, runoff_m, width + room_m)


def _cut(width: FloatArray, by_m: FloatArray, step: float) -> FloatArray:
    """A half-width cut back by this much, and beside it so that the edge comes back with the walls' slope."""
    return np.maximum(width + _limit_slope(-np.maximum(by_m, 0.0), -width, step), np.minimum(width, _LEAST_HALF_M))


def leg_caps(road: Road, crossings: list[Crossing], runoff_m: float) -> tuple[FloatArray, FloatArray]:
    """Upper limits of the wall distance, left and right: no wall is closer to another leg's road than to its own."""
    size = road.x.size
    caps = np.full((2, size), np.inf)
    reach = 2.0 * (float(np.maximum(road.left, road.right).max()) + runoff_m)
    widths = np.stack((road.left, road.right))
    for i, j, square in near_pairs(road.x, road.y, reach):
        gap = np.abs(i - j)
        way = np.minimum(gap, size - gap) * road.step
        is_leg = way * way > _LEG_RATIO * _LEG_RATIO * square
        for crossing in crossings:
            is_leg &= ~is_at_crossing(road, crossing, reach, i, j)
        i, j, square = i[is_leg], j[is_leg], square[is_leg]
        dx, dy = road.x[j] - road.x[i], road.y[j] - road.y[i]
        lateral = road.tx[i] * dy - road.ty[i] * dx
        facing = road.ty[j] * dx - road.tx[j] * dy
        side = np.where(lateral > 0.0, 0, 1)
        wider = widths[np.where(facing > 0.0, 0, 1), j] - widths[side, i]
        # A wall point w out has |wall - j| - width_j >= w - width_i; squared, the w² cancel.
        bound = 2.0 * (np.abs(lateral) + wider)
        cap = np.where(bound > 0.0, (square - wider * wider) / np.where(bound > 0.0, bound, 1.0), np.inf)
        np.minimum.at(caps, (side, i), cap)
    return caps[0], caps[1]


def is_at_crossing(road: Road, crossing: Crossing, reach: float, i: IntArray, j: IntArray) -> NDArray[np.bool_]:
    """Whether i and j are the two levels of an overpass, as far along them as the levels overlap."""
    a, b, size = crossing.first, crossing.second, road.x.size
    sine = abs(float(road.tx[a] * road.ty[b] - road.ty[a] * road.tx[b]))
    extent = min(reach / max(sine, 1e-3), _LONGEST_CROSSING_M) / road.step

    def near(k: IntArray, node: int) -> NDArray[np.bool_]:
        gap = np.abs(k - node)
        return np.asarray(np.minimum(gap, size - gap) <= extent)

    return np.asarray((near(i, a) & near(j, b)) | (near(i, b) & near(j, a)))


def wall_distance(road: Road, sign: float, cap: FloatArray, runoff_m: float, least: FloatArray) -> FloatArray:
    """Distance to the wall on one side (sign 1 left, -1 right), nowhere less than `least`."""
    width = road.left if sign > 0.0 else road.right
    bend = np.maximum(sign * road.curvature, 1e-12)
    # Between two legs without room for both walls, each stands on the other's side: the strip may lie over itself.
    cap = np.maximum(cap, width + CAR_ROOM_M)
    wall = np.minimum(np.minimum(width + runoff_m, cap), (1.0 - _WALL_MARGIN) / bend)
    wall = _limit_slope(np.maximum(wall, least), least, road.step)
    while True:
        x, y = road.offset(sign * wall)
        advance = (np.roll(x, -1) - x) * road.tx + (np.roll(y, -1) - y) * road.ty
        is_short = advance < _WALL_ADVANCE * road.step
        is_short = (is_short | np.roll(is_short, 1)) & (wall > least)
        if not is_short.any():
            return wall
        spare = 0.7 * (wall - least)
        pulled_in = np.where(spare > 0.01, least + spare, least)
        wall = _limit_slope(np.where(is_short, pulled_in, wall), least, road.step)


def _limit_slope(wall: FloatArray, width: FloatArray, step: float) -> FloatArray:
    """Pull walls inward until they open no faster than the slope limit, but never onto the road."""
    rise = _WALL_SLOPE * step
    shift = 1
    while shift < wall.size and shift * rise <= wall.max() - width.min():
        wall = np.minimum(wall, np.minimum(np.roll(wall, shift), np.roll(wall, -shift)) + shift * rise)
        shift *= 2
    return np.maximum(wall, width)
