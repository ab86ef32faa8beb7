"""The minimum-time problem as a nonlinear program, with its derivatives put together point by point.

The lap is cut into intervals of about equal driving time. In each, the state is a cubic that satisfies the equations of
motion at three Radau points (the last is the interval's end), and the controls are constant. All that is not linear in
that happens at single points, twelve numbers in and twelve out, so the big sparse derivatives are small dense ones
between constant matrices. Left to itself, CasADi would differentiate the whole lap direction by direction: ten times
the work.
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

# A control that jumps to and fro gains nothing; this makes the solution unique and costs under 0.01 % of a lap.
SMOOTHING_S = 2e-4

# What a point takes: states, controls. What it gives: the states' slopes, the time a metre takes, both axles' slips.
NUM_INPUTS = NUM_STATES + NUM_CONTROLS
NUM_SLIPS = 2
NUM_OUTPUTS = NUM_STATES + 1 + NUM_SLIPS


@dataclass(frozen=True)
class RoadProfile:
    """The road at the collocation points, (num_intervals, 3): what bounds and bends the car's way."""

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
    """What IPOPT is given: scaled variables (states of all points, then controls), cost, constraints, derivatives."""

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
    """The program of a closed lap, or, with a `start` state, of a way from there to the end.

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

    values, slopes, bends, slope_pattern, bend_pattern = _point(car)
    inputs = ca.reshape(gather @ x, NUM_INPUTS, num_points), ca.DM(road.curvature_radpm.reshape(1, -1))
    y = ca.vec(values.map(num_points)(*inputs))
    y_by_x = _along_diagonal(slope_pattern, slopes.map(num_points)(*inputs)) @ gather
    cost = ca.dot(seconds, y) + 0.5 * ca.dot(x, smooth @ x)
    constraints = linear @ x + select @ y + constant

    cost_weight, weight = ca.MX.sym("cost_weight"), ca.MX.sym("weight", constraints.shape[0])
    y_weight = ca.reshape(select.T @ weight + cost_weight * seconds, NUM_OUTPUTS, num_points)
    bent = gather.T @ _along_diagonal(bend_pattern, bends.map(num_points)(*inputs, y_weight)) @ gather
    none = ca.MX.sym("none", 0)
    return Program(
        variables=x,
        cost_s=cost,
        constraints=constraints,
        derivatives={
            # CasADi takes the gradient's nonzeros for all of it, so there must be no others.
            "grad_f": ca.Function("grad_f", [x, none], [cost, ca.densify(y_by_x.T @ seconds + smooth @ x)]),
            "jac_g": ca.Function("jac_g", [x, none], [constraints, linear + select @ y_by_x]),
            "hess_lag": ca.Function("hess_lag", [x, none, cost_weight, weight], [bent + cost_weight * ca.triu(smooth)]),
        },
        times=ca.Function("times", [x], [ca.sum1(ca.reshape(seconds * y, NUM_OUTPUTS * DEGREE, count)).T]),
    )


def _point(car: CarParameters) -> tuple[ca.Function, ca.Function, ca.Function, ca.Sparsity, ca.Sparsity]:
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
    slopes = ca.jacobian(outputs, inputs)
    bends = ca.triu(ca.hessian(ca.dot(weight, outputs), inputs)[0])
    return (
        ca.Function("point", [inputs, curvature], [outputs], {"cse": True}),
        ca.Function("point_slopes", [inputs, curvature], [slopes.nz[:]], {"cse": True}),
        ca.Function("point_bends", [inputs, curvature, weight], [bends.nz[:]], {"cse": True}),
        slopes.sparsity(),
        bends.sparsity(),
    )


def _along_diagonal(pattern: ca.Sparsity, nonzeros: ca.MX) -> ca.MX:
    """Blocks of one pattern along the diagonal of a big matrix; their nonzeros are the columns of `nonzeros`."""
    return ca.MX(ca.diagcat(*[pattern] * nonzeros.shape[1]), ca.vec(nonzeros))


def _gather(count: int) -> ca.DM:
    """What turns the variables into the points' inputs: a point's states, and the controls of its interval."""
    states = ca.DM.eye(NUM_INPUTS)[:, :NUM_STATES]
    controls = ca.DM.eye(NUM_INPUTS)[:, NUM_STATES:]
    intervals = ca.kron(ca.DM.eye(count), ca.DM.ones(DEGREE, 1))
    return ca.horzcat(ca.kron(ca.DM.eye(count * DEGREE), states), ca.kron(intervals, controls))


def _linear(count: int, car: CarParameters, start: Floats | None) -> tuple[ca.DM, ca.DM]:
    """The constraints' part that is linear in the variables, and the constant part."""
    _, derivative, _ = radau_points()
    within = ca.DM(derivative[1:].T)
    begin = ca.sparsify(ca.DM(np.outer(derivative[0], [0.0] * (DEGREE - 1) + [1.0])))
    over_points = ca.kron(ca.DM.eye(count), within) + ca.kron(_previous(count, start is None), begin)
    defects = ca.kron(over_points, ca.DM.eye(NUM_STATES))
    # The steering command that makes the wanted rate must itself be possible.
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
    """What of the points' outputs goes into the constraints: slopes by metre times metres, and slips."""
    num_points = len(lengths_m) * DEGREE
    outputs = ca.DM.eye(NUM_OUTPUTS)
    return ca.vertcat(
        ca.kron(ca.diag(ca.DM(-np.repeat(lengths_m, DEGREE))), outputs[:NUM_STATES, :]),
        ca.DM(len(lengths_m), num_points * NUM_OUTPUTS),
        ca.kron(ca.DM.eye(num_points), outputs[-NUM_SLIPS:, :]),
    )


def _smooth(count: int, is_closed: bool) -> ca.DM:
    """The smoothing cost's second derivative by the variables."""
    change = _previous(count, is_closed) - ca.DM.eye(count)
    if not is_closed:
        change = change[1:, :]
    over_controls = ca.kron(2.0 * SMOOTHING_S * change.T @ change, ca.DM.eye(NUM_CONTROLS))
    size = count * DEGREE * NUM_STATES
    return ca.diagcat(ca.DM(size, size), over_controls)


def _previous(count: int, is_closed: bool) -> ca.DM:
    """For each interval the one before it; the first of a closed lap follows the last."""
    rows = range(0 if is_closed else 1, count)
    return ca.DM.triplet(list(rows), [(row - 1) % count for row in rows], ca.DM.ones(len(rows)), count, count)


def _unit(size: int, at: int) -> ca.DM:
    """The column vector with a single one."""
    return ca.DM.eye(size)[:, at]
