"""The transcription: exact for polynomials, and its derivatives are those that CasADi works out by itself."""

import casadi as ca
import numpy as np
import pytest

from hotlap.optimal.collocation import (
    CONTROL_SCALE,
    DEGREE,
    STATE_SCALE,
    Program,
    RoadProfile,
    make_program,
    radau_points,
)
from hotlap.optimal.launch import launch
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, motion

from .kernels import CAR

COUNT = 9
NOTHING = ca.DM(0, 1)


def winding_road() -> RoadProfile:
    rng = np.random.default_rng(3)
    lengths_m = rng.uniform(3.0, 6.0, COUNT)
    starts_m = np.concatenate([[0.0], np.cumsum(lengths_m)[:-1]])
    half_m = np.full((COUNT, DEGREE), 5.0)
    return RoadProfile(starts_m, lengths_m, rng.normal(0.0, 0.02, (COUNT, DEGREE)), half_m, half_m)


def some_drive() -> np.ndarray:
    """Scaled variables of no drive in particular, but with the car going forwards."""
    rng = np.random.default_rng(4)
    size = COUNT * (DEGREE * NUM_STATES + NUM_CONTROLS)
    x = rng.uniform(-0.3, 0.3, size)
    x[State.FORWARD : COUNT * DEGREE * NUM_STATES : NUM_STATES] = rng.uniform(0.4, 1.0, COUNT * DEGREE)
    return x


@pytest.fixture(params=["flying", "flying, slip limited", "from a start", "from a start, slip limited"])
def program(request) -> Program:
    start = launch(CAR).state if "start" in request.param else None
    return make_program(winding_road(), CAR, start, has_slip_limit="slip" in request.param)


def test_the_points_differentiate_and_integrate_polynomials_exactly():
    tau, derivative, weights = radau_points()
    assert tau[-1] == 1.0
    places = np.concatenate([[0.0], tau])
    for power in range(DEGREE + 1):
        slopes = power * tau ** max(power - 1, 0)
        np.testing.assert_allclose(places**power @ derivative, slopes, atol=1e-12)
    for power in range(2 * DEGREE - 1):  # Radau: exact up to twice the points less two
        assert weights @ tau**power == pytest.approx(1.0 / (power + 1), abs=1e-12)
    assert weights @ tau ** (2 * DEGREE - 1) != pytest.approx(1.0 / (2 * DEGREE), abs=1e-4)


def test_scales_match_the_states_and_controls():
    assert STATE_SCALE.shape == (NUM_STATES,)
    assert CONTROL_SCALE.shape == (NUM_CONTROLS,)


def test_the_gradient_is_that_of_the_cost(program):
    x = some_drive()
    expected = ca.Function("f", [program.variables], [program.cost_s, ca.gradient(program.cost_s, program.variables)])
    cost, gradient = program.derivatives["grad_f"](x, NOTHING)
    assert gradient.is_dense()
    np.testing.assert_allclose(np.array(cost), np.array(expected(x)[0]), rtol=1e-12)
    np.testing.assert_allclose(np.array(gradient), np.array(expected(x)[1]), atol=1e-12)


def test_the_jacobian_is_that_of_the_constraints(program):
    x = some_drive()
    jacobian = ca.jacobian(program.constraints, program.variables)
    expected = ca.Function("g", [program.variables], [program.constraints, jacobian])(x)
    values, found = program.derivatives["jac_g"](x, NOTHING)
    np.testing.assert_allclose(np.array(values), np.array(expected[0]), atol=1e-12)
    np.testing.assert_allclose(np.array(found), np.array(expected[1]), atol=1e-11)
    assert np.abs(np.array(found)).max(axis=1).min() > 0.0  # no row is empty


def test_the_hessian_is_that_of_both_weighted_and_its_upper_half_alone(program):
    x, weight = some_drive(), np.random.default_rng(5).normal(size=program.constraints.shape[0])
    lagrangian = 1.7 * program.cost_s + ca.dot(ca.DM(weight), program.constraints)
    whole, _ = ca.hessian(lagrangian, program.variables)
    expected = np.triu(np.array(ca.Function("l", [program.variables], [whole])(x)))
    found = program.derivatives["hess_lag"](x, NOTHING, 1.7, weight)
    np.testing.assert_allclose(np.array(found), expected, atol=1e-10)


def test_the_times_of_the_intervals_are_the_cost_without_the_smoothing():
    road, x = winding_road(), some_drive()
    x[-COUNT * NUM_CONTROLS :] = 0.25  # controls that never change cost nothing
    for start in (None, launch(CAR).state):
        program = make_program(road, CAR, start, has_slip_limit=False)
        cost, _ = program.derivatives["grad_f"](x, NOTHING)
        times_s = np.array(program.times(x)).ravel()
        assert times_s.shape == (COUNT,)
        assert times_s.sum() == pytest.approx(float(cost), rel=1e-12)
    # At one speed along the centreline an interval takes its length over the speed.
    x[: COUNT * DEGREE * NUM_STATES] = np.tile(np.eye(NUM_STATES)[State.FORWARD] * 0.5, COUNT * DEGREE)
    np.testing.assert_allclose(np.array(program.times(x)).ravel(), road.lengths_m / (0.5 * STATE_SCALE[State.FORWARD]))


def test_a_drive_that_obeys_the_equations_leaves_no_defects():
    """The start's own state, wheel and pedals still: only what the equations say changes, and by as much."""
    start = launch(CAR).state
    road = winding_road()
    road.curvature_radpm[:] = 0.0
    program = make_program(road, CAR, start, has_slip_limit=False)
    controls = np.tile([0.0, 1.0, 0.0], COUNT)
    x = np.concatenate([np.tile(start / STATE_SCALE, COUNT * DEGREE), controls])
    values, _ = program.derivatives["jac_g"](x, NOTHING)
    defects = np.array(values).ravel()[: COUNT * DEGREE * NUM_STATES].reshape(COUNT, DEGREE, NUM_STATES)
    control = np.zeros(NUM_CONTROLS)
    control[Control.THROTTLE] = 1.0
    state, command = ca.SX.sym("x", NUM_STATES), ca.SX.sym("u", NUM_CONTROLS)
    now = motion(state, command, ca.SX(0.0), CAR)
    per_metre = np.array(ca.Function("f", [state, command], [now.rates / now.progress_mps])(start, control)).ravel()
    # The state stands still, so all that is left over is what it should have changed by.
    expected = -road.lengths_m[:, None, None] * per_metre / STATE_SCALE
    np.testing.assert_allclose(defects, np.broadcast_to(expected, defects.shape), atol=1e-12)
