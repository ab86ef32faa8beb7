"""Rounded polygons: sines, radii and straights, and what cannot be rounded."""

import math

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.clothoid_path import PolygonCorner, angle_of, round_corners, sin_cos
from tracks.track_rules import curvature


def test_sines_and_angles_agree_with_the_math_library():
    angles = np.linspace(-3.1, 3.1, 621)
    sine, cosine = sin_cos(angles)
    assert sine == pytest.approx(np.sin(angles), abs=2e-15)
    assert cosine == pytest.approx(np.cos(angles), abs=2e-15)
    assert angle_of(np.cos(angles), np.sin(angles)) == pytest.approx(angles, abs=1e-11)


def test_a_rounded_square_has_the_radius_asked_for_and_straight_sides():
    path = round_corners([PolygonCorner(x, y, 20.0) for x, y in ((0, 0), (200, 0), (200, 200), (0, 200))])
    assert path.radii_m == pytest.approx(np.full(4, 20.0))
    x, y = path.sample(path.point_on_longest_straight(0.5), 1.0)
    track = Centreline(x, y, np.full(len(x), 5.0), np.full(len(x), 5.0))
    kappa, ds = curvature(track)
    assert np.abs(kappa).max() == pytest.approx(1.0 / 20.0, rel=1e-3)
    assert math.degrees(np.sum(kappa * ds)) == pytest.approx(360.0, abs=0.5)
    assert ds.sum() == pytest.approx(path.length_m, rel=1e-4)
    assert np.abs(np.diff(kappa)).max() < 0.006  # continuous: an arc set against a straight would jump by 0.05
    assert y.min() == pytest.approx(0.0, abs=1e-9)


def test_a_corner_without_room_gets_a_smaller_radius():
    path = round_corners([PolygonCorner(*corner) for corner in ((0, 0, 500), (100, 0, 10), (50, 90, 10))])
    assert path.radii_m[0] < 60.0
    assert path.radii_m[1:] == pytest.approx([10.0, 10.0])
    assert path.straight_length_m.min() > 0.0


@pytest.mark.parametrize(
    ("polygon", "message"),
    [
        ([(0, 0), (9, 0)], "at least 3 corners; got 2"),
        ([(0, 0), (0, 0), (9, 9)], "corner 0 and the next are the same point"),
        ([(0, 0), (90, 0), (10, 0), (0, 50)], "turns back on itself at corner 1"),
    ],
)
def test_an_impossible_polygon_is_refused(polygon, message):
    with pytest.raises(TrackError, match=message):
        round_corners([PolygonCorner(x, y, 10.0) for x, y in polygon])
