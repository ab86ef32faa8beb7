"""Generates race tracks: every non-negative seed gives a track, the same one on every machine."""

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from hotlap.errors import TrackError
from hotlap.tracks.generation.layouts import Random, Style, add_feature, draw_base
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.clothoid_path import PI, ClothoidPath, PolygonCorner, round_corners, sin_cos, to_millimetres

MAX_ATTEMPTS = 20
MIN_LENGTH_M = 600.0
MAX_LENGTH_M = 4000.0
MIN_RADIUS_M = 9.5
RADIUS_MARGIN_M = 3.5  # a centreline's radius over its half-width
CLEARANCE_M = 12.0  # between the edges of two parts of the road: a runoff for each
SPACING_M = 4.0
_CHECK_SPACING_M = 8.0
_CHECK_SLACK_M = 1.0  # for the error of coarse points
MIN_START_STRAIGHT_M = 70.0
LINE_AT = 0.35  # position of the start line as a fraction of the start straight

FloatArray = NDArray[np.float64]


def generate(seed: int) -> Centreline:
    """The track of this seed: valid, 0.6 to 4 km, points 4 m apart and rounded to the millimetre."""
    return first_valid(seed, (), _attempt)


def first_valid(seed: int, stream: tuple[int, ...], attempt: Callable[[Random], Centreline | None]) -> Centreline:
    """The first attempt that gives a track; `stream` keeps the numbers of one kind of tracks apart from another's."""
    if seed < 0:
        raise TrackError(f"a track's seed is {seed}; it must be 0 or more.")
    for number in range(MAX_ATTEMPTS):
        track = attempt(Random(seed, number, *stream))
        if track is not None:
            return track
    raise TrackError(f"no valid track for seed {seed} in {MAX_ATTEMPTS} attempts. Choose another seed.")


def _attempt(rng: Random) -> Centreline | None:
    style = _draw_style(rng)
    corners = draw_base(rng, style)
    if rng.happens(0.5):
        corners.reverse()
    path = _checked_path(corners, style)
    if path is None:
        return None
    for _ in range(_count_features(rng, style)):
        candidate = add_feature(rng, style, corners)
        candidate_path = _checked_path(candidate, style)
        if candidate_path is not None:
            corners, path = candidate, candidate_path
    x, y = path.sample(path.point_on_longest_straight(LINE_AT), SPACING_M)
    right, left = (_slow_waves(rng, style.half_width_m, len(x)) for _ in range(2))
    track = rounded_centreline(x, y, right, left)
    needed_m = 2.0 * style.half_width_m + CLEARANCE_M
    return track if _is_clear(track.x_m, track.y_m, path.length_m, needed_m) else None


def _draw_style(rng: Random) -> Style:
    fraction = rng.between(0.0, 1.0)
    length_m = MIN_LENGTH_M + 3100.0 * fraction * (0.35 + 0.65 * fraction)
    technical = rng.between(0.0, 1.0)
    half_width_m = 0.5 * rng.between(8.4 + 3.0 * (1.0 - technical), 15.0 - 3.0 * technical)
    return Style(
        length_m=length_m,
        half_width_m=half_width_m,
        technical=technical,
        min_radius_m=max(MIN_RADIUS_M, half_width_m + RADIUS_MARGIN_M),
    )


def _checked_path(corners: list[PolygonCorner], style: Style) -> ClothoidPath | None:
    """The rounded polygon, or None where it breaks a rule."""
    try:
        path = round_corners(corners)
    except TrackError:
        return None
    if not MIN_LENGTH_M <= path.length_m <= MAX_LENGTH_M:
        return None
    if np.min(path.radii_m) < style.min_radius_m or np.max(path.straight_length_m) < MIN_START_STRAIGHT_M:
        return None
    x, y = path.sample(0.0, _CHECK_SPACING_M)
    return path if _is_clear(x, y, path.length_m, 2.0 * style.half_width_m + CLEARANCE_M + _CHECK_SLACK_M) else None


def _is_clear(x: FloatArray, y: FloatArray, length_m: float, needed_m: float) -> bool:
    """Whether parts of the road that are not neighbours keep their distance, so that the road never crosses itself."""
    num_points = len(x)
    # In the tightest bend two points this close are at most twice that distance apart along the road.
    first_lag = int(2.0 * needed_m / length_m * num_points) + 1
    lags = slice(first_lag, num_points // 2 + 1)
    dx = sliding_window_view(np.concatenate((x, x)), num_points)[lags] - x
    dy = sliding_window_view(np.concatenate((y, y)), num_points)[lags] - y
    return not bool(np.any(dx * dx + dy * dy < needed_m * needed_m))


def _count_features(rng: Random, style: Style) -> int:
    most = 2 + int(style.technical * (2.0 + 0.003 * style.length_m))
    return 1 + int(0.0008 * style.length_m) + rng.below(most)


def rounded_centreline(x: FloatArray, y: FloatArray, right: FloatArray, left: FloatArray) -> Centreline:
    """The centreline from the origin, in whole millimetres."""
    return Centreline(*(to_millimetres(values) for values in (x - x[0], y - y[0], right, left)))


def _slow_waves(rng: Random, half_width_m: float, num_points: int) -> FloatArray:
    """Half-widths that vary slowly along the lap, by up to 14 %."""
    width = np.full(num_points, half_width_m)
    for waves in (1, 2, 3):
        swing = half_width_m * rng.between(0.0, 0.023)
        width = width - swing * (1.0 + sine_wave(num_points, waves, rng.between(0.0, 1.0)))
    return width


def sine_wave(num_points: int, waves: int, phase: float) -> FloatArray:
    """A sine with this many whole waves round the lap; `phase` is a fraction of a wave."""
    turns = np.arange(num_points) / num_points * waves + phase
    sine, _ = sin_cos((turns - np.floor(turns) - 0.5) * 2.0 * PI)
    return sine
