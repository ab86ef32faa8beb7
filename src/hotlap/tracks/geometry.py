"""From a centreline's points to the uniform nodes the simulator drives on.

Everything here is plain IEEE arithmetic (add, multiply, divide, square root, in a fixed order): no platform
math library, no BLAS, no fused sums. The nodes are part of the physics version, so they must have the same
bits on every machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import TrackError
from hotlap.sim.ribbon import RibbonNodes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

DEFAULT_RUNOFF_M = 6.0
DEFAULT_SPACING_M = 1.0
MIN_POINTS = 8
MIN_LENGTH_M = 100.0
MAX_LENGTH_M = 30_000.0
MAX_CROSSINGS = 50
FAR_M = 10_000.0  # beyond this a float32 position is coarser than a millimetre

_MIN_NODES = 64
_SMALLEST_CHORD_M = 1e-3  # what a file resolves
_ROAD_MARGIN = 0.02  # least 1 - curvature * road width
_WALL_MARGIN = 0.15  # least 1 - curvature * wall distance
_WALL_ADVANCE = 0.1  # least advance of a wall from node to node, as a share of the step
_WALL_SLOPE = 0.5  # metres outward per metre of track
_NEIGHBOUR_M = 150.0  # parts of the road closer than this along it are neighbours
_LEG_RATIO = 1.5  # two places are separate legs when the way by road is this much longer than the straight one
_LONGEST_CROSSING_M = 200.0
_BLOCK = 64  # nodes compared at once in the search for near pairs

# Five-point Gauss-Legendre on [0, 1]; exact to degree nine, and the speed of the spline is nearly constant.
_GAUSS = (
    (0.04691007703066800, 0.11846344252809454),
    (0.23076534494715845, 0.23931433524968324),
    (0.5, 0.28444444444444444),
    (0.76923465505284155, 0.23931433524968324),
    (0.95308992296933200, 0.11846344252809454),
)


@dataclass(frozen=True)
class Centreline:
    """What a track file holds: a closed line in driving order, first point on the start line, not repeated."""

    x_m: FloatArray  # (num_points,)
    y_m: FloatArray
    width_right_m: FloatArray  # centre to road edge, right of travel
    width_left_m: FloatArray


@dataclass(frozen=True)
class Fault:
    """Why a centreline cannot be driven, and behind which of its points."""

    point: int
    text: str


@dataclass(frozen=True)
class Crossing:
    """Two nodes whose segments to the next node intersect: an overpass."""

    first: int
    second: int


def build_nodes(
    centreline: Centreline, *, runoff_m: float = DEFAULT_RUNOFF_M, spacing_m: float = DEFAULT_SPACING_M
) -> RibbonNodes:
    """Uniform nodes along the periodic cubic spline through the points, node 0 on the first point.

    Walls stand `runoff_m` beyond the road, less on the inside of a bend and between two legs that lie side by
    side, never on the road. A centreline more than 10 km from the origin is first moved there (see `recentre`).
    """
    if not (runoff_m >= 0.0 and spacing_m > 0.0):
        raise TrackError(f"runoff is {runoff_m} m and spacing {spacing_m} m; they must not be negative or zero.")
    road = _trace(recentre(centreline), spacing_m)
    if isinstance(road, Fault):
        raise TrackError(road.text)
    crossings = _crossings(road.x, road.y)
    fault = _road_fault(road, crossings)
    if fault is not None:
        raise TrackError(fault.text)
    caps = _leg_caps(road, crossings, runoff_m)
    return RibbonNodes(
        step_m=road.step,
        x_m=road.x,
        y_m=road.y,
        tangent_x=road.tx,
        tangent_y=road.ty,
        curvature_radpm=road.curvature,
        road_left_m=road.left,
        road_right_m=road.right,
        wall_left_m=_wall(road, 1.0, caps[0], runoff_m),
        wall_right_m=_wall(road, -1.0, caps[1], runoff_m),
    )


def find_fault(centreline: Centreline) -> Fault | None:
    """The first reason `build_nodes` would refuse this centreline, or None."""
    road = _trace(recentre(centreline), DEFAULT_SPACING_M)
    return road if isinstance(road, Fault) else _road_fault(road, _crossings(road.x, road.y))


def length_m(centreline: Centreline) -> float:
    """Lap length along the spline."""
    return _Spline.through(centreline).length


def edge_points(nodes: RibbonNodes, distance_left_m: FloatArray | float) -> FloatArray:
    """World points (num_nodes, 2) at a distance left of the centreline; negative is right."""
    x = nodes.x_m - nodes.tangent_y * distance_left_m
    y = nodes.y_m + nodes.tangent_x * distance_left_m
    return np.stack((x, y), axis=1)


def road_edges(nodes: RibbonNodes) -> tuple[FloatArray, FloatArray]:
    """Left and right edge of the road, each (num_nodes, 2)."""
    return edge_points(nodes, nodes.road_left_m), edge_points(nodes, -nodes.road_right_m)


def wall_lines(nodes: RibbonNodes) -> tuple[FloatArray, FloatArray]:
    """Left and right wall, each (num_nodes, 2)."""
    return edge_points(nodes, nodes.wall_left_m), edge_points(nodes, -nodes.wall_right_m)


def find_crossings(nodes: RibbonNodes) -> list[Crossing]:
    """Every place where the centreline passes over itself."""
    return _crossings(nodes.x_m, nodes.y_m)


def recentre(centreline: Centreline) -> Centreline:
    """The same track about the origin if it lies more than 10 km off (UTM), shifted by whole metres; else itself."""
    x, y = centreline.x_m, centreline.y_m
    if x.size == 0 or not max(float(np.abs(x).max()), float(np.abs(y).max())) > FAR_M:
        return centreline
    shift_x = np.floor((x.min() + x.max()) * 0.5)
    shift_y = np.floor((y.min() + y.max()) * 0.5)
    return Centreline(x - shift_x, y - shift_y, centreline.width_right_m, centreline.width_left_m)


def reverse(centreline: Centreline) -> Centreline:
    """The same track driven the other way, from the same start line."""

    def turned(values: FloatArray) -> FloatArray:
        return np.roll(values[::-1], 1)

    return Centreline(
        turned(centreline.x_m),
        turned(centreline.y_m),
        width_right_m=turned(centreline.width_left_m),
        width_left_m=turned(centreline.width_right_m),
    )


def rotate_start(centreline: Centreline, start_m: float) -> Centreline:
    """The same track with the start line moved `start_m` metres forward along it.

    The new first point lies on the spline; a file point within a quarter of its spacing is replaced by it, so that
    no two points come to lie almost on each other.
    """
    spline = _Spline.through(centreline)
    laps = np.floor(start_m / spline.length)
    segment, u = spline.locate(np.array([start_m - laps * spline.length]))
    near, share = int(segment[0]), float(u[0] / spline.chord[segment[0]])
    num_points = centreline.x_m.size
    first_kept = near + (2 if share > 0.75 else 1)
    last_kept = near + num_points - (1 if share < 0.25 else 0)
    kept = np.arange(first_kept, last_kept + 1) % num_points
    x, y = spline.position(segment, u)
    right, left = spline.widths(centreline, segment, u)
    return Centreline(
        np.concatenate((x, centreline.x_m[kept])),
        np.concatenate((y, centreline.y_m[kept])),
        width_right_m=np.concatenate((right, centreline.width_right_m[kept])),
        width_left_m=np.concatenate((left, centreline.width_left_m[kept])),
    )


def with_width(centreline: Centreline, width_m: float) -> Centreline:
    """The same line with a road `width_m` wide from edge to edge, centred on it."""
    if not 0.0 < width_m < float("inf"):
        raise TrackError(f"road width is {width_m} m; it must be positive. Give metres from edge to edge.")
    half = np.full_like(centreline.x_m, 0.5 * width_m)
    return Centreline(centreline.x_m, centreline.y_m, half, half.copy())


def resample(centreline: Centreline, spacing_m: float) -> Centreline:
    """The spline through the points at uniform arc length, about `spacing_m` apart, rounded to a millimetre."""
    if not spacing_m > 0.0:
        raise TrackError(f"spacing is {spacing_m} m; it must be positive.")
    spline = _Spline.through(centreline)
    _, segment, u = spline.uniform(spacing_m, MIN_POINTS)
    x, y = spline.position(segment, u)
    right, left = spline.widths(centreline, segment, u)
    return Centreline(np.round(x, 3), np.round(y, 3), np.round(right, 3), np.round(left, 3))


@dataclass(frozen=True)
class _Spline:
    """A closed curve of cubic pieces; piece i runs from point i over u in [0, chord[i]]."""

    chord: FloatArray  # (num_points,)
    x: FloatArray  # (4, num_points), coefficients of 1, u, u², u³
    y: FloatArray
    start_m: FloatArray  # (num_points + 1,), arc length where each piece starts, then the lap's

    @classmethod
    def through(cls, centreline: Centreline) -> "_Spline":
        """The periodic spline parametrised by chord length; TrackError where points are too few or coincide."""
        x, y = centreline.x_m, centreline.y_m
        _check_arrays(centreline)
        dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
        chord = np.sqrt(dx * dx + dy * dy)
        if not chord.min() >= _SMALLEST_CHORD_M:
            point = int(np.argmin(chord))
            raise TrackError(
                f"points {point + 1} and {(point + 1) % x.size + 1} of {x.size} coincide; each may appear once. "
                "Delete one of them."
            )
        bend_x, bend_y = _second_derivatives(chord, dx / chord, dy / chord)
        pieces_x, pieces_y = _pieces(x, dx, chord, bend_x), _pieces(y, dy, chord, bend_y)
        curve = cls(chord, pieces_x, pieces_y, np.zeros(x.size + 1))
        lengths = curve.arc(np.arange(x.size), chord)
        return cls(chord, pieces_x, pieces_y, np.concatenate((np.zeros(1), np.cumsum(lengths))))

    @property
    def length(self) -> float:
        return float(self.start_m[-1])

    def position(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        def at(c: FloatArray) -> FloatArray:
            return np.asarray(c[0, i] + u * (c[1, i] + u * (c[2, i] + u * c[3, i])))

        return at(self.x), at(self.y)

    def velocity(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        def at(c: FloatArray) -> FloatArray:
            return np.asarray(c[1, i] + u * (2.0 * c[2, i] + u * (3.0 * c[3, i])))

        return at(self.x), at(self.y)

    def acceleration(self, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        def at(c: FloatArray) -> FloatArray:
            return np.asarray(2.0 * c[2, i] + u * (6.0 * c[3, i]))

        return at(self.x), at(self.y)

    def speed(self, i: IntArray, u: FloatArray) -> FloatArray:
        vx, vy = self.velocity(i, u)
        return np.asarray(np.sqrt(vx * vx + vy * vy))

    def arc(self, i: IntArray, u: FloatArray) -> FloatArray:
        """Arc length from the start of piece i to u."""
        total = np.zeros_like(u)
        for node, weight in _GAUSS:
            total = total + weight * self.speed(i, node * u)
        return total * u

    def locate(self, s: FloatArray) -> tuple[IntArray, FloatArray]:
        """Piece and parameter at arc lengths s in [0, length)."""
        last = self.chord.size - 1
        i = np.minimum(np.searchsorted(self.start_m, s, side="right") - 1, last)
        rest = s - self.start_m[i]
        u = rest / (self.start_m[i + 1] - self.start_m[i]) * self.chord[i]
        for _ in range(4):
            u = u - (self.arc(i, u) - rest) / np.maximum(self.speed(i, u), 1e-6)
            u = np.minimum(np.maximum(u, 0.0), self.chord[i])
        return i, u

    def uniform(self, spacing_m: float, fewest: int) -> tuple[float, IntArray, FloatArray]:
        """Step, pieces and parameters of nodes a uniform step apart, the first on point 0."""
        num_nodes = max(round(self.length / spacing_m), fewest)
        step = self.length / num_nodes
        i, u = self.locate(np.arange(num_nodes, dtype=np.float64) * step)
        return step, i, u

    def widths(self, centreline: Centreline, i: IntArray, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Right and left width, linear in arc length between the points."""
        share = self.arc(i, u) / (self.start_m[i + 1] - self.start_m[i])

        def between(width: FloatArray) -> FloatArray:
            return np.asarray(width[i] + share * (np.roll(width, -1)[i] - width[i]))

        return between(centreline.width_right_m), between(centreline.width_left_m)


