"""Generates tracks like real circuits: 1 to 7 km, straights up to 1.2 km, hairpins, a road of uneven width.

All randomness comes from `Random`, and arithmetic is add, multiply, divide and square root in a fixed order, so a seed
gives the same circuit on every machine.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hotlap.errors import TrackError
from hotlap.tracks.generation.circuit_layouts import (
    MAX_STRAIGHT_M,
    MIN_RADIUS_M,
    CircuitStyle,
    add_bends,
    add_detour,
    draw_circuit_base,
    slow_down,
    split_corner,
)
from hotlap.tracks.generation.circuit_widths import draw_half_widths, draw_sides, draw_width_style, fit_to_bends
from hotlap.tracks.generation.generator import (
    LINE_AT,
    MIN_START_STRAIGHT_M,
    SPACING_M,
    first_valid,
    rounded_centreline,
    sine_wave,
)
from hotlap.tracks.generation.layouts import Random
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.clothoid_path import ClothoidPath, FloatArray, PolygonCorner, round_corners

MIN_LENGTH_M, MAX_LENGTH_M = 1000.0, 7000.0
KINK_WAVES_M = 60.0, 180.0
MAX_KINK_M = 1.5
_STREAM = (1,)
_CHECK_SPACING_M = 9.0
_CHECK_SLACK_M = 1.0  # for the error of coarse points
_CLEARANCE_M = 3.0, 14.0  # between the edges of two parts of the road
# Parts that are near each other along the road may be this close, and as much farther for each metre between them.
_FIRST_CHECKED_M, _LEAST_APART_M, _APART_SLOPE = 26.0, 6.0, 0.12
_TARGET_M = 1100.0, 7200.0  # length of a lap that detours add up to
_DEPTH_M = 50.0, 700.0  # of a detour
_DETOURS_EVERY_M = 1200.0
_BENDS_EVERY_M = 700.0, 3000.0
_KINK_MARGIN = 5  # points before and after a bend over which kinks fade


def generate_circuit(seed: int) -> Centreline:
    """The circuit of this seed: other tracks than those of `generate`."""
    return first_valid(seed, _STREAM, _attempt)


def _attempt(rng: Random) -> Centreline | None:
    widths = draw_width_style(rng)
    path = _draw_path(rng, widths.most_m + rng.between(*_CLEARANCE_M))
    if path is None:
        return None
    start_m = path.point_on_longest_straight(LINE_AT)
    x_m, y_m = path.sample(start_m, SPACING_M)
    s_m: FloatArray = np.asarray(start_m + np.arange(len(x_m)) * (path.length_m / len(x_m)), dtype=np.float64)
    s_m = np.where(s_m >= path.length_m, s_m - path.length_m, s_m)
    half_m = draw_half_widths(rng, widths, path, s_m)
    x_m, y_m = _add_kinks(rng, path.length_m, x_m, y_m)
    right_m, left_m = fit_to_bends(x_m, y_m, *draw_sides(rng, path.length_m, half_m))
    return rounded_centreline(x_m, y_m, right_m, left_m)


def _draw_path(rng: Random, apart_m: float) -> ClothoidPath | None:
    """A circuit's line, parts of which are `apart_m` from each other."""
    fraction = rng.between(0.0, 1.0)
    target_m = _TARGET_M[0] + (_TARGET_M[1] - _TARGET_M[0]) * 0.5 * (fraction + float(np.sqrt(fraction)))
    style = CircuitStyle(target_m * rng.between(0.4, 0.9), rng.between(0.0, 1.0), rng.happens(0.7))
    corners = draw_circuit_base(rng, style)
    path = _checked_path(corners, apart_m)
    if path is None:
        return None
    num_detours = 2 + rng.below(2 + int(target_m / _DETOURS_EVERY_M))
    num_splits = rng.below(3)
    num_bends = rng.below(1 + int(target_m / rng.between(*_BENDS_EVERY_M)))
    for change in (*num_detours * ("detour",), *num_splits * ("split",), *num_bends * ("bends",), "slow down"):
        candidate = _change(rng, change, style, corners, target_m - path.length_m)
        candidate_path = _checked_path(candidate, apart_m)
        if candidate_path is not None:
            corners, path = candidate, candidate_path
    is_valid = path.length_m >= MIN_LENGTH_M and float(np.max(path.straight_length_m)) <= MAX_STRAIGHT_M
    return path if is_valid else None


