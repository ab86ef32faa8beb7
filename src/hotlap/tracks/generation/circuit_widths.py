"""Draws the widths of a circuit's road: each straight and corner has its own, and a bend none it has no room for."""

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from hotlap.tracks.generation.generator import sine_wave
from hotlap.tracks.generation.layouts import Random
from hotlap.tracks.geometry.clothoid_path import ClothoidPath, FloatArray
from hotlap.tracks.geometry.spline import Spline

MIN_WIDTH_M, MAX_WIDTH_M = 7.0, 20.0
_MAX_SPREAD = 0.7
_NARROWER = 0.6  # how much narrower a part may be, as a fraction of how much wider
_MAX_SLOPE = 0.09  # metres of half-width per metre of road
_MAX_ROOM_SLOPE = 0.5  # the same on the inside of a bend that leaves less room
_ROOM_FRACTION = 0.88  # of the room inside a bend that the road may take; points are coarser than the nodes of a road
_NEIGHBOUR_M = 160.0
_MIN_STRAIGHT_M = 50.0  # with a width of its own
_MAX_SIDE_M = 0.4  # how far the line may lie beside the road's middle
_SHORTEST_WAVE_M = 100.0
_NUM_WAVES = 3
_MAX_WAVE = 0.04  # of the width


class WidthStyle(NamedTuple):
    """How wide a circuit is."""

    usual_m: float  # from edge to edge
    spread: float  # how much wider a straight or corner may be, as a fraction

    @property
    def most_m(self) -> float:
        """The widest that a straight or corner may be."""
        return min(self.usual_m * (1.0 + self.spread), MAX_WIDTH_M)


def draw_width_style(rng: Random) -> WidthStyle:
    """Mostly a road of 7 to 13 m, on some circuits of nearly constant width, on others half as wide in places."""
    chance, spread = rng.between(0.0, 1.0), _MAX_SPREAD * rng.between(0.0, 1.0)
    if chance < 0.45:
        return WidthStyle(rng.between(7.2, 10.0), spread)
    return WidthStyle(rng.between(10.0, 13.0) if chance < 0.85 else rng.between(13.0, 19.0), spread)


def draw_half_widths(rng: Random, style: WidthStyle, path: ClothoidPath, s_m: FloatArray) -> FloatArray:
    """The road's half-width at these arc lengths of the path, the same to both sides."""
    knots_m, widths_m = _draw_knots(rng, style, path)
    width_m = _smooth_between(knots_m, widths_m, s_m, path.length_m)
    most_waves = max(int(path.length_m / _SHORTEST_WAVE_M), 1)
    wave = _MAX_WAVE * rng.between(0.0, 1.0) / _NUM_WAVES
    for _ in range(_NUM_WAVES):
        width_m = width_m * (1.0 + wave * sine_wave(len(s_m), 1 + rng.below(most_waves), rng.between(0.0, 1.0)))
    half_m = 0.5 * np.minimum(np.maximum(width_m, MIN_WIDTH_M), MAX_WIDTH_M)
    return _limit_slope(half_m, _MAX_SLOPE * path.length_m / len(s_m))


