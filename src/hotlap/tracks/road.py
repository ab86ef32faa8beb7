"""The road along a centreline: uniform nodes without walls, and the checks that it can be driven."""

from dataclasses import dataclass

import numpy as np

from hotlap.tracks.centreline import Centreline, spline_of
from hotlap.tracks.polyline import Crossing, lag, self_crossings
from hotlap.tracks.spline import FloatArray, IntArray

MIN_LENGTH_M = 100.0
MAX_LENGTH_M = 30_000.0
MAX_CROSSINGS = 50

_MIN_NODES = 64
ROAD_MARGIN = 0.02  # least 1 - curvature * road width
_NEIGHBOUR_M = 150.0  # parts of the road closer than this along it are neighbours


@dataclass(frozen=True)
class Fault:
    """Why a centreline cannot be driven, and after which of its points."""

    point: int
    text: str


@dataclass(frozen=True)
class Road:
    """The nodes of a road without walls, arrays of shape (num_nodes,)."""

    step: float
    x: FloatArray
    y: FloatArray
    tx: FloatArray
    ty: FloatArray
    curvature: FloatArray
    left: FloatArray
    right: FloatArray
    point: IntArray  # index of the centreline point before each node

    def offset(self, distance_left: FloatArray) -> tuple[FloatArray, FloatArray]:
        """X and y of the points this far left of the nodes; negative is right."""
        return self.x - self.ty * distance_left, self.y + self.tx * distance_left


def trace(centreline: Centreline, spacing_m: float) -> Road | Fault:
    """The road's nodes, or the fault for which it has none."""
    spline = spline_of(centreline)
    if not spline.length >= MIN_LENGTH_M:
        text = f"the lap is {spline.length:.1f} m long; it must be at least {MIN_LENGTH_M:g} m. Are these metres?"
        return Fault(0, text)
    if not spline.length <= MAX_LENGTH_M:
        text = f"the lap is {spline.length:.0f} m long; it must be at most {MAX_LENGTH_M:g} m. Are these metres?"
        return Fault(0, text)
    step, i, u = spline.uniform(spacing_m, _MIN_NODES)
    x, y = spline.position(i, u)
    vx, vy = spline.velocity(i, u)
    ax, ay = spline.acceleration(i, u)
    # At a cusp the speed is zero; the floor makes its curvature huge, and the check for tight curves refuses it.
    speed = np.maximum(np.sqrt(vx * vx + vy * vy), 1e-9)
    right = spline.between(centreline.width_right_m, i, u)
    left = spline.between(centreline.width_left_m, i, u)
    curvature = (vx * ay - vy * ax) / (speed * speed * speed)
    return Road(step, x, y, vx / speed, vy / speed, curvature, left, right, point=i)


def road_fault(road: Road, crossings: list[Crossing]) -> Fault | None:
    """The first reason why this road cannot be driven, or None."""
    if len(crossings) > MAX_CROSSINGS:
        text = f"the track crosses itself {len(crossings)} times; at most {MAX_CROSSINGS} are allowed. Check the order."
        return Fault(int(road.point[crossings[0].first]), text)
    return (
        _tight_curve(road, "left")
        or _tight_curve(road, "right")
        or _crossed_edge(road, "left", road.left, crossings)
        or _crossed_edge(road, "right", -road.right, crossings)
    )


def inner_margin(road: Road, side: str) -> FloatArray:
    """Distance from an edge to the centre of curvature, as a share of the radius.

    Above 1 on the outside of a bend; below 0 the edge would run backwards.
    """
    return 1.0 - road.curvature * road.left if side == "left" else 1.0 + road.curvature * road.right


def _tight_curve(road: Road, side: str) -> Fault | None:
    margin = inner_margin(road, side)
    if margin.min() > ROAD_MARGIN:
        return None
    node = int(np.argmin(margin))
    radius = 1.0 / abs(float(road.curvature[node]))
    text = (
        f"curve at s = {node * road.step:.0f} m has a radius of {radius:.2f} m, tighter than the half-width of "
        f"{getattr(road, side)[node]:.2f} m on its inside. Widen the curve or narrow the road there."
    )
    return Fault(int(road.point[node]), text)


def _crossed_edge(road: Road, side: str, distance_left: FloatArray, overpasses: list[Crossing]) -> Fault | None:
    """An edge that runs backwards, or crosses itself among neighbours without an overpass."""
    x, y = road.offset(distance_left)
    advance = (np.roll(x, -1) - x) * road.tx + (np.roll(y, -1) - y) * road.ty
    nodes = [int(np.argmin(advance))] if advance.min() <= 0.0 else []
    near = _NEIGHBOUR_M / road.step
    size = x.size

    def is_overpass(cut: Crossing) -> bool:
        return any(
            lag(cut.first, over.first, size) < near and lag(cut.second, over.second, size) < near for over in overpasses
        )

    cuts = [c for c in self_crossings(x, y) if lag(c.first, c.second, size) < near]
    nodes += [c.first for c in cuts if not is_overpass(c)]
    if not nodes:
        return None
    node = nodes[0]
    text = (
        f"the {side} edge crosses itself near s = {node * road.step:.0f} m; edges may not cross among neighbours. "
        "Move the two parts of the road apart or narrow it there."
    )
    return Fault(int(road.point[node]), text)
