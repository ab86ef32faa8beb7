"""The transcription: exact for polynomials, and its derivatives equal CasADi's own."""

import casadi as ca
import numpy as np
import pytest

from hotlap.optimal.collocation import DEGREE, STATE_SCALE, RoadProfile, make_program, radau_points
from hotlap.optimal.launch import launch
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, motion
from optimal.kernels import CAR

COUNT = 9
NOTHING = ca.DM(0, 1)


def winding_road() -> RoadProfile:
    rng = np.random.default_rng(3)
    lengths_m = rng.uniform(3.0, 6.0, COUNT)
    starts_m = np.concatenate([[0.0], np.cumsum(lengths_m)[:-1]])
    half_m = np.full((COUNT, DEGREE), 5.0)
    return RoadProfile(starts_m, lengths_m, rng.normal(0.0, 0.02, (COUNT, DEGREE)), half_m, half_m)


def some_drive() -> np.ndarray:
    """Random scaled variables with the car going forwards."""
    rng = np.random.default_rng(4)
    size = COUNT * (DEGREE * NUM_STATES + NUM_CONTROLS)
    x = rng.uniform(-0.3, 0.3, size)
    x[State.FORWARD : COUNT * DEGREE * NUM_STATES : NUM_STATES] = rng.uniform(0.4, 1.0, COUNT * DEGREE)
    return x


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


@pytest.mark.parametrize("has_slip_limit", [False, True])
@pytest.mark.parametrize("is_flying", [True, False])
def test_gradient_jacobian_and_hessian_are_those_of_cost_constraints_and_lagrangian(is_flying, has_slip_limit):
    start = None if is_flying else launch(CAR).state
    program = make_program(winding_road(), CAR, start, has_slip_limit=has_slip_limit)
    variables, cost_s, constraints = program.variables, program.cost_s, program.constraints
    x, weight = some_drive(), np.random.default_rng(5).normal(size=constraints.shape[0])

    def evaluated(*expressions) -> list[np.ndarray]:
        return [np.array(value) for value in ca.Function("f", [variables], expressions).call([x])]

    cost, gradient = program.derivatives["grad_f"](x, NOTHING)
    expected = evaluated(cost_s, ca.gradient(cost_s, variables))
    assert gradient.is_dense()
    np.testing.assert_allclose(np.array(cost), expected[0], rtol=1e-12)
    np.testing.assert_allclose(np.array(gradient), expected[1], atol=1e-12)

    values, jacobian = program.derivatives["jac_g"](x, NOTHING)
    expected = evaluated(constraints, ca.jacobian(constraints, variables))
    np.testing.assert_allclose(np.array(values), expected[0], atol=1e-12)
    np.testing.assert_allclose(np.array(jacobian), expected[1], atol=1e-11)
    assert np.abs(np.array(jacobian)).max(axis=1).min() > 0.0  # no row is empty

    [hessian] = evaluated(ca.hessian(1.7 * cost_s + ca.dot(ca.DM(weight), constraints), variables)[0])
    found = program.derivatives["hess_lag"](x, NOTHING, 1.7, weight)
    np.testing.assert_allclose(np.array(found), np.triu(hessian), atol=1e-10)


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


def test_defects_are_what_the_equations_say_the_state_should_change_by():
    """A constant state: the defect is minus the change that the equations demand."""
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
    expected = -road.lengths_m[:, None, None] * per_metre / STATE_SCALE
    np.testing.assert_allclose(defects, np.broadcast_to(expected, defects.shape), atol=1e-12)
