"""Draws random polygons with the features of race tracks, from which the generator makes tracks.

All randomness comes from `Random`, and arithmetic is add, multiply, divide and square root in a fixed order, so a seed
gives the same polygon on every machine.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hotlap.tracks.geometry.clothoid_path import PI, PolygonCorner, angle_of, sin_cos

Point = tuple[float, float]


class Random:
    """Draws from one seeded stream of uniform numbers, the part of NumPy that never changes between versions."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.Generator(np.random.PCG64(list(seed)))

    def between(self, low: float, high: float) -> float:
        """A number in [low, high)."""
        return low + (high - low) * float(self._rng.random())

    def below(self, count: int) -> int:
        """A whole number in [0, count)."""
        return int(float(self._rng.random()) * count)

    def happens(self, chance: float) -> bool:
        """True with this probability."""
        return float(self._rng.random()) < chance


class Style(NamedTuple):
    """The character of a track to be generated."""

    length_m: float
    half_width_m: float  # maximum along the lap
    technical: float  # 0: long straights and sweepers; 1: slow and twisty
    min_radius_m: float

    @property
    def hairpin_radius_m(self) -> float:
        """Smallest radius whose two legs leave room for both runoffs between them."""
        return max(10.0, self.half_width_m + 6.5)


class EdgeFrame(NamedTuple):
    """An edge of the polygon: origin, direction, and left normal times the chosen side."""

    origin: Point
    along: Point
    across: Point
    length_m: float

    def corner(self, along_m: float, across_m: float, radius_m: float) -> PolygonCorner:
        """The corner at these edge coordinates."""
        return PolygonCorner(
            self.origin[0] + along_m * self.along[0] + across_m * self.across[0],
            self.origin[1] + along_m * self.along[1] + across_m * self.across[1],
            radius_m,
        )


def unit_vector(turns: float) -> Point:
    """The unit vector at this many turns (in [0, 1]) anticlockwise from -x."""
    sine, cosine = sin_cos(np.array([(turns - 0.5) * 2.0 * PI]))
    return float(cosine[0]), float(sine[0])


def draw_base(rng: Random, style: Style) -> list[PolygonCorner]:
    """A simple anticlockwise polygon of about the style's length, randomly stretched and rotated."""
    points = _cells_of(rng, style) if rng.happens(0.2 + 0.5 * style.technical) else _star_of(rng, style)
    stretch = rng.between(1.0, 1.9)
    cosine, sine = unit_vector(rng.between(0.0, 1.0))
    points = [(stretch * (x * cosine - y * sine), x * sine + y * cosine) for x, y in points]
    cosine, sine = unit_vector(rng.between(0.0, 1.0))
    scale = style.length_m / perimeter(points)
    points = [(scale * (x * cosine - y * sine), scale * (x * sine + y * cosine)) for x, y in points]
    return [
        PolygonCorner(x, y, draw_radius(rng, style, turn_at(points[i - 1], (x, y), points[(i + 1) % len(points)])))
        for i, (x, y) in enumerate(points)
    ]


def draw_radius(rng: Random, style: Style, turn_rad: float) -> float:
    """A radius from one of the classes slow, medium, fast; twisty and short tracks have more slow ones."""
    chance = rng.between(0.0, 1.0)
    slow = 0.5 * style.technical + 0.1
    if chance < slow:
        radius_m = rng.between(12.0, 32.0)
    elif chance < slow + 0.25:
        radius_m = rng.between(32.0, 80.0)
    else:
        radius_m = rng.between(80.0, 140.0 + 0.03 * style.length_m)
    # A slight turn on a small radius would look and drive like a kink.
    arc_m = rng.between(20.0, 50.0 + 0.015 * style.length_m)
    return max(radius_m, arc_m / max(turn_rad, 0.05), style.min_radius_m + 1.0)


def add_feature(rng: Random, style: Style, corners: list[PolygonCorner]) -> list[PolygonCorner]:
    """The polygon with a feature on one of its edges, more often a long one: a twisty or a flowing one."""
    edges = [_frame(corners, i, 1.0) for i in range(len(corners))]
    pick = max((rng.below(len(edges)) for _ in range(3)), key=lambda i: edges[i].length_m)
    frame = _frame(corners, pick, 1.0 if rng.happens(0.5) else -1.0)
    makers = _TWISTY if rng.happens(0.25 + 0.6 * style.technical) else _FLOWING
    new = makers[rng.below(len(makers))](rng, style, frame)
    return corners[: pick + 1] + new + corners[pick + 1 :]