def _change(
    rng: Random, change: str, style: CircuitStyle, corners: list[PolygonCorner], missing_m: float
) -> list[PolygonCorner]:
    """The polygon after one change; `missing_m` is how much longer it should be."""
    if change == "detour":
        depth_m = rng.between(0.2, 0.5) * missing_m
        return add_detour(rng, style, corners, min(max(depth_m, _DEPTH_M[0]), _DEPTH_M[1]))
    if change == "split":
        return split_corner(rng, corners)
    return add_bends(rng, style, corners) if change == "bends" else slow_down(rng, corners)


def _checked_path(corners: list[PolygonCorner], apart_m: float) -> ClothoidPath | None:
    """The rounded polygon, or None where it breaks a rule."""
    try:
        path = round_corners(corners)
    except TrackError:
        return None
    if path.length_m > MAX_LENGTH_M or np.max(path.straight_length_m) < MIN_START_STRAIGHT_M:
        return None
    if np.min(path.radii_m) < MIN_RADIUS_M:
        return None
    x_m, y_m = path.sample(0.0, _CHECK_SPACING_M)
    return path if _is_clear(x_m, y_m, path.length_m, apart_m + _CHECK_SLACK_M) else None


def _is_clear(x_m: FloatArray, y_m: FloatArray, length_m: float, apart_m: float) -> bool:
    """Whether parts of the road keep their distance, so that it never crosses itself; neighbours may be closer."""
    num_points = len(x_m)
    step_m = length_m / num_points
    lags = np.arange(int(_FIRST_CHECKED_M / step_m) + 1, num_points // 2 + 1)
    needed_m = np.minimum(_LEAST_APART_M + _APART_SLOPE * step_m * lags, apart_m)[:, None]
    dx = sliding_window_view(np.concatenate((x_m, x_m)), num_points)[lags[0] : lags[-1] + 1] - x_m
    dy = sliding_window_view(np.concatenate((y_m, y_m)), num_points)[lags[0] : lags[-1] + 1] - y_m
    return not bool(np.any(dx * dx + dy * dy < needed_m * needed_m))


def _add_kinks(rng: Random, length_m: float, x_m: FloatArray, y_m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The line moved sideways a little, here more and there less: a surveyed straight is never quite straight."""
    fraction = rng.between(0.0, 1.0)
    num_points = len(x_m)
    waves = int(length_m / rng.between(*KINK_WAVES_M))
    size = 0.5 + 0.5 * sine_wave(num_points, 2 + rng.below(6), rng.between(0.0, 1.0))
    sideways_m = MAX_KINK_M * fraction * fraction * size * sine_wave(num_points, waves, rng.between(0.0, 1.0))
    dx, dy = np.roll(x_m, -1) - np.roll(x_m, 1), np.roll(y_m, -1) - np.roll(y_m, 1)
    step_m = np.sqrt(dx * dx + dy * dy)
    dx, dy = dx / step_m, dy / step_m
    # Tight bends are left as they are: moved inwards, they would be much tighter.
    turning = np.abs(dx * np.roll(dy, -1) - dy * np.roll(dx, -1))
    turned = np.zeros(num_points)
    for shift in range(-_KINK_MARGIN, _KINK_MARGIN + 1):
        turned = turned + np.roll(turning, shift)
    sideways_m = sideways_m / (1.0 + 4.0 * turned * turned)
    return x_m - sideways_m * dy, y_m + sideways_m * dx
