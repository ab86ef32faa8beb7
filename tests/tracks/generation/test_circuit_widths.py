"""Widths along a circuit: smooth, within bounds, and with room on the inside of bends."""

import numpy as np
import pytest

from hotlap.tracks.generation.circuit_widths import (
    MAX_WIDTH_M,
    MIN_WIDTH_M,
    _limit_slope,
    _smooth_between,
    draw_sides,
    draw_width_style,
    fit_to_bends,
)
from hotlap.tracks.generation.layouts import Random


def test_styles_are_roads_and_never_wider_than_the_widest():
    styles = [draw_width_style(Random(seed)) for seed in range(200)]
    assert all(MIN_WIDTH_M <= style.usual_m <= style.most_m <= MAX_WIDTH_M for style in styles)
    assert np.mean([7.0 <= style.usual_m <= 13.0 for style in styles]) > 0.75


def test_between_knots_the_width_is_smooth_and_closed():
    s_m = np.linspace(0.0, 100.0, 201)
    width_m = _smooth_between([10.0, 60.0], [8.0, 12.0], s_m, 100.0)
    assert width_m[20] == 8.0
    assert width_m[120] == 12.0
    assert width_m[70] == pytest.approx(10.0)  # halfway between the knots
    assert width_m[0] == pytest.approx(width_m[-1])
    assert (width_m.min(), width_m.max()) == (8.0, 12.0)


def test_a_steep_change_is_spread_over_points_and_narrow_places_stay():
    width_m = np.full(40, 10.0)
    width_m[7] = 4.0
    limited = _limit_slope(width_m, 0.5)
    assert limited[7] == 4.0
    assert np.abs(np.diff(np.append(limited, limited[0]))).max() <= 0.5 + 1e-12
    assert (limited <= width_m).all()
    np.testing.assert_array_equal(limited[20:34], 10.0)


def test_the_line_moves_within_the_road():
    half_m = np.full(60, 5.0)
    right_m, left_m = draw_sides(Random(2), 900.0, half_m)
    np.testing.assert_allclose(right_m + left_m, 10.0)
    assert np.ptp(right_m) > 0.0


def test_the_inside_of_tight_bends_has_less_room_than_their_radius_and_the_outside_all():
    turn = np.arange(400) * 2.0 * np.pi / 400
    x_m, y_m = 150.0 * np.cos(turn), 25.0 * np.sin(turn)  # anticlockwise: the inside is to the left
    wide_m = np.full(400, 8.0)
    right_m, left_m = fit_to_bends(x_m, y_m, wide_m, wide_m)
    np.testing.assert_array_equal(right_m, 8.0)
    assert left_m[[0, 200]].max() < 25.0**2 / 150.0  # the radius at both ends of the ellipse
    np.testing.assert_array_equal(left_m[[100, 300]], 8.0)