def _star_of(rng: Random, style: Style) -> list[Point]:
    count = 4 + rng.below(3 + int(5.0 * style.technical + 0.0005 * style.length_m))
    return draw_star(rng, count, rng.between(0.35, 0.8))


def draw_star(rng: Random, count: int, depth: float) -> list[Point]:
    """Points around a centre at uneven angles and distances; the nearest may lie `depth` of the way to the centre."""
    gaps = [rng.between(0.45, 1.0) for _ in range(count)]
    total = 0.0
    for gap in gaps:
        total += gap
    points: list[Point] = []
    turns = 0.0
    for gap in gaps:
        cosine, sine = unit_vector(turns / total)
        distance = 1.0 - depth * rng.between(0.0, 1.0)
        points.append((distance * cosine, distance * sine))
        turns += gap
    return points


def _cells_of(rng: Random, style: Style) -> list[Point]:
    side_m = rng.between(75.0, 150.0) - 25.0 * style.technical
    return draw_cells(rng, max(3, min(14, int(0.5 * style.length_m / side_m))))


def draw_cells(rng: Random, num_wanted: int) -> list[Point]:
    """The outline of cells grown on a grid, its corners jittered: concave in ways that star shapes cannot be."""
    cells = {(0, 0)}
    for _ in range(40):
        if len(cells) >= num_wanted:
            break
        grown = sorted(cells)[rng.below(len(cells))]
        step = ((1, 0), (0, 1), (-1, 0), (0, -1))[rng.below(4)]
        larger = cells | {(grown[0] + step[0], grown[1] + step[1])}
        if _outline(larger):
            cells = larger
    jitter = rng.between(0.1, 0.3)
    points: list[Point] = []
    outline = _outline(cells)
    for i, (x, y) in enumerate(outline):
        before, after = outline[i - 1], outline[(i + 1) % len(outline)]
        is_corner = (x - before[0]) * (after[1] - y) != (y - before[1]) * (after[0] - x)
        if is_corner or rng.happens(0.2):
            points.append((x + rng.between(-jitter, jitter), y + rng.between(-jitter, jitter)))
    return points


def _sides(cells: set[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The cells' outer sides as (from, to), cells on the left."""
    sides = []
    for x, y in sorted(cells):
        ring = ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1))
        beside = ((x, y - 1), (x + 1, y), (x, y + 1), (x - 1, y))
        sides += [(ring[k], ring[(k + 1) % 4]) for k in range(4) if beside[k] not in cells]
    return sides


