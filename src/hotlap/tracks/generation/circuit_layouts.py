"""Draws random polygons with the corners of race circuits, from which the circuit generator makes roads.

A polygon begins as a simple shape of a few long edges. Then corners get a second apex, and edges get detours
and bends: hairpins, chicanes, esses, banks of sweepers. Their radii are drawn in metres, the same on circuits of any
length.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hotlap.tracks.generation.layouts import (
    EdgeFrame,
    Point,
    Random,
    draw_cells,
    draw_star,
    edge_frame,
    perimeter,
    turn_at,
    unit_vector,
)
from hotlap.tracks.geometry.clothoid_path import PolygonCorner

MIN_RADIUS_M = 6.0
MAX_STRAIGHT_M = 1200.0
_SLOW_TURN_RAD = 1.9  # a base corner that turns farther than this may be a hairpin
_SHARP_TURN_RAD = 0.7
_LONG_EDGE_M = 250.0


class CircuitStyle(NamedTuple):
    """The character of a circuit to be generated."""

    length_m: float  # of the polygon before detours are added
    slow: float  # 0: sweepers and kinks; 1: hairpins and chicanes
    has_long_straight: bool  # the longest edge gets no detours


def draw_circuit_base(rng: Random, style: CircuitStyle) -> list[PolygonCorner]:
    """A simple polygon of about the style's length, randomly stretched, rotated and mirrored."""
    points = _draw_outline(rng, style)
    stretch = _between_squared(rng, 1.0, 3.6)
    cosine, sine = unit_vector(rng.between(0.0, 1.0))
    points = [(stretch * (x * cosine - y * sine), x * sine + y * cosine) for x, y in points]
    cosine, sine = unit_vector(rng.between(0.0, 1.0))
    scale = style.length_m / perimeter(points)
    side = 1.0 if rng.happens(0.5) else -1.0
    points = [(scale * (x * cosine - y * sine), side * scale * (x * sine + y * cosine)) for x, y in points]
    corners = []
    for i, at in enumerate(points):
        turn_rad = turn_at(points[i - 1], at, points[(i + 1) % len(points)])
        corners.append(PolygonCorner(*at, _draw_radius(rng, style, turn_rad)))
    return corners


def _draw_outline(rng: Random, style: CircuitStyle) -> list[Point]:
    if rng.happens(0.3):
        return draw_cells(rng, max(2, min(7, int(style.length_m / rng.between(400.0, 800.0)))))
    return draw_star(rng, 3 + rng.below(4 + int(style.length_m / 1500.0)), rng.between(0.3, 0.85))


def _draw_radius(rng: Random, style: CircuitStyle, turn_rad: float) -> float:
    """A radius from one of the classes slow, medium, fast."""
    slow = 0.1 + 0.4 * style.slow
    if turn_rad > _SLOW_TURN_RAD and rng.happens(0.2 + 0.5 * slow):
        return _draw_hairpin_radius(rng)
    chance = rng.between(0.0, 1.0)
    if chance < slow:
        radius_m = rng.between(10.0, 28.0)
    elif chance < slow + 0.35:
        radius_m = rng.between(28.0, 90.0)
    else:
        radius_m = rng.between(70.0, 150.0) if turn_rad > _SHARP_TURN_RAD else rng.between(100.0, 300.0)
    # A slight turn on a small radius would look and drive like a kink.
    return max(radius_m, rng.between(10.0, 60.0) / max(turn_rad, 0.05))


def _draw_hairpin_radius(rng: Random) -> float:
    return _between_squared(rng, MIN_RADIUS_M + 0.1, 24.0)


def _between_squared(rng: Random, low: float, high: float) -> float:
    """A number in [low, high), more often a low one."""
    fraction = rng.between(0.0, 1.0)
    return low + (high - low) * fraction * fraction