def draw_sides(rng: Random, length_m: float, half_m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The widths right and left of a line that is not quite in the road's middle."""
    most_waves = max(int(length_m / _SHORTEST_WAVE_M), 1)
    side_m = rng.between(0.0, _MAX_SIDE_M) * sine_wave(len(half_m), 1 + rng.below(most_waves), rng.between(0.0, 1.0))
    return half_m + side_m, half_m - side_m


def fit_to_bends(
    x_m: FloatArray, y_m: FloatArray, right_m: FloatArray, left_m: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Widths right and left, reduced on the inside of bends to the room they have there."""
    dx, dy = np.roll(x_m, -1) - x_m, np.roll(y_m, -1) - y_m
    chord_m = np.sqrt(dx * dx + dy * dy)
    step_m = float(np.max(chord_m))
    rise_m = _MAX_ROOM_SLOPE * step_m
    room_left_m, room_right_m = _rooms(x_m, y_m, int(_NEIGHBOUR_M / step_m))
    return (
        _limit_slope(np.minimum(right_m, _ROOM_FRACTION * room_right_m), rise_m),
        _limit_slope(np.minimum(left_m, _ROOM_FRACTION * room_left_m), rise_m),
    )


def _draw_knots(rng: Random, style: WidthStyle, path: ClothoidPath) -> tuple[list[float], list[float]]:
    """Arc lengths and the road's widths there: one at every corner, one at both ends of every longer straight."""
    knots: list[tuple[float, float]] = []
    begin_m = 0.0
    for start_m, length_m in zip(path.straight_start_m.tolist(), path.straight_length_m.tolist(), strict=True):
        corner_m = style.usual_m * rng.between(1.0 - _NARROWER * style.spread, 1.0 + style.spread)
        straight_m = style.usual_m * rng.between(1.0 - _NARROWER * style.spread, 1.0 + style.spread)
        first, last = rng.between(0.0, 1.0), rng.between(0.0, 1.0)
        knots.append((0.5 * (begin_m + start_m), corner_m))
        if length_m > _MIN_STRAIGHT_M:
            knots.append((start_m, corner_m))
            # The width changes within 25 m, at most within half of the straight.
            change_m = 0.5 * length_m - 25.0
            knots.append((start_m + 25.0 + change_m * first * first, straight_m))
            knots.append((start_m + length_m - 25.0 - change_m * last * last, straight_m))
        begin_m = start_m + length_m
    return [at for at, _ in knots], [width for _, width in knots]


def _smooth_between(knots_m: list[float], values: list[float], s_m: FloatArray, length_m: float) -> FloatArray:
    """The values at knots along a closed line, joined without corners at the knots."""
    at = np.array([knots_m[-1] - length_m, *knots_m, knots_m[0] + length_m])
    value = np.array([values[-1], *values, values[0]])
    i = np.clip(np.searchsorted(at, s_m, side="right") - 1, 0, len(at) - 2)
    t = (s_m - at[i]) / np.maximum(at[i + 1] - at[i], 1e-9)
    return np.asarray(value[i] + t * t * (3.0 - 2.0 * t) * (value[i + 1] - value[i]))


def _limit_slope(width_m: FloatArray, rise_m: float) -> FloatArray:
    """Widths reduced until they change no faster than `rise_m` from point to point, round the lap."""
    shift = 1
    while shift < width_m.size and shift * rise_m <= float(np.max(width_m)) - float(np.min(width_m)):
        width_m = np.minimum(width_m, np.minimum(np.roll(width_m, shift), np.roll(width_m, -shift)) + shift * rise_m)
        shift *= 2
    return width_m


def _rooms(x_m: FloatArray, y_m: FloatArray, num_neighbours: int) -> tuple[FloatArray, FloatArray]:
    """For each point how far an edge may lie to its left and right before a neighbour is nearer to the edge.

    The places nearer to point i than to a point j lie within the circle through both that is tangent to the road at i.
    """
    size = len(x_m)
    along_x, along_y = np.roll(x_m, -1) - np.roll(x_m, 1), np.roll(y_m, -1) - np.roll(y_m, 1)
    norm = np.sqrt(along_x * along_x + along_y * along_y)
    along_x, along_y = along_x / norm, along_y / norm
    offsets = np.concatenate((np.arange(1, num_neighbours + 1), size - np.arange(1, num_neighbours + 1)))
    dx = sliding_window_view(np.concatenate((x_m, x_m)), size)[offsets] - x_m
    dy = sliding_window_view(np.concatenate((y_m, y_m)), size)[offsets] - y_m
    # Half the inverse radius of the circle, positive to the left.
    bend = (along_x * dy - along_y * dx) / (dx * dx + dy * dy)
    curvature = _curvature(x_m, y_m)
    left, right = np.max(bend, axis=0), np.max(-bend, axis=0)
    return _half_inverse(np.maximum(left, 0.5 * curvature)), _half_inverse(np.maximum(right, -0.5 * curvature))


def _curvature(x_m: FloatArray, y_m: FloatArray) -> FloatArray:
    """Curvature of the road's spline at its points, positive to the left."""
    spline = Spline.through(x_m, y_m)
    vx, vy, ax, ay = spline.x[1], spline.y[1], 2.0 * spline.x[2], 2.0 * spline.y[2]
    square = vx * vx + vy * vy
    return np.asarray((vx * ay - vy * ax) / (square * np.sqrt(square)))


def _half_inverse(bend: FloatArray) -> FloatArray:
    # Between two points the line may bend as much as at either.
    bend = np.maximum(bend, np.maximum(np.roll(bend, 1), np.roll(bend, -1)))
    return 0.5 / np.maximum(bend, 1e-6)
