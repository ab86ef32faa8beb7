"""Narrows a road on its inside where a bend, or a neighbouring part of the road, leaves less room than its width.

Real tracks have such places: a hairpin whose centreline bends with 5.7 m under a road of 6.8 m to the inside. The inner
edge would run backwards there, and no car could use that part of the road twice. A point of the edge belongs to one
place of the road as long as no other place is nearer to it; the half-width is limited to 95 % of that.

A place that would leave less than `MIN_INNER_M` is no road (a fold, a spike), and neither is a bend without room that
turns farther than a hairpin. It is not changed, and the road's own check refuses it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.polyline import Crossing, near_pairs
from hotlap.tracks.geometry.road import (
    MAX_CROSSINGS,
    MIN_INNER_M,
    NEIGHBOUR_M,
    ROAD_MARGIN,
    Road,
    edge_cuts,
    find_overpasses,
    inner_margin,
    trace,
)
from hotlap.tracks.geometry.spline import FloatArray, IntArray
from hotlap.tracks.geometry.walls import is_at_crossing

NARROWED_MARGIN = 0.05  # left between the inner edge and the limit of its room, as a fraction of the room

MAX_TURN_RAD = 1.5 * np.pi  # of a bend without room for its inner half; a hairpin turns by half a turn

_MAX_ROUNDS = 8  # one or two are nearly always enough


@dataclass(frozen=True)
class Narrowing:
    """Where the road was made narrower, by how much at most, and on which side."""

    at_m: float
    by_m: float
    side: str


def narrow_tight_bends(centreline: Centreline, spacing_m: float) -> Centreline:
    """The line with its inner half narrowed wherever there is no room for it; itself where nothing has to change."""
    for _ in range(_MAX_ROUNDS):
        road = trace(centreline, spacing_m)
        if not isinstance(road, Road):
            break
        overpasses = find_overpasses(road)
        if len(overpasses) > MAX_CROSSINGS:
            break
        before = centreline
        for side in ("left", "right"):
            centreline = _narrow_side(centreline, road, side, overpasses)
        if centreline is before:
            break
    return centreline


def find_narrowings(wide: Road, narrow: RibbonNodes) -> list[Narrowing]:
    """Each stretch in which `narrow`, the same nodes, is at least a centimetre narrower."""
    found = []
    for side in ("left", "right"):
        by_m = getattr(wide, side) - getattr(narrow, f"road_{side}_m")
        for nodes in _stretches(by_m >= 0.01):
            most = nodes[np.argmax(by_m[nodes])]
            found.append(Narrowing(float(most) * wide.step, float(by_m[most]), side))
    return sorted(found, key=lambda narrowing: narrowing.at_m)


def _narrow_side(line: Centreline, road: Road, side: str, overpasses: list[Crossing]) -> Centreline:
    bends = list(_stretches(inner_margin(road, side) <= ROAD_MARGIN))
    stretches = [*bends, *_cut_stretches(road, side, overpasses)]
    if not stretches or any(_turns_too_far(road, nodes) for nodes in bends):
        return line
    limit = (1.0 - NARROWED_MARGIN) * _room(road, side, overpasses)
    width = getattr(line, f"width_{side}_m").copy()
    for nodes in stretches:
        if limit[nodes].min() < (1.0 - NARROWED_MARGIN) * MIN_INNER_M:
            continue
        # The road's width is linear between two points: with both within the limit, so is everything between.
        np.minimum.at(width, road.point[nodes], limit[nodes])
        np.minimum.at(width, (road.point[nodes] + 1) % width.size, limit[nodes])
    if np.array_equal(width, getattr(line, f"width_{side}_m")):
        return line
    return replace(line, **{f"width_{side}_m": width})


def _turns_too_far(road: Road, nodes: IntArray) -> bool:
    return abs(float(road.curvature[nodes].sum())) * road.step > MAX_TURN_RAD


def _stretches(is_in: np.ndarray) -> Iterator[IntArray]:
    """The runs of neighbouring indices for which the flag is set."""
    at = np.flatnonzero(is_in)
    for run in np.split(at, np.flatnonzero(np.diff(at) > 1) + 1):
        if run.size:
            yield run


def _cut_stretches(road: Road, side: str, overpasses: list[Crossing]) -> Iterator[IntArray]:
    """The nodes between the two places where an edge cuts itself, and as far to both sides as cuts are searched."""
    size = road.x.size
    more = round(0.5 * NEIGHBOUR_M / road.step)
    for cut in edge_cuts(road, side, overpasses):
        first, second = cut.first, cut.second
        if second - first > size - (second - first):
            first, second = second, first + size
        yield np.arange(first - more, min(second + more, first - more + size - 1) + 1) % size


def _room(road: Road, side: str, overpasses: list[Crossing]) -> FloatArray:
    """For each node how far its edge may lie on this side: the centre of curvature, or halfway to another part.

    The points nearer to node i than to a node j lie within the circle through both that is tangent to the road at i.
    """
    sign = 1.0 if side == "left" else -1.0
    room = 1.0 / np.maximum(sign * road.curvature, 1e-12)
    # The edge advances from each node to the next as long as it stays before the point where their normals meet.
    dx, dy = np.roll(road.x, -1) - road.x, np.roll(road.y, -1) - road.y
    turn = sign * (road.tx * np.roll(road.ty, -1) - road.ty * np.roll(road.tx, -1))
    ahead = (dx * road.tx + dy * road.ty) / np.maximum(turn, 1e-12)
    room = np.minimum(room, np.roll(ahead, 1))
    size = road.x.size
    reach = 2.0 * float((road.left if side == "left" else road.right).max())
    for i, j, square in near_pairs(road.x, road.y, reach):
        gap = np.abs(i - j)
        is_neighbour = np.minimum(gap, size - gap) * road.step < 2.0 * NEIGHBOUR_M
        for overpass in overpasses:
            is_neighbour &= ~is_at_crossing(road, overpass, reach, i, j)
        i, j, square = i[is_neighbour], j[is_neighbour], square[is_neighbour]
        lateral = sign * (road.tx[i] * (road.y[j] - road.y[i]) - road.ty[i] * (road.x[j] - road.x[i]))
        np.minimum.at(room, i, square / np.maximum(2.0 * lateral, 1e-12))
    return room
