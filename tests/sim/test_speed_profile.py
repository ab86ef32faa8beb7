"""The quick speed estimate, where the answer is known: a circle, a straight, and a brake zone."""

import numpy as np
import pytest

from hotlap.sim.speed_profile import speed_profile
from sim.kernels import CAR, GRAVITY_MPS2
from sim.worlds import nodes_of


@pytest.mark.parametrize("grip_fraction", [0.6, 1.0])
def test_on_a_circle_the_speed_is_the_one_that_uses_the_grip(grip_fraction):
    speeds = speed_profile(np.full(400, 1 / 50.0), 1.0, CAR, grip_fraction)
    assert speeds == pytest.approx(np.sqrt(grip_fraction * CAR.friction * GRAVITY_MPS2 * 50.0), rel=1e-6)


def test_no_speed_is_over_the_top_speed_or_over_what_the_bend_allows():
    nodes = nodes_of("track-02")
    speeds = speed_profile(nodes.curvature_radpm, nodes.step_m, CAR, 0.7)
    grip_mps2 = 0.7 * CAR.friction * GRAVITY_MPS2
    assert speeds.max() <= CAR.top_speed_mps
    assert (speeds**2 * np.abs(nodes.curvature_radpm) <= grip_mps2 * (1 + 1e-9)).all()


def test_before_a_bend_speed_falls_no_faster_than_brakes_and_drag_allow_and_rises_no_faster_than_power():
    curvature = np.zeros(2000)
    curvature[1000:1050] = 1 / 15.0
    speeds = speed_profile(curvature, 1.0, CAR, 0.8)
    grip_mps2 = 0.8 * CAR.friction * GRAVITY_MPS2
    gain_mps2 = np.diff(speeds**2) / 2.0
    drag_mps2 = 0.5 * 1.225 * CAR.drag_area_m2 / CAR.mass_kg * speeds[1:] ** 2
    assert (gain_mps2 >= -(grip_mps2 + drag_mps2) * (1 + 1e-9)).all()
    # Hard before the bend it brakes with all of it.
    assert gain_mps2[990] == pytest.approx(-(grip_mps2 + drag_mps2[990]), rel=1e-6)
    assert (gain_mps2 <= CAR.power_w / CAR.mass_kg / np.maximum(speeds[:-1], 1.0) + 1e-9).all()
    assert (gain_mps2 <= CAR.drive_force_n / CAR.mass_kg + 1e-9).all()


def test_start_line_and_side_of_the_bends_do_not_matter_and_more_grip_is_never_slower():
    nodes = nodes_of("track-03")
    speeds = speed_profile(nodes.curvature_radpm, nodes.step_m, CAR, 0.7)
    moved = speed_profile(np.roll(nodes.curvature_radpm, 137), nodes.step_m, CAR, 0.7)
    assert np.roll(moved, -137) == pytest.approx(speeds, rel=1e-9)
    assert speed_profile(-nodes.curvature_radpm, nodes.step_m, CAR, 0.7) == pytest.approx(speeds)
    faster = speed_profile(nodes.curvature_radpm, nodes.step_m, CAR, 0.9)
    assert (faster >= speeds).all()
    assert faster.min() > speeds.min()
