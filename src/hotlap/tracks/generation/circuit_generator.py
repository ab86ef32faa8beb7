"""Generates tracks as large as real circuits: up to 7 km, straights up to a kilometre, a road of uneven width."""

import numpy as np
from numpy.typing import NDArray

from hotlap.tracks.generation.generator import (
    MIN_RADIUS_M,
    RADIUS_MARGIN_M,
    Family,
    generate_of,
    rounded_centreline,
    sine_wave,
)
from hotlap.tracks.generation.layouts import CHICANES_FIRST, Random, Style
from hotlap.tracks.geometry.centreline import Centreline

MIN_HALF_WIDTH_M = 3.5
SHORTEST_WIDTH_WAVE_M = 100.0
_NUM_WIDTH_WAVES = 6
_SIDE_SWING_M = 0.4  # how much more one side of the centreline may have than the other
KINK_WAVES_M = 60.0, 180.0
MAX_KINK_M = 1.5

FloatArray = NDArray[np.float64]


def generate_circuit(seed: int) -> Centreline:
    """The circuit of this seed: other tracks than those of `generate`."""
    return generate_of(CIRCUITS, seed)


def _draw_style(rng: Random) -> Style:
    half_width_m = rng.between(4.6, 9.5)
    return Style(
        length_m=rng.between(1500.0, 5200.0),
        half_width_m=half_width_m,
        technical=rng.between(0.0, 0.8),
        min_radius_m=max(MIN_RADIUS_M, half_width_m + RADIUS_MARGIN_M),
    )


def _count_features(rng: Random, style: Style) -> int:
    most = 2 + int(style.technical * 0.002 * style.length_m)
    return 1 + int(0.0004 * style.length_m) + rng.below(most)


def _lay_road(rng: Random, style: Style, length_m: float, x: FloatArray, y: FloatArray) -> Centreline:
    x, y = _add_kinks(rng, length_m, x, y)
    return rounded_centreline(x, y, *_draw_widths(rng, style, length_m, len(x)))


def _add_kinks(rng: Random, length_m: float, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The line moved sideways a little, here more and there less: a surveyed straight is never quite straight."""
    fraction = rng.between(0.0, 1.0)
    waves = int(length_m / rng.between(*KINK_WAVES_M))
    size = 0.5 + 0.5 * sine_wave(len(x), 2 + rng.below(6), rng.between(0.0, 1.0))
    sideways_m = MAX_KINK_M * fraction * fraction * size * sine_wave(len(x), waves, rng.between(0.0, 1.0))
    dx, dy = np.roll(x, -1) - np.roll(x, 1), np.roll(y, -1) - np.roll(y, 1)
    step_m = np.sqrt(dx * dx + dy * dy)
    return x - sideways_m * dy / step_m, y + sideways_m * dx / step_m


def _draw_widths(rng: Random, style: Style, length_m: float, num_points: int) -> tuple[FloatArray, FloatArray]:
    """A width that swings within a few hundred metres, on some circuits by a fifth, on others by more than half."""
    least_m = max(MIN_HALF_WIDTH_M, style.half_width_m * rng.between(0.4, 0.8)) + _SIDE_SWING_M
    most_waves = int(length_m / SHORTEST_WIDTH_WAVE_M)
    waves = np.zeros(num_points)
    for _ in range(_NUM_WIDTH_WAVES):
        waves = waves + rng.between(0.2, 1.0) * sine_wave(num_points, 1 + rng.below(most_waves), rng.between(0.0, 1.0))
    fraction = (waves - np.min(waves)) / (np.max(waves) - np.min(waves))
    both = least_m + fraction * (style.half_width_m - _SIDE_SWING_M - least_m)
    side = _SIDE_SWING_M * sine_wave(num_points, 1 + rng.below(most_waves), rng.between(0.0, 1.0))
    return both + side, both - side


CIRCUITS = Family((1,), _draw_style, _count_features, CHICANES_FIRST, _lay_road, max_length_m=7000.0)