def _outline(cells: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """The grid points round the cells; empty where cells touch by a corner only, or enclose a hole."""
    sides = _sides(cells)
    following = dict(sides)
    outline = [sides[0][0]]
    if len(following) == len(sides):
        while following[outline[-1]] != outline[0]:
            outline.append(following[outline[-1]])
    return outline if len(outline) == len(sides) else []


def turn_at(before: Point, at: Point, after: Point) -> float:
    """The absolute turning angle (rad) at a point."""
    ax, ay, bx, by = at[0] - before[0], at[1] - before[1], after[0] - at[0], after[1] - at[1]
    norm = float(np.sqrt((ax * ax + ay * ay) * (bx * bx + by * by)))
    return abs(float(angle_of(np.array([(ax * bx + ay * by) / norm]), np.array([(ax * by - ay * bx) / norm]))[0]))


def perimeter(points: list[Point]) -> float:
    """Length of the closed polygon."""
    total = 0.0
    for i, (x, y) in enumerate(points):
        dx, dy = x - points[i - 1][0], y - points[i - 1][1]
        total += float(np.sqrt(dx * dx + dy * dy))
    return total


def _frame(corners: list[PolygonCorner], index: int, side: float) -> EdgeFrame:
    a, b = corners[index], corners[(index + 1) % len(corners)]
    return edge_frame((a.x_m, a.y_m), (b.x_m, b.y_m), side)


def edge_frame(a: Point, b: Point, side: float) -> EdgeFrame:
    """The edge from one point to another; `across` is to its left for side 1, to its right for -1."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    length = float(np.sqrt(dx * dx + dy * dy))
    ux, uy = dx / length, dy / length
    return EdgeFrame(a, (ux, uy), (-uy * side, ux * side), length)


def _hairpin(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A hairpin at the end of a detour to one side of the edge."""
    radius = rng.between(style.hairpin_radius_m, max(18.0, style.hairpin_radius_m + 2.0))
    depth = rng.between(50.0, 70.0 + 0.04 * style.length_m)
    # The legs meet in a vertex far beyond the bend, so that one corner of up to 170 degrees has a single apex.
    taper = rng.between(0.09, 0.35)
    vertex = depth + radius * (float(np.sqrt(1.0 + taper * taper)) / taper - 1.0)
    width = 2.0 * taper * vertex
    lean = rng.between(-0.6, 0.6) * vertex
    start = rng.between(0.1, 0.9) * max(edge.length_m - width, 0.0)
    return [
        edge.corner(start, 0.0, rng.between(style.min_radius_m + 2.0, 50.0)),
        edge.corner(start + 0.5 * width + lean, vertex, radius),
        edge.corner(start + width, 0.0, rng.between(style.min_radius_m + 2.0, 50.0)),
    ]


def _spike(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A detour to one sharp corner."""
    radius = max(rng.between(12.0, 22.0), style.min_radius_m + 1.0)
    depth = rng.between(60.0, 90.0 + 0.04 * style.length_m)
    width = rng.between(0.7, 1.3) * depth
    start = rng.between(0.1, 0.9) * max(edge.length_m - width, 0.0)
    wide = rng.between(18.0, 60.0)
    return [
        edge.corner(start, 0.0, wide),
        edge.corner(start + rng.between(0.1, 0.9) * width, depth, radius),
        edge.corner(start + width, 0.0, wide),
    ]


def _chicane(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A quick flick to one side."""
    radius = max(rng.between(12.0, 30.0), style.min_radius_m + 1.0)
    forward, sideways = radius * rng.between(0.7, 1.3), radius * rng.between(0.9, 1.4)
    start = rng.between(0.2, 0.7) * edge.length_m
    return [edge.corner(start, 0.0, radius), edge.corner(start + forward, sideways, radius)]


def _bus_stop(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A flick to one side and back."""
    radius = max(rng.between(11.0, 24.0), style.min_radius_m + 1.0)
    forward, sideways = radius * rng.between(0.6, 1.2), radius * rng.between(0.9, 1.3)
    stay = radius * rng.between(1.2, 3.0)
    start = rng.between(0.2, 0.7) * edge.length_m
    return [
        edge.corner(start, 0.0, radius),
        edge.corner(start + forward, sideways, radius),
        edge.corner(start + forward + stay, sideways, radius),
        edge.corner(start + 2.0 * forward + stay, 0.0, radius),
    ]


def _esses(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A flowing left-right-left."""
    count = 2 + rng.below(4)
    pitch = rng.between(45.0, 60.0 + 50.0 * (1.0 - style.technical))
    swing = pitch * rng.between(0.2, 0.45)
    radius = pitch * rng.between(0.6, 1.0)
    start = rng.between(0.1, 0.9) * max(edge.length_m - pitch * (count + 1), 0.0)
    return [edge.corner(start + pitch * (k + 1), swing if k % 2 == 0 else -swing, radius) for k in range(count)]


def _bend(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A fast bend between two straights."""
    sideways = rng.between(0.08, 0.3) * edge.length_m
    return [edge.corner(rng.between(0.3, 0.7) * edge.length_m, sideways, rng.between(60.0, 200.0))]


def _loop(rng: Random, style: Style, edge: EdgeFrame) -> list[PolygonCorner]:
    """A wide detour of two long corners."""
    width = rng.between(0.3, 0.7) * edge.length_m
    depth = rng.between(0.3, 0.9) * width
    start = rng.between(0.1, 0.9) * (edge.length_m - width)
    entry, far = rng.between(20.0, 90.0), rng.between(30.0, 120.0)
    return [
        edge.corner(start, 0.0, entry),
        edge.corner(start + rng.between(0.0, 0.3) * width, depth, far),
        edge.corner(start + rng.between(0.7, 1.0) * width, depth, far),
        edge.corner(start + width, 0.0, entry),
    ]


_Makers = tuple[Callable[[Random, Style, EdgeFrame], list[PolygonCorner]], ...]
_TWISTY: _Makers = (_hairpin, _hairpin, _hairpin, _spike, _chicane, _bus_stop, _esses)
_FLOWING: _Makers = (_esses, _bend, _bend, _loop, _spike, _hairpin)
