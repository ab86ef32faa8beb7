"""A track's centreline with its widths, and the operations on it: recentre, reverse, move the start, resample."""

from dataclasses import dataclass

import numpy as np

from hotlap.errors import TrackError
from hotlap.tracks.geometry.spline import FloatArray, Spline

MIN_POINTS = 8
FAR_M = 10_000.0  # beyond this a float32 position is coarser than a millimetre


@dataclass(frozen=True)
class Centreline:
    """A closed line in driving order with road widths; the first point is on the start line and not repeated."""

    x_m: FloatArray  # (num_points,)
    y_m: FloatArray
    width_right_m: FloatArray  # centre to road edge, right of travel
    width_left_m: FloatArray


def spline_of(centreline: Centreline) -> Spline:
    """The periodic spline through the points; TrackError if there are too few or some coincide."""
    _check_arrays(centreline)
    return Spline.through(centreline.x_m, centreline.y_m)


def length_m(centreline: Centreline) -> float:
    """Lap length along the spline."""
    return spline_of(centreline).length


def nearest_point(centreline: Centreline, x_m: float, y_m: float) -> int:
    """Index of the point nearest to a position."""
    dx, dy = centreline.x_m - x_m, centreline.y_m - y_m
    return int(np.argmin(dx * dx + dy * dy))


def recentre(centreline: Centreline) -> Centreline:
    """The same track moved to the origin by whole metres if it is more than 10 km away (UTM); else itself."""
    x, y = centreline.x_m, centreline.y_m
    if x.size == 0 or not max(float(np.abs(x).max()), float(np.abs(y).max())) > FAR_M:
        return centreline
    shift_x = np.floor((x.min() + x.max()) * 0.5)
    shift_y = np.floor((y.min() + y.max()) * 0.5)
    return Centreline(x - shift_x, y - shift_y, centreline.width_right_m, centreline.width_left_m)


def reverse(centreline: Centreline) -> Centreline:
    """The same track driven the other way, from the same start line."""

    def reversed_order(values: FloatArray) -> FloatArray:
        return np.roll(values[::-1], 1)

    return Centreline(
        reversed_order(centreline.x_m),
        reversed_order(centreline.y_m),
        width_right_m=reversed_order(centreline.width_left_m),
        width_left_m=reversed_order(centreline.width_right_m),
    )


def rotate_start(centreline: Centreline, start_m: float) -> Centreline:
    """The same track with the start line moved `start_m` metres forward along it.

    The new first point lies on the spline; a file point within a quarter of its spacing is replaced by it, so that
    no two points nearly coincide.
    """
    spline = spline_of(centreline)
    laps = np.floor(start_m / spline.length)
    segment, u = spline.locate(np.array([start_m - laps * spline.length]))
    near, fraction = int(segment[0]), float(u[0] / spline.chord[segment[0]])
    num_points = centreline.x_m.size
    first_kept = near + (2 if fraction > 0.75 else 1)
    last_kept = near + num_points - (1 if fraction < 0.25 else 0)
    kept = np.arange(first_kept, last_kept + 1) % num_points
    x, y = spline.position(segment, u)
    right = spline.between(centreline.width_right_m, segment, u)
    left = spline.between(centreline.width_left_m, segment, u)
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
    spline = spline_of(centreline)
    _, segment, u = spline.uniform(spacing_m, MIN_POINTS)
    x, y = spline.position(segment, u)
    right = spline.between(centreline.width_right_m, segment, u)
    left = spline.between(centreline.width_left_m, segment, u)
    return Centreline(np.round(x, 3), np.round(y, 3), np.round(right, 3), np.round(left, 3))


def _check_arrays(centreline: Centreline) -> None:
    arrays = (centreline.x_m, centreline.y_m, centreline.width_right_m, centreline.width_left_m)
    shapes = {array.shape for array in arrays}
    if len(shapes) != 1 or centreline.x_m.ndim != 1:
        raise TrackError(f"x, y and widths have shapes {sorted(shapes)}; they must be one-dimensional and equal.")
    if centreline.x_m.size < MIN_POINTS:
        raise TrackError(f"the centreline has {centreline.x_m.size} points; a track needs at least {MIN_POINTS}.")
    if not all(np.isfinite(array).all() for array in arrays):
        raise TrackError("the centreline has values that are not finite; every coordinate and width must be a number.")
