"""The minimum-time problem as a nonlinear program, and its solution by IPOPT.

The lap is cut into intervals of about equal driving time. In each, the state is a cubic that satisfies the equations of
motion at three Radau points (the last is the interval's end), and the controls are constant. Road edges bound the car's
centre at every point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

# What the car may do anywhere: wide enough never to bind on a good lap, except for pedals and wheel.
MIN_SPEED_MPS = 4.0
_LOW = {State.HEADING: -1.2, State.FORWARD: MIN_SPEED_MPS, State.LEFT: -15.0, State.YAW: -3.5, State.STEER: -1.0}
_HIGH = {State.HEADING: 1.2, State.FORWARD: 90.0, State.LEFT: 15.0, State.YAW: 3.5, State.STEER: 1.0}
_LOW |= {State.THROTTLE: 0.0, State.BRAKE: 0.0, State.SHIFT: -6000.0}
_HIGH |= {State.THROTTLE: 1.0, State.BRAKE: 1.0, State.SHIFT: 6000.0}

# A control that jumps to and fro gains nothing; this makes the solution unique and costs under 0.01 % of a lap.
SMOOTHING_S = 2e-4


@dataclass(frozen=True)
class Road:
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
class Solution:
    """What the solver found; states and controls as in `Guess`."""

    status: str
    is_solved: bool
    time_s: float
    states: Floats
    controls: Floats
    times_s: Floats  # (num_intervals,) driving time of each interval
    iterations: int


def radau_points() -> tuple[Floats, Floats, Floats]:
    """Points in (0, 1], the derivative matrix (point 0 is the start), and the quadrature weights."""
    tau = np.array(ca.collocation_points(DEGREE, "radau"))
    derivative, _, weights = ca.collocation_coeff(tau.tolist())
    return tau, np.array(derivative), np.array(weights).ravel()


def solve(
    road: Road,
    guess: Guess,
    car: CarParameters,
    *,
    most_slip: float | None = None,
    steering_share: float = 1.0,
    start: Floats | None = None,
    is_near: bool = False,
    max_iterations: int = 800,
) -> Solution:
    """The fastest way over the road: a closed flying lap, or, with a `start` state, from there to the end.

    `most_slip` keeps both axles' slip below that share of the slip at which they grip most; `steering_share` is how
    much of the wheel's greatest speed may be used. `is_near` says that the guess is a solution on another mesh.
    """
    count = len(road.lengths_m)
    states = ca.MX.sym("states", NUM_STATES, count * DEGREE)
    controls = ca.MX.sym("controls", NUM_CONTROLS, count)
    ends = states[:, DEGREE - 1 :: DEGREE]
    first = ends[:, -1] if start is None else ca.DM(start / STATE_SCALE)
    begins = ca.horzcat(first, ends[:, :-1])
    stacked = ca.reshape(states, NUM_STATES * DEGREE, count)

    piece = _interval(car).map(count)
    defects, times, sliding = piece(begins, stacked, controls, ca.DM(road.curvature_radpm.T), ca.DM(road.lengths_m).T)
    following = ca.horzcat(controls[:, 1:], controls[:, 0] if start is None else controls[:, -1])
    cost = ca.sum2(times) + SMOOTHING_S * ca.sumsqr(following - controls)
    # The steering command that makes the wanted rate must itself be possible.
    command = (
        ends[State.STEER, :] * STATE_SCALE[State.STEER]
        + car.steering_lag_s * controls[Control.STEER_RATE, :] * CONTROL_SCALE[Control.STEER_RATE]
    )
    rows, limits = [ca.vec(defects), ca.vec(command)], [np.zeros(NUM_STATES * DEGREE * count), np.ones(count)]
    if most_slip is not None:
        rows.append(ca.vec(sliding))
        limits.append(np.full(2 * DEGREE * count, most_slip))
    constraints, limit = ca.vertcat(*rows), np.concatenate(limits)
    low, high = _bounds(road, car.steering_rate_per_s * steering_share)

    variables = ca.vertcat(ca.vec(states), ca.vec(controls))
    solver = ca.nlpsol("lap", "ipopt", {"x": variables, "f": cost, "g": constraints}, _options(max_iterations, is_near))
    answer = solver(x0=_flatten(guess), lbx=low, ubx=high, lbg=-limit, ubg=limit)
    stats: Mapping[str, Any] = solver.stats()
    flat = np.array(answer["x"]).ravel()
    found_states, found_controls = _unflatten(flat, count)
    times_s = np.array(ca.Function("times", [variables], [times])(answer["x"])).ravel()
    return Solution(
        status=str(stats["return_status"]),
        is_solved=bool(stats["success"]),
        time_s=float(times_s.sum()),
        states=found_states,
        controls=found_controls,
        times_s=times_s,
        iterations=int(stats["iter_count"]),
    )


def _interval(car: CarParameters) -> ca.Function:
    """Defects, driving time and slips (1 is where a tyre grips most) of one interval, in scaled variables."""
    _, derivative, weights = radau_points()
    begin = ca.SX.sym("begin", NUM_STATES)
    inner = ca.SX.sym("inner", NUM_STATES, DEGREE)
    control = ca.SX.sym("control", NUM_CONTROLS)
    curvature = ca.SX.sym("curvature", DEGREE)
    length = ca.SX.sym("length")
    points = ca.horzcat(begin, inner)
    defects, sliding, time = [], [], ca.SX(0)
    for j in range(DEGREE):
        state = inner[:, j] * STATE_SCALE
        now = motion(state, control * CONTROL_SCALE, curvature[j], car)
        slope = ca.mtimes(points, ca.DM(derivative[:, j]))
        defects.append(slope - length * now.rates / now.progress_mps / STATE_SCALE)
        time += length * float(weights[j]) / now.progress_mps
        front, rear = slips(state[State.FORWARD :], car)
        sliding += [front * car.stiffness_front / PEAK_SLIP, rear * car.stiffness_rear / PEAK_SLIP]
    return ca.Function(
        "interval",
        [begin, ca.reshape(inner, NUM_STATES * DEGREE, 1), control, curvature, length],
        [ca.vertcat(*defects), time, ca.vertcat(*sliding)],
    )


def _bounds(road: Road, rate: float) -> tuple[Floats, Floats]:
    count = len(road.lengths_m)
    low = np.zeros((count, DEGREE, NUM_STATES))
    high = np.zeros((count, DEGREE, NUM_STATES))
    for name in State:
        if name != State.LATERAL:
            low[..., name], high[..., name] = _LOW[name], _HIGH[name]
    low[..., State.LATERAL], high[..., State.LATERAL] = -road.right_m, road.left_m
    low_u = np.tile(np.array([-rate, 0.0, 0.0]) / CONTROL_SCALE, (count, 1))
    high_u = np.tile(np.array([rate, 1.0, 1.0]) / CONTROL_SCALE, (count, 1))
    return (
        np.concatenate([(low / STATE_SCALE).ravel(), low_u.ravel()]),
        np.concatenate([(high / STATE_SCALE).ravel(), high_u.ravel()]),
    )


def _flatten(guess: Guess) -> Floats:
    return np.concatenate([(guess.states / STATE_SCALE).ravel(), (guess.controls / CONTROL_SCALE).ravel()])


def _unflatten(flat: Floats, count: int) -> tuple[Floats, Floats]:
    split = count * DEGREE * NUM_STATES
    states = flat[:split].reshape(count, DEGREE, NUM_STATES) * STATE_SCALE
    return states, flat[split:].reshape(count, NUM_CONTROLS) * CONTROL_SCALE


def _options(max_iterations: int, is_near: bool) -> dict[str, Any]:
    return {
        "print_time": False,
        "ipopt": {
            "print_level": 0,
            "sb": "yes",
            "max_iter": max_iterations,
            "tol": 1e-6,
            "acceptable_tol": 1e-5,
            "acceptable_iter": 8,
            # From a guess that is almost the answer, the barrier may begin low: half the iterations.
            **({"mu_strategy": "monotone", "mu_init": 1e-4} if is_near else {"mu_strategy": "adaptive"}),
            "linear_solver": "mumps",
        },
    }