def split_corner(rng: Random, corners: list[PolygonCorner]) -> list[PolygonCorner]:
    """The polygon with a corner cut off, more often a sharp one: two apexes, whose radius opens or tightens."""
    count = len(corners)
    index = max((rng.below(count) for _ in range(2)), key=lambda i: _turn_of(corners, i))
    before, at, after = corners[index - 1], corners[index], corners[(index + 1) % count]
    entry, leaving = _edge(before, at), _edge(at, after)
    size_m = rng.between(25.0, 160.0)
    cut_in_m = min(size_m * rng.between(0.5, 1.5), 0.45 * entry.length_m)
    cut_out_m = min(size_m * rng.between(0.5, 1.5), 0.45 * leaving.length_m)
    tight_m, wide_m = rng.between(10.0, 0.5 * size_m + 10.0), rng.between(0.4, 1.5) * size_m + 10.0
    first_m, second_m = (tight_m, wide_m) if rng.happens(0.5) else (wide_m, tight_m)
    new = [entry.corner(entry.length_m - cut_in_m, 0.0, first_m), leaving.corner(cut_out_m, 0.0, second_m)]
    return corners[:index] + new + corners[index + 1 :]


def slow_down(rng: Random, corners: list[PolygonCorner]) -> list[PolygonCorner]:
    """The polygon with a slow corner at the end of some of its long straights."""
    slower = []
    for i, corner in enumerate(corners):
        is_chosen = rng.happens(0.3)
        radius_m = rng.between(9.0, 24.0)
        is_sharp = _turn_of(corners, i) > _SHARP_TURN_RAD
        if is_chosen and is_sharp and _edge(corners[i - 1], corner).length_m > _LONG_EDGE_M:
            slower.append(corner._replace(radius_m=min(radius_m, corner.radius_m)))
        else:
            slower.append(corner)
    return slower


def _turn_of(corners: list[PolygonCorner], index: int) -> float:
    before, at, after = corners[index - 1], corners[index], corners[(index + 1) % len(corners)]
    return turn_at((before.x_m, before.y_m), (at.x_m, at.y_m), (after.x_m, after.y_m))


def add_detour(rng: Random, style: CircuitStyle, corners: list[PolygonCorner], depth_m: float) -> list[PolygonCorner]:
    """The polygon with a detour of this depth on one of its edges, more often a long one."""
    makers = _SLOW_DETOURS if rng.happens(0.2 + 0.6 * style.slow) else _FAST_DETOURS
    pick, edge = _pick_edge(rng, corners, spares_longest=style.has_long_straight)
    return corners[: pick + 1] + makers[rng.below(len(makers))](rng, edge, depth_m) + corners[pick + 1 :]


def add_bends(rng: Random, style: CircuitStyle, corners: list[PolygonCorner]) -> list[PolygonCorner]:
    """The polygon with bends along one of its edges, more often a long one."""
    makers = _SLOW_BENDS if rng.happens(0.2 + 0.6 * style.slow) else _FAST_BENDS
    pick, edge = _pick_edge(rng, corners, spares_longest=style.has_long_straight and makers is _FAST_BENDS)
    return corners[: pick + 1] + makers[rng.below(len(makers))](rng, edge) + corners[pick + 1 :]


def _pick_edge(rng: Random, corners: list[PolygonCorner], *, spares_longest: bool) -> tuple[int, EdgeFrame]:
    """An edge's index and frame, to one of its sides."""
    count = len(corners)
    lengths_m = [_edge(corners[i], corners[(i + 1) % count]).length_m for i in range(count)]
    longest = lengths_m.index(max(lengths_m))
    is_too_long = lengths_m[longest] > MAX_STRAIGHT_M
    if spares_longest:
        lengths_m[longest] = 0.0
    pick = max((rng.below(count) for _ in range(2 + rng.below(2))), key=lambda i: lengths_m[i])
    pick = longest if is_too_long else pick
    return pick, _edge(corners[pick], corners[(pick + 1) % count], 1.0 if rng.happens(0.5) else -1.0)


def _edge(a: PolygonCorner, b: PolygonCorner, side: float = 1.0) -> EdgeFrame:
    return edge_frame((a.x_m, a.y_m), (b.x_m, b.y_m), side)