@dataclass(frozen=True)
class _Road:
    """The nodes before walls, shape (num_nodes,) each."""

    step: float
    x: FloatArray
    y: FloatArray
    tx: FloatArray
    ty: FloatArray
    curvature: FloatArray
    left: FloatArray
    right: FloatArray
    point: IntArray  # the centreline point behind each node

    def offset(self, distance_left: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.x - self.ty * distance_left, self.y + self.tx * distance_left


def _check_arrays(centreline: Centreline) -> None:
    arrays = (centreline.x_m, centreline.y_m, centreline.width_right_m, centreline.width_left_m)
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1 or centreline.x_m.ndim != 1:
        raise TrackError(f"x, y and widths have shapes {sorted(shapes)}; they must be one-dimensional and equal.")
    if centreline.x_m.size < MIN_POINTS:
        raise TrackError(f"the centreline has {centreline.x_m.size} points; a track needs at least {MIN_POINTS}.")
    if not all(np.isfinite(array).all() for array in arrays):
        raise TrackError("the centreline has values that are not finite; every coordinate and width must be a number.")


def _pieces(value: FloatArray, rise: FloatArray, chord: FloatArray, bend: FloatArray) -> FloatArray:
    """Cubic coefficients (4, num_points) from values, differences and second derivatives at the points."""
    bend_next = np.roll(bend, -1)
    slope = rise / chord - chord * (2.0 * bend + bend_next) / 6.0
    return np.stack((value, slope, 0.5 * bend, (bend_next - bend) / (6.0 * chord)))


def _second_derivatives(chord: FloatArray, slope_x: FloatArray, slope_y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the periodic spline at the points: a cyclic tridiagonal system, opened by the Sherman-Morrison formula."""
    before = np.roll(chord, 1)
    corner = float(before[0])
    diagonal = 2.0 * (before + chord)
    gamma = -float(diagonal[0])
    diagonal[0] = diagonal[0] - gamma
    diagonal[-1] = diagonal[-1] - corner * corner / gamma
    unit = np.zeros_like(chord)
    unit[0], unit[-1] = gamma, corner
    sides = [6.0 * (slope_x - np.roll(slope_x, 1)), 6.0 * (slope_y - np.roll(slope_y, 1)), unit]
    x, y, z = _solve_tridiagonal(before.tolist(), diagonal.tolist(), chord.tolist(), sides)
    scale = 1.0 + z[0] + corner * z[-1] / gamma
    return (
        x - (x[0] + corner * x[-1] / gamma) / scale * z,
        y - (y[0] + corner * y[-1] / gamma) / scale * z,
    )


def _solve_tridiagonal(
    lower: list[float], diagonal: list[float], upper: list[float], sides: list[FloatArray]
) -> list[FloatArray]:
    """Thomas algorithm for several right-hand sides; lower[0] and upper[-1] are not used."""
    size = len(diagonal)
    ratios, pivots = [0.0] * size, [diagonal[0]] * size
    for k in range(1, size):
        ratios[k] = lower[k] / pivots[k - 1]
        pivots[k] = diagonal[k] - ratios[k] * upper[k - 1]
    solutions = []
    for side in sides:
        value = side.tolist()
        for k in range(1, size):
            value[k] = value[k] - ratios[k] * value[k - 1]
        value[-1] = value[-1] / pivots[-1]
        for k in range(size - 2, -1, -1):
            value[k] = (value[k] - upper[k] * value[k + 1]) / pivots[k]
        solutions.append(np.array(value))
    return solutions


def _trace(centreline: Centreline, spacing_m: float) -> _Road | Fault:
    """The road's nodes, or the fault that keeps it from having any."""
    spline = _Spline.through(centreline)
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
    # A cusp has no speed; the floor makes its curvature huge, which the check for tight curves refuses.
    speed = np.maximum(np.sqrt(vx * vx + vy * vy), 1e-9)
    right, left = spline.widths(centreline, i, u)
    curvature = (vx * ay - vy * ax) / (speed * speed * speed)
    return _Road(step, x, y, vx / speed, vy / speed, curvature, left, right, point=i)


def _road_fault(road: _Road, crossings: list[Crossing]) -> Fault | None:
    if len(crossings) > MAX_CROSSINGS:
        text = f"the track crosses itself {len(crossings)} times; at most {MAX_CROSSINGS} are allowed. Check the order."
        return Fault(int(road.point[crossings[0].first]), text)
    return (
        _tight_curve(road, 1.0, road.left)
        or _tight_curve(road, -1.0, road.right)
        or _crossed_edge(road, "left", road.left, crossings)
        or _crossed_edge(road, "right", -road.right, crossings)
    )


def _tight_curve(road: _Road, sign: float, width: FloatArray) -> Fault | None:
    margin = 1.0 - sign * road.curvature * width
    if margin.min() > _ROAD_MARGIN:
        return None
    node = int(np.argmin(margin))
    radius = 1.0 / abs(float(road.curvature[node]))
    text = (
        f"curve at s = {node * road.step:.0f} m has a radius of {radius:.2f} m, tighter than the half-width of "
        f"{width[node]:.2f} m on its inside. Widen the curve or narrow the road there."
    )
    return Fault(int(road.point[node]), text)


def _crossed_edge(road: _Road, side: str, distance_left: FloatArray, overpasses: list[Crossing]) -> Fault | None:
    """An edge that runs backwards or cuts itself among neighbours, and not because of an overpass."""
    x, y = road.offset(distance_left)
    advance = (np.roll(x, -1) - x) * road.tx + (np.roll(y, -1) - y) * road.ty
    nodes = [int(np.argmin(advance))] if advance.min() <= 0.0 else []
    near = _NEIGHBOUR_M / road.step
    size = x.size

    def is_overpass(cut: Crossing) -> bool:
        return any(
            _lag(cut.first, over.first, size) < near and _lag(cut.second, over.second, size) < near
            for over in overpasses
        )

    cuts = [c for c in _crossings(x, y) if _lag(c.first, c.second, size) < near]
    nodes += [c.first for c in cuts if not is_overpass(c)]
    if not nodes:
        return None
    node = nodes[0]
    text = (
        f"the {side} edge crosses itself near s = {node * road.step:.0f} m; edges may not cross among neighbours. "
        "Move the two parts of the road apart or narrow it there."
    )
    return Fault(int(road.point[node]), text)


def _lag(a: int, b: int, size: int) -> int:
    """Nodes between two nodes, the shorter way round."""
    gap = abs(a - b)
    return min(gap, size - gap)


def _near_pairs(x: FloatArray, y: FloatArray, reach: float) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Nodes i, j at most `reach` apart and at least two nodes from each other, with their squared distance.

    Goes by blocks of nodes against the nodes in the block's box, so memory stays linear in the track's length.
    """
    size = x.size
    for start in range(0, size, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, size))
        bx, by = x[rows], y[rows]
        in_box = (x >= bx.min() - reach) & (x <= bx.max() + reach) & (y >= by.min() - reach) & (y <= by.max() + reach)
        cols = np.flatnonzero(in_box)
        dx, dy = x[cols][None, :] - bx[:, None], y[cols][None, :] - by[:, None]
        square = dx * dx + dy * dy
        row, col = np.nonzero(square <= reach * reach)
        i, j = rows[row], cols[col]
        gap = np.abs(i - j)
        apart = np.minimum(gap, size - gap) >= 2
        yield i[apart], j[apart], square[row, col][apart]


def _crossings(x: FloatArray, y: FloatArray) -> list[Crossing]:
    """Where the closed polyline cuts itself."""
    dx, dy = np.roll(x, -1) - x, np.roll(y, -1) - y
    reach = 2.0 * float(np.sqrt((dx * dx + dy * dy).max()))
    found = []
    for i, j, _ in _near_pairs(x, y, reach):
        i, j = i[i < j], j[i < j]
        is_cut = _straddles(x, y, dx, dy, i, j) & _straddles(x, y, dx, dy, j, i)
        found += [Crossing(int(a), int(b)) for a, b in zip(i[is_cut], j[is_cut], strict=True)]
    return found


def _straddles(
    x: FloatArray, y: FloatArray, dx: FloatArray, dy: FloatArray, i: IntArray, j: IntArray
) -> NDArray[np.bool_]:
    """Whether segment j has its ends on different sides of segment i's line."""
    px, py = x[j] - x[i], y[j] - y[i]
    start = dx[i] * py - dy[i] * px
    end = dx[i] * (py + dy[j]) - dy[i] * (px + dx[j])
    return np.asarray((start > 0.0) != (end > 0.0))


def _leg_caps(road: _Road, crossings: list[Crossing], runoff_m: float) -> tuple[FloatArray, FloatArray]:
    """The furthest a wall may stand, left and right, to be no nearer to another leg's road than to its own."""
    size = road.x.size
    caps = np.full((2, size), np.inf)
    reach = 2.0 * (float(np.maximum(road.left, road.right).max()) + runoff_m)
    widths = np.stack((road.left, road.right))
    for i, j, square in _near_pairs(road.x, road.y, reach):
        gap = np.abs(i - j)
        way = np.minimum(gap, size - gap) * road.step
        is_leg = way * way > _LEG_RATIO * _LEG_RATIO * square
        for crossing in crossings:
            is_leg &= ~_is_at_crossing(road, crossing, reach, i, j)
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


def _is_at_crossing(road: _Road, crossing: Crossing, reach: float, i: IntArray, j: IntArray) -> NDArray[np.bool_]:
    """Whether i and j are the two levels of an overpass, as far along them as the levels overlap."""
    a, b, size = crossing.first, crossing.second, road.x.size
    sine = abs(float(road.tx[a] * road.ty[b] - road.ty[a] * road.tx[b]))
    extent = min(reach / max(sine, 1e-3), _LONGEST_CROSSING_M) / road.step

    def near(k: IntArray, node: int) -> NDArray[np.bool_]:
        gap = np.abs(k - node)
        return np.asarray(np.minimum(gap, size - gap) <= extent)

    return np.asarray((near(i, a) & near(j, b)) | (near(i, b) & near(j, a)))


def _wall(road: _Road, sign: float, cap: FloatArray, runoff_m: float) -> FloatArray:
    """Distance to the wall on one side (sign 1 left, -1 right)."""
    width = road.left if sign > 0.0 else road.right
    bend = np.maximum(sign * road.curvature, 1e-12)
    wall = np.minimum(np.minimum(width + runoff_m, cap), (1.0 - _WALL_MARGIN) / bend)
    wall = _limit_slope(np.maximum(wall, width), width, road.step)
    while True:
        x, y = road.offset(sign * wall)
        advance = (np.roll(x, -1) - x) * road.tx + (np.roll(y, -1) - y) * road.ty
        is_short = advance < _WALL_ADVANCE * road.step
        is_short = (is_short | np.roll(is_short, 1)) & (wall > width)
        if not is_short.any():
            return wall
        spare = 0.7 * (wall - width)
        pulled_in = np.where(spare > 0.01, width + spare, width)
        wall = _limit_slope(np.where(is_short, pulled_in, wall), width, road.step)


def _limit_slope(wall: FloatArray, width: FloatArray, step: float) -> FloatArray:
    """Pull walls inward until they open no faster than the slope allows, but not onto the road."""
    rise = _WALL_SLOPE * step
    shift = 1
    while shift < wall.size and shift * rise <= wall.max() - width.min():
        wall = np.minimum(wall, np.minimum(np.roll(wall, shift), np.roll(wall, -shift)) + shift * rise)
        shift *= 2
    return np.maximum(wall, width)
