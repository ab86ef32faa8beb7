"""The road along a centreline: uniform nodes without walls, and the checks that it can be driven."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hotlap.tracks.geometry.centreline import Centreline, spline_of
from hotlap.tracks.geometry.polyline import Crossing, crossing_segments, lag, self_crossings
from hotlap.tracks.geometry.spline import FloatArray, IntArray

MIN_LENGTH_M = 100.0
MAX_LENGTH_M = 30_000.0
MAX_CROSSINGS = 50

_MIN_NODES = 64
ROAD_MARGIN = 0.02  # least 1 - curvature * road width
NEIGHBOUR_M = 150.0  # parts of the road closer than this along it are neighbours
MIN_INNER_M = 2.0  # narrowest inner half that an import makes; the car is 1.9 m wide


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
    if fault := find_length_fault(spline.length):
        return fault
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


def find_length_fault(length_m: float) -> Fault | None:
    """The fault of a lap that is too short or too long."""
    rule = f"at least {MIN_LENGTH_M:g} m" if not length_m >= MIN_LENGTH_M else ""
    if not rule and length_m <= MAX_LENGTH_M:
        return None
    rule = rule or f"at most {MAX_LENGTH_M:g} m"
    return Fault(0, f"the lap is {length_m:.1f} m long; it must be {rule}. Are these metres?")


def find_overpasses(road: Road) -> list[Crossing]:
    """Where the centreline crosses itself; the search stops when there are more than a track may have."""
    return self_crossings(road.x, road.y, limit=MAX_CROSSINGS + 1)


def road_fault(road: Road, crossings: list[Crossing]) -> Fault | None:
    """The first reason why this road cannot be driven, or None."""
    if len(crossings) > MAX_CROSSINGS:
        text = (
            f"the track crosses itself more than {MAX_CROSSINGS} times, the most allowed. Check the order of the rows."
        )
        return Fault(int(road.point[crossings[0].first]), text)
    return _tight_curve(road) or _crossed_edge(road, "left", crossings) or _crossed_edge(road, "right", crossings)


def inner_margin(road: Road, side: str) -> FloatArray:
    """Distance from an edge to the centre of curvature, as a fraction of the radius.

    Above 1 on the outside of a bend; below 0 the edge would run backwards.
    """
    return 1.0 - road.curvature * road.left if side == "left" else 1.0 + road.curvature * road.right


def edge_cuts(road: Road, side: str, overpasses: list[Crossing]) -> Iterator[Crossing]:
    """Where an edge runs backwards, or crosses itself among neighbours without an overpass."""
    x, y = road.offset(road.left if side == "left" else -road.right)
    size = x.size
    advance = (np.roll(x, -1) - x) * road.tx + (np.roll(y, -1) - y) * road.ty
    if advance.min() <= 0.0:
        node = int(np.argmin(advance))
        yield Crossing(node, (node + 1) % size)
    near = NEIGHBOUR_M / road.step

    def is_overpass(cut: Crossing) -> bool:
        return any(
            lag(cut.first, over.first, size) < near and lag(cut.second, over.second, size) < near for over in overpasses
        )

    for i, j in crossing_segments(x, y):
        is_near = np.minimum(j - i, size - (j - i)) < near
        cuts = map(Crossing, i[is_near].tolist(), j[is_near].tolist())
        yield from (cut for cut in cuts if not is_overpass(cut))


def _tight_curve(road: Road) -> Fault | None:
    side = min(("left", "right"), key=lambda one: float(inner_margin(road, one).min()))
    margin = inner_margin(road, side)
    if margin.min() > ROAD_MARGIN:
        return None
    node = int(np.argmin(margin))
    radius = 1.0 / abs(float(road.curvature[node]))
    where = f"at s = {node * road.step:.0f} m has a radius of {radius:.2f} m"
    if radius < MIN_INNER_M:
        text = (
            f"the line has a spike or a fold: the curve {where}, and no road bends with less than {MIN_INNER_M:g} m. "
            "Correct or delete the point, or add points to the bend."
        )
    else:
        text = (
            f"curve {where}, tighter than the half-width of {getattr(road, side)[node]:.2f} m on its inside. "
            "Widen the curve or narrow the road there."
        )
    return Fault(int(road.point[node]), text)


def _crossed_edge(road: Road, side: str, overpasses: list[Crossing]) -> Fault | None:
    cut = next(edge_cuts(road, side, overpasses), None)
    if cut is None:
        return None
    text = (
        f"the {side} edge crosses itself near s = {cut.first * road.step:.0f} m; edges may not cross among neighbours. "
        "Move the two parts of the road apart or narrow it there."
    )
    return Fault(int(road.point[cut.first]), text)