def _place(rng: Random, edge: EdgeFrame, size_m: float) -> float:
    """Where a feature begins: often near the end of the edge, so that a straight leads to it, else near its start."""
    free_m = max(edge.length_m - size_m, 0.0)
    chance = rng.between(0.0, 1.0)
    margin_m = min(rng.between(20.0, 140.0), 0.5 * free_m)
    if chance < 0.45:
        return free_m - margin_m
    return margin_m if chance < 0.65 else rng.between(0.1, 0.9) * free_m


def _hairpin(rng: Random, edge: EdgeFrame, depth_m: float) -> list[PolygonCorner]:
    """A hairpin at the end of a detour."""
    return _finger(rng, edge, depth_m, _draw_hairpin_radius(rng), rng.between(0.05, 0.35))


def _long_corner(rng: Random, edge: EdgeFrame, depth_m: float) -> list[PolygonCorner]:
    """A detour round a long corner with one apex, of nearly half a turn."""
    return _finger(rng, edge, depth_m, min(rng.between(18.0, 100.0), 0.6 * depth_m), rng.between(0.04, 0.5))


def _finger(rng: Random, edge: EdgeFrame, depth_m: float, radius_m: float, taper: float) -> list[PolygonCorner]:
    """A detour to one side of the edge and back, round one corner."""
    # The legs meet in a vertex far beyond the bend, so that one corner of up to 175 degrees has a single apex.
    vertex_m = depth_m + radius_m * (float(np.sqrt(1.0 + taper * taper)) / taper - 1.0)
    width_m = 2.0 * taper * vertex_m
    lean_m = rng.between(-0.6, 0.6) * vertex_m
    start_m = _place(rng, edge, width_m)
    return [
        edge.corner(start_m, 0.0, rng.between(9.0, 90.0)),
        edge.corner(start_m + 0.5 * width_m + lean_m, vertex_m, radius_m),
        edge.corner(start_m + width_m, 0.0, rng.between(9.0, 90.0)),
    ]


def _u_turn(rng: Random, edge: EdgeFrame, depth_m: float) -> list[PolygonCorner]:
    """A detour round half a turn with two apexes."""
    radius_m = min(rng.between(14.0, 80.0), 0.4 * depth_m)
    far_m = radius_m * rng.between(2.0, 2.8)
    width_m = far_m + depth_m * rng.between(0.0, 0.6)
    start_m = _place(rng, edge, width_m)
    middle_m = start_m + 0.5 * width_m + rng.between(-0.4, 0.4) * depth_m
    return [
        edge.corner(start_m, 0.0, rng.between(10.0, 80.0)),
        edge.corner(middle_m - 0.5 * far_m, depth_m + rng.between(-0.2, 0.2) * far_m, radius_m * rng.between(0.8, 1.2)),
        edge.corner(middle_m + 0.5 * far_m, depth_m + rng.between(-0.2, 0.2) * far_m, radius_m * rng.between(0.8, 1.2)),
        edge.corner(start_m + width_m, 0.0, rng.between(10.0, 80.0)),
    ]


def _spike(rng: Random, edge: EdgeFrame, depth_m: float) -> list[PolygonCorner]:
    """A detour to one sharp corner."""
    width_m = rng.between(0.6, 1.4) * depth_m
    start_m = _place(rng, edge, width_m)
    return [
        edge.corner(start_m, 0.0, rng.between(12.0, 80.0)),
        edge.corner(start_m + rng.between(-0.1, 1.1) * width_m, depth_m, rng.between(9.0, 24.0)),
        edge.corner(start_m + width_m, 0.0, rng.between(12.0, 80.0)),
    ]


