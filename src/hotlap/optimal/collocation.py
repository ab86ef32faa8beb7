"""The minimum-time problem as a nonlinear program, with its derivatives assembled point by point.

The lap is cut into intervals of about equal driving time. In each, the state is a cubic that satisfies the equations of
motion at three Radau points (the last is the interval's end), and the controls are constant. Every nonlinear term
belongs to one point (twelve inputs, twelve outputs), so the sparse derivatives of the lap are small dense ones between
constant matrices. Assembling them by hand takes a tenth of the time that CasADi's own differentiation of the lap does.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, motion, slips
from hotlap.sim.vehicle import CarParameters

Floats = NDArray[np.float64]

DEGREE = 3

# Slip times stiffness where Pacejka's formula with C = 3/2 peaks.
PEAK_SLIP = float(np.tan(np.pi / 3.0))

# Typical sizes, so that the solver sees numbers around one.
STATE_SCALE = np.array([5.0, 0.3, 40.0, 3.0, 1.0, 0.5, 1.0, 1.0, 3000.0])
CONTROL_SCALE = np.array([4.0, 1.0, 1.0])

# Cost of control changes (s per squared scaled change): makes the solution unique for under 0.01 % of a lap.
SMOOTHING_S = 2e-4

# A point's inputs: states and controls. Its outputs: state derivatives per metre, time per metre, both axles' slips.
NUM_INPUTS = NUM_STATES + NUM_CONTROLS
NUM_SLIPS = 2
NUM_OUTPUTS = NUM_STATES + 1 + NUM_SLIPS


@dataclass(frozen=True)
class RoadProfile:
    """Curvature and bounds of the lateral offset at the collocation points, (num_intervals, 3)."""

    starts_m: Floats  # (num_intervals,) arc length where each interval begins
    lengths_m: Floats  # (num_intervals,)
    curvature_radpm: Floats
    left_m: Floats
    right_m: Floats


@dataclass(frozen=True)
class Guess:
    """States at the collocation points (num_intervals, 3, 9) and controls (num_intervals, 3)."""

    states: Floats
    controls: Floats


@dataclass(frozen=True)
class Program:
    """What IPOPT solves: scaled variables (states of all points, then controls), cost, constraints, derivatives."""

    variables: ca.MX
    cost_s: ca.MX
    constraints: ca.MX  # equations of motion (zero), steering commands, and, where limited, slips
    derivatives: dict[str, ca.Function]  # by CasADi's names
    times: ca.Function  # driving time (s) of each interval, from the variables


def radau_points() -> tuple[Floats, Floats, Floats]:
    """Points in (0, 1], the derivative matrix (point 0 is the start), and the quadrature weights."""
    tau = np.array(ca.collocation_points(DEGREE, "radau"))
    derivative, _, weights = ca.collocation_coeff(tau.tolist())
    return tau, np.array(derivative), np.array(weights).ravel()


def make_program(road: RoadProfile, car: CarParameters, start: Floats | None, has_slip_limit: bool) -> Program:
    """The program of a closed lap, or, with a `start` state, of the drive from there to the end.

    With x the variables and y the points' outputs, cost = w y + x Q x / 2 and constraints = A x + S y + b; the matrices
    are constant.
    """
    count = len(road.lengths_m)
    num_points = count * DEGREE
    x = ca.MX.sym("x", num_points * NUM_STATES + count * NUM_CONTROLS)
    gather, smooth = _gather(count), _smooth(count, is_closed=start is None)
    linear, constant = _linear(count, car, start)
    select = _select(road.lengths_m)
    if not has_slip_limit:
        linear, constant, select = (part[: num_points * NUM_STATES + count, :] for part in (linear, constant, select))
    _, _, weights = radau_points()
    seconds = ca.kron(ca.DM(np.outer(road.lengths_m, weights).ravel()), _unit(NUM_OUTPUTS, NUM_STATES))

    values, jacobian, hessian, jacobian_pattern, hessian_pattern = _point_functions(car)
    inputs = ca.reshape(gather @ x, NUM_INPUTS, num_points), ca.DM(road.curvature_radpm.reshape(1, -1))
    y = ca.vec(values.map(num_points)(*inputs))
    y_by_x = _along_diagonal(jacobian_pattern, jacobian.map(num_points)(*inputs)) @ gather
    cost = ca.dot(seconds, y) + 0.5 * ca.dot(x, smooth @ x)
    constraints = linear @ x + select @ y + constant

    cost_weight, weight = ca.MX.sym("cost_weight"), ca.MX.sym("weight", constraints.shape[0])
    y_weight = ca.reshape(select.T @ weight + cost_weight * seconds, NUM_OUTPUTS, num_points)
    blocks = _along_diagonal(hessian_pattern, hessian.map(num_points)(*inputs, y_weight))
    curvature = gather.T @ blocks @ gather
    no_parameters = ca.MX.sym("no_parameters", 0)
    return Program(
        variables=x,
        cost_s=cost,
        constraints=constraints,
        derivatives={
            # CasADi expects a dense gradient.
            "grad_f": ca.Function("grad_f", [x, no_parameters], [cost, ca.densify(y_by_x.T @ seconds + smooth @ x)]),
            "jac_g": ca.Function("jac_g", [x, no_parameters], [constraints, linear + select @ y_by_x]),
            "hess_lag": ca.Function(
                "hess_lag", [x, no_parameters, cost_weight, weight], [curvature + cost_weight * ca.triu(smooth)]
            ),
        },
        times=ca.Function("times", [x], [ca.sum1(ca.reshape(seconds * y, NUM_OUTPUTS * DEGREE, count)).T]),
    )


def _point_functions(car: CarParameters) -> tuple[ca.Function, ca.Function, ca.Function, ca.Sparsity, ca.Sparsity]:
    """A point's outputs; the nonzeros of their Jacobian and of their weighted sum's upper Hessian; both patterns."""
    inputs, curvature, weight = ca.SX.sym("in", NUM_INPUTS), ca.SX.sym("curvature"), ca.SX.sym("weight", NUM_OUTPUTS)
    state = inputs[:NUM_STATES] * STATE_SCALE
    now = motion(state, inputs[NUM_STATES:] * CONTROL_SCALE, curvature, car)
    front, rear = slips(state[State.FORWARD :], car)
    outputs = ca.vertcat(
        now.rates / now.progress_mps / STATE_SCALE,
        1.0 / now.progress_mps,
        front * car.stiffness_front / PEAK_SLIP,
        rear * car.stiffness_rear / PEAK_SLIP,
    )
    jacobian = ca.jacobian(outputs, inputs)
    hessian = ca.triu(ca.hessian(ca.dot(weight, outputs), inputs)[0])
    return (
        ca.Function("point", [inputs, curvature], [outputs], {"cse": True}),
        ca.Function("point_jacobian", [inputs, curvature], [jacobian.nz[:]], {"cse": True}),
        ca.Function("point_hessian", [inputs, curvature, weight], [hessian.nz[:]], {"cse": True}),
        jacobian.sparsity(),
        hessian.sparsity(),
    )


def _along_diagonal(pattern: ca.Sparsity, nonzeros: ca.MX) -> ca.MX:
    """Blocks of one pattern along the diagonal of a big matrix; their nonzeros are the columns of `nonzeros`."""
    return ca.MX(ca.diagcat(*[pattern] * nonzeros.shape[1]), ca.vec(nonzeros))


def _gather(count: int) -> ca.DM:
    """The matrix from variables to the points' inputs: a point's states and the controls of its interval."""
    states = ca.DM.eye(NUM_INPUTS)[:, :NUM_STATES]
    controls = ca.DM.eye(NUM_INPUTS)[:, NUM_STATES:]
    intervals = ca.kron(ca.DM.eye(count), ca.DM.ones(DEGREE, 1))
    return ca.horzcat(ca.kron(ca.DM.eye(count * DEGREE), states), ca.kron(intervals, controls))


def _linear(count: int, car: CarParameters, start: Floats | None) -> tuple[ca.DM, ca.DM]:
    """The linear and the constant part of the constraints."""
    _, derivative, _ = radau_points()
    within = ca.DM(derivative[1:].T)
    begin = ca.sparsify(ca.DM(np.outer(derivative[0], [0.0] * (DEGREE - 1) + [1.0])))
    over_points = ca.kron(ca.DM.eye(count), within) + ca.kron(_previous(count, start is None), begin)
    defects = ca.kron(over_points, ca.DM.eye(NUM_STATES))
    # The command behind a steering rate must itself lie within full lock.
    steer = _unit(DEGREE * NUM_STATES, (DEGREE - 1) * NUM_STATES + State.STEER).T * STATE_SCALE[State.STEER]
    rate = _unit(NUM_CONTROLS, Control.STEER_RATE).T * (car.steering_lag_s * CONTROL_SCALE[Control.STEER_RATE])
    num_points = count * DEGREE
    linear = ca.vertcat(
        ca.horzcat(defects, ca.DM(num_points * NUM_STATES, count * NUM_CONTROLS)),
        ca.horzcat(ca.kron(ca.DM.eye(count), steer), ca.kron(ca.DM.eye(count), rate)),
        ca.DM(num_points * NUM_SLIPS, num_points * NUM_STATES + count * NUM_CONTROLS),
    )
    constant = np.zeros(linear.shape[0])
    if start is not None:
        constant[: DEGREE * NUM_STATES] = np.outer(derivative[0], start / STATE_SCALE).ravel()
    return linear, ca.DM(constant)


def _select(lengths_m: Floats) -> ca.DM:
    """The matrix from the points' outputs to the constraints: derivatives times interval length, and slips."""
    num_points = len(lengths_m) * DEGREE
    outputs = ca.DM.eye(NUM_OUTPUTS)
    return ca.vertcat(
        ca.kron(ca.diag(ca.DM(-np.repeat(lengths_m, DEGREE))), outputs[:NUM_STATES, :]),
        ca.DM(len(lengths_m), num_points * NUM_OUTPUTS),
        ca.kron(ca.DM.eye(num_points), outputs[-NUM_SLIPS:, :]),
    )


def _smooth(count: int, is_closed: bool) -> ca.DM:
    """The Hessian of the smoothing cost."""
    change = _previous(count, is_closed) - ca.DM.eye(count)
    if not is_closed:
        change = change[1:, :]
    over_controls = ca.kron(2.0 * SMOOTHING_S * change.T @ change, ca.DM.eye(NUM_CONTROLS))
    size = count * DEGREE * NUM_STATES
    return ca.diagcat(ca.DM(size, size), over_controls)


def _previous(count: int, is_closed: bool) -> ca.DM:
    """The matrix that selects each interval's predecessor; on a closed lap the first one's is the last."""
    rows = range(0 if is_closed else 1, count)
    return ca.DM.triplet(list(rows), [(row - 1) % count for row in rows], ca.DM.ones(len(rows)), count, count)


def _unit(size: int, at: int) -> ca.DM:
    """The unit column vector with its one at `at`."""
    return ca.DM.eye(size)[:, at]
