"""What defines a periodic cubic spline, and arc lengths on a circle."""

import math

import numpy as np
import pytest

from hotlap.tracks.geometry.spline import Spline
from tracks.shapes import circle

X, Y = np.array([0.0, 40.0, 90.0, 70.0, 10.0]), np.array([0.0, -10.0, 20.0, 60.0, 50.0])


def test_it_goes_through_its_points_and_slope_and_bend_are_continuous_there():
    spline, pieces = Spline.through(X, Y), np.arange(5)
    assert np.stack(spline.position(pieces, np.zeros(5))) == pytest.approx(np.stack((X, Y)))
    for curve in (spline.position, spline.velocity, spline.acceleration):
        ends, begins = np.stack(curve(pieces, spline.chord)), np.stack(curve(pieces, np.zeros(5)))
        assert ends == pytest.approx(np.roll(begins, -1, axis=1), abs=1e-12)


def test_a_circle_has_its_length_and_eighths_and_values_between_its_points():
    ring, angles = circle(100.0, 120), np.arange(8) * math.pi / 4.0
    spline = Spline.through(ring.x_m, ring.y_m)
    assert spline.length == pytest.approx(200.0 * math.pi, rel=1e-6)
    found = np.stack(spline.position(*spline.locate(np.arange(8) / 8.0 * spline.length)))
    assert found == pytest.approx(100.0 * np.stack((np.cos(angles), np.sin(angles))), abs=1e-3)
    step, pieces, u = spline.uniform(1.0, min_nodes=8)
    assert step == pytest.approx(200.0 * math.pi / 628)
    rising = spline.between(np.arange(120.0), pieces, u)[:600]  # before it falls back to the first point's
    assert rising == pytest.approx(np.arange(600) * 120.0 / 628, abs=1e-4)
