"""Tyre forces against Pacejka's formula in float64, and what every tyre must do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotlap.sim.tyres import available_grip
from hotlap.sim.vehicle import car_record
from sim.kernels import CAR, F, tyre_forces

demands = st.floats(-1e5, 1e5, width=32)
slips = st.floats(-50.0, 50.0, width=32)
grips = st.floats(1.0, 3e4, width=32)
stiffnesses = st.floats(1.0, 30.0, width=32)


def forces(demand_n, slip, grip_n, stiffness) -> tuple[np.ndarray, np.ndarray]:
    rows = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value, F)) for value in (demand_n, slip, grip_n, stiffness)))
    along_n, across_n = np.zeros(rows[0].shape, F), np.zeros(rows[0].shape, F)
    tyre_forces(*(np.ascontiguousarray(row) for row in rows), along_n, across_n)
    return along_n, across_n


def textbook(demand_n, slip, grip_n, stiffness) -> tuple[np.ndarray, np.ndarray]:
    """Soft-shouldered demand, and the magic formula on what remains of the circle, in float64."""
    q = np.asarray(demand_n, np.float64) / grip_n
    along_n = demand_n / (1.0 + q**4) ** 0.25
    curve = np.sin(1.5 * np.arctan(np.asarray(stiffness, np.float64) * slip))
    # 1 - q²/sqrt(1 + q⁴) without its cancellation.
    rest = 1.0 / (np.sqrt(1.0 + q**4) * (np.sqrt(1.0 + q**4) + q**2))
    return along_n, -grip_n * np.sqrt(rest) * curve


@given(demands, slips, grips, stiffnesses)
def test_the_algebraic_form_is_the_magic_formula_within_the_friction_circle_and_symmetric(
    demand_n, slip, grip_n, stiffness
):
    along_n, across_n = forces([demand_n, -demand_n, demand_n], [slip, slip, -slip], grip_n, stiffness)
    expected_along_n, expected_across_n = textbook(demand_n, slip, grip_n, stiffness)
    assert along_n[0] == pytest.approx(expected_along_n, rel=2e-6, abs=1e-30)
    assert across_n[0] == pytest.approx(expected_across_n, rel=1e-5, abs=2e-6 * grip_n)
    assert np.hypot(float(along_n[0]), float(across_n[0])) <= grip_n * (1.0 + 1e-6)
    # Left and right, drive and brake are mirror images.
    assert along_n.tolist() == [along_n[0], -along_n[0], along_n[0]]
    assert across_n.tolist() == [across_n[0], across_n[0], -across_n[0]]


@pytest.mark.parametrize("stiffness", [CAR.stiffness_front, CAR.stiffness_rear])
def test_slip_to_the_left_pushes_right_with_a_peak_and_less_when_sliding(stiffness):
    slip = np.linspace(0.0, 2.0, 20_001)
    _, across_n = forces(0.0, slip, 5000.0, stiffness)
    assert (across_n[1:] < 0.0).all()
    # Stiffness times slip is the tangent of 60 degrees where all the grip is used.
    assert slip[np.argmin(across_n)] == pytest.approx(np.tan(np.radians(60.0)) / stiffness, abs=2e-3)
    assert across_n.min() == pytest.approx(-5000.0, rel=1e-6)
    assert forces(0.0, 1e4, 5000.0, stiffness)[1] == pytest.approx(-5000.0 * np.sin(np.radians(135.0)), rel=1e-4)


def test_a_small_demand_is_met_and_a_huge_one_gets_the_grip_and_leaves_none_for_cornering():
    along_n, across_n = forces([50.0, 1e6, -1e6], 0.1, 5000.0, 10.0)
    assert along_n[0] == pytest.approx(50.0, rel=1e-6)
    assert along_n[1:] == pytest.approx([5000.0, -5000.0], rel=1e-4)
    assert np.abs(across_n[1:]).max() < 0.005 * 5000.0
    # The more is braked, the less is left.
    _, across_n = forces(-np.linspace(0.0, 2e4, 200), 0.1, 5000.0, 10.0)
    assert (np.diff(np.abs(across_n)) < 0.0).all()


def test_friction_is_nominal_at_half_the_weight_and_falls_as_said_when_the_load_doubles():
    car = car_record()[0]
    half_n = F(0.5 * CAR.mass_kg * 9.81)
    nominal = available_grip(half_n, car["grip_slope"], car["grip_curve_per_n"]) / half_n
    doubled = available_grip(2 * half_n, car["grip_slope"], car["grip_curve_per_n"]) / (2 * half_n)
    assert nominal == pytest.approx(CAR.friction, rel=1e-5)
    assert doubled == pytest.approx(CAR.friction * (1.0 - CAR.load_sensitivity), rel=1e-5)
