"""Operations on a centreline, on a circle of 60 m with a wider right side."""

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.geometry import centreline as lines
from hotlap.tracks.geometry.centreline import Centreline

NUM_POINTS, RADIUS_M = 48, 60.0


@pytest.fixture
def circle():
    turn = np.arange(NUM_POINTS) * 2.0 * np.pi / NUM_POINTS
    right_m = 5.0 + np.arange(NUM_POINTS) / 100.0
    return Centreline(RADIUS_M * np.cos(turn), RADIUS_M * np.sin(turn), right_m, np.full(NUM_POINTS, 4.0))


def test_length_and_nearest_point(circle):
    assert lines.length_m(circle) == pytest.approx(2.0 * np.pi * RADIUS_M, rel=1e-5)
    assert lines.nearest_point(circle, 0.0, 200.0) == NUM_POINTS // 4


def test_reversed_twice_is_the_same_and_sides_change(circle):
    back = lines.reverse(circle)
    assert (back.x_m[0], back.y_m[1]) == (circle.x_m[0], circle.y_m[-1])
    assert back.width_left_m[0] == circle.width_right_m[0]
    again = lines.reverse(back)
    for name in ("x_m", "y_m", "width_right_m", "width_left_m"):
        np.testing.assert_array_equal(getattr(again, name), getattr(circle, name))


@pytest.mark.parametrize("start_m", [0.0, 10.0, 94.0, -30.0, 400.0])
def test_a_moved_start_is_that_far_along_the_same_line(circle, start_m):
    moved = lines.rotate_start(circle, start_m)
    angle = start_m / RADIUS_M
    place = RADIUS_M * np.cos(angle), RADIUS_M * np.sin(angle)
    assert (moved.x_m[0], moved.y_m[0]) == pytest.approx(place, abs=2e-3)
    assert lines.length_m(moved) == pytest.approx(lines.length_m(circle), rel=1e-5)
    assert np.hypot(np.diff(moved.x_m), np.diff(moved.y_m)).min() > 0.2 * 2.0 * np.pi * RADIUS_M / NUM_POINTS


def test_only_a_far_track_is_moved_and_by_whole_metres(circle):
    assert lines.recentre(circle) is circle
    far = Centreline(circle.x_m + 500_000.25, circle.y_m, circle.width_right_m, circle.width_left_m)
    near = lines.recentre(far)
    assert np.abs(near.x_m).max() < 62.0
    assert float(far.x_m[0] - near.x_m[0]).is_integer()


def test_resampled_points_are_evenly_spaced_on_the_line(circle):
    found = lines.resample(circle, 2.0)
    steps_m = np.hypot(np.diff(found.x_m), np.diff(found.y_m))
    np.testing.assert_allclose(steps_m, 2.0, atol=0.02)
    np.testing.assert_allclose(np.hypot(found.x_m, found.y_m), RADIUS_M, atol=2e-3)


@pytest.mark.parametrize("width_m", [0.0, -1.0, np.inf, np.nan])
def test_a_width_is_positive(circle, width_m):
    assert lines.with_width(circle, 9.0).width_left_m.tolist() == [4.5] * NUM_POINTS
    with pytest.raises(TrackError, match="it must be positive"):
        lines.with_width(circle, width_m)


def test_what_is_no_line_is_refused(circle):
    few = Centreline(*(array[:7] for array in (circle.x_m, circle.y_m, circle.width_right_m, circle.width_left_m)))
    with pytest.raises(TrackError, match="has 7 points; a track needs at least 8"):
        lines.spline_of(few)
    with pytest.raises(TrackError, match="must be one-dimensional and equal"):
        lines.spline_of(Centreline(circle.x_m, circle.y_m[:-1], circle.width_right_m, circle.width_left_m))
    with pytest.raises(TrackError, match="not finite"):
        lines.spline_of(Centreline(circle.x_m * np.nan, circle.y_m, circle.width_right_m, circle.width_left_m))
    with pytest.raises(TrackError, match="spacing is 0"):
        lines.resample(circle, 0)