def _chicane(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A quick flick to one side."""
    first_m, second_m = rng.between(8.0, 30.0), rng.between(8.0, 30.0)
    forward_m = (first_m + second_m) * rng.between(0.0, 0.9)
    sideways_m = (first_m + second_m) * rng.between(0.5, 1.3)
    start_m = _place(rng, edge, forward_m)
    return [edge.corner(start_m, 0.0, first_m), edge.corner(start_m + forward_m, sideways_m, second_m)]


def _bus_stop(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A flick to one side and back."""
    radius_m = rng.between(7.0, 24.0)
    forward_m, sideways_m = radius_m * rng.between(0.6, 1.5), radius_m * rng.between(0.8, 1.4)
    stay_m = radius_m * rng.between(1.4, 4.0)
    start_m = _place(rng, edge, 2.0 * forward_m + stay_m)
    return [
        edge.corner(start_m, 0.0, radius_m),
        edge.corner(start_m + forward_m, sideways_m, radius_m),
        edge.corner(start_m + forward_m + stay_m, sideways_m, radius_m),
        edge.corner(start_m + 2.0 * forward_m + stay_m, 0.0, radius_m),
    ]


def _fast_chicane(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A swerve to one side at speed."""
    radius_m = rng.between(30.0, 110.0)
    forward_m, sideways_m = radius_m * rng.between(0.6, 1.1), radius_m * rng.between(0.2, 0.5)
    start_m = _place(rng, edge, forward_m)
    return [edge.corner(start_m, 0.0, radius_m), edge.corner(start_m + forward_m, sideways_m, radius_m)]


def _esses(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A flowing left-right-left."""
    return _swing(rng, edge, 2 + rng.below(4), rng.between(40.0, 120.0))


def _sweepers(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A bank of fast bends to both sides."""
    return _swing(rng, edge, 2 + rng.below(4), rng.between(110.0, 300.0))


def _swing(rng: Random, edge: EdgeFrame, count: int, pitch_m: float) -> list[PolygonCorner]:
    start_m = rng.between(0.0, 1.0) * max(edge.length_m - pitch_m * (count + 1), 0.0)
    corners = []
    for k in range(count):
        sideways_m = pitch_m * rng.between(0.12, 0.45) * (1.0 if k % 2 == 0 else -1.0)
        radius_m = pitch_m * rng.between(0.5, 1.2)
        corners.append(edge.corner(start_m + pitch_m * (k + rng.between(0.8, 1.2)), sideways_m, radius_m))
    return corners


def _bend(rng: Random, edge: EdgeFrame) -> list[PolygonCorner]:
    """A fast bend between two straights."""
    sideways_m = rng.between(0.04, 0.3) * edge.length_m
    return [edge.corner(rng.between(0.25, 0.75) * edge.length_m, sideways_m, rng.between(60.0, 300.0))]


def _loop(rng: Random, edge: EdgeFrame, depth_m: float) -> list[PolygonCorner]:
    """A wide detour of four corners."""
    width_m = min(rng.between(0.4, 2.0) * depth_m, 0.7 * edge.length_m)
    start_m = rng.between(0.1, 0.9) * (edge.length_m - width_m)
    return [
        edge.corner(start_m, 0.0, rng.between(12.0, 100.0)),
        edge.corner(start_m + rng.between(0.0, 0.3) * width_m, depth_m, rng.between(12.0, 140.0)),
        edge.corner(start_m + rng.between(0.7, 1.0) * width_m, depth_m, rng.between(12.0, 140.0)),
        edge.corner(start_m + width_m, 0.0, rng.between(12.0, 100.0)),
    ]


_Detours = tuple[Callable[[Random, EdgeFrame, float], list[PolygonCorner]], ...]
_SLOW_DETOURS: _Detours = (*3 * (_hairpin,), *3 * (_long_corner,), _u_turn, _spike, _loop)
_FAST_DETOURS: _Detours = (*4 * (_long_corner,), _u_turn, _loop)
_Bends = tuple[Callable[[Random, EdgeFrame], list[PolygonCorner]], ...]
_SLOW_BENDS: _Bends = (_chicane, _chicane, _bus_stop, _esses)
_FAST_BENDS: _Bends = (_fast_chicane, _esses, _sweepers, _sweepers, _bend)
