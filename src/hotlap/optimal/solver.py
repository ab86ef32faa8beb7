"""Solve the nonlinear program of a lap by IPOPT, within the road's edges and the car's limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from hotlap.optimal.collocation import CONTROL_SCALE, DEGREE, STATE_SCALE, Floats, Guess, RoadProfile, make_program
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, State
from hotlap.sim.vehicle import CarParameters

# State bounds. Only those of pedals and steering are active on a good lap.
MIN_SPEED_MPS = 4.0
_LOW = {
    State.HEADING: -1.2,
    State.FORWARD: MIN_SPEED_MPS,
    State.LEFT: -15.0,
    State.YAW: -3.5,
    State.STEER: -1.0,
    State.THROTTLE: 0.0,
    State.BRAKE: 0.0,
    State.SHIFT: -6000.0,
}
_HIGH = {
    State.HEADING: 1.2,
    State.FORWARD: 90.0,
    State.LEFT: 15.0,
    State.YAW: 3.5,
    State.STEER: 1.0,
    State.THROTTLE: 1.0,
    State.BRAKE: 1.0,
    State.SHIFT: 6000.0,
}
# CasADi turns Ctrl-C into one of these: our functions throw nothing themselves, and no callback asks for a stop.
_INTERRUPTED = ("NonIpopt_Exception_Thrown", "User_Requested_Stop")


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


def solve(
    road: RoadProfile,
    guess: Guess,
    car: CarParameters,
    *,
    max_slip_fraction: float | None = None,
    steering_fraction: float = 1.0,
    start: Floats | None = None,
    end: tuple[Floats, Floats] | None = None,
    is_warm_start: bool = False,
    max_iterations: int = 800,
) -> Solution:
    """The fastest way over the road: a closed flying lap, or, with a `start` state, from there to the end.

    `max_slip_fraction` limits both axles' slip to that fraction of the slip of peak grip; `steering_fraction` limits
    the steering rate to that fraction of its maximum. `end` is the lower and upper bound of the final state.
    `is_warm_start` says that the guess is the solution of a similar problem.
    """
    count = len(road.lengths_m)
    program = make_program(road, car, start, has_slip_limit=max_slip_fraction is not None)
    limit = np.zeros(program.constraints.shape[0])
    num_defects = count * DEGREE * NUM_STATES
    limit[num_defects : num_defects + count] = 1.0
    limit[num_defects + count :] = max_slip_fraction
    low, high = _bounds(road, car.steering_rate_per_s * steering_fraction, end)

    problem = {"x": program.variables, "f": program.cost_s, "g": program.constraints}
    solver = ca.nlpsol("lap", "ipopt", problem, _options(max_iterations, is_warm_start) | program.derivatives)
    answer = solver(x0=_flatten(guess), lbx=low, ubx=high, lbg=-limit, ubg=limit)
    stats: Mapping[str, Any] = solver.stats()
    if stats["return_status"] in _INTERRUPTED:
        raise KeyboardInterrupt
    states, controls = _unflatten(np.array(answer["x"]).ravel(), count)
    times_s = np.array(program.times(answer["x"])).ravel()
    return Solution(
        status=str(stats["return_status"]),
        is_solved=bool(stats["success"]),
        time_s=float(times_s.sum()),
        states=states,
        controls=controls,
        times_s=times_s,
        iterations=int(stats["iter_count"]),
    )


def _bounds(road: RoadProfile, rate: float, end: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
    count = len(road.lengths_m)
    low = np.zeros((count, DEGREE, NUM_STATES))
    high = np.zeros((count, DEGREE, NUM_STATES))
    for name in State:
        if name != State.LATERAL:
            low[..., name], high[..., name] = _LOW[name], _HIGH[name]
    low[..., State.LATERAL], high[..., State.LATERAL] = -road.right_m, road.left_m
    if end:
        low[-1, -1] = np.clip(end[0], low[-1, -1], high[-1, -1])
        high[-1, -1] = np.clip(end[1], low[-1, -1], high[-1, -1])
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


def _options(max_iterations: int, is_warm_start: bool) -> dict[str, Any]:
    return {
        "print_time": False,
        "ipopt": {
            "print_level": 0,
            "sb": "yes",
            "max_iter": max_iterations,
            "tol": 1e-6,
            "acceptable_tol": 1e-5,
            "acceptable_iter": 8,
            # From a warm start a small initial barrier halves the iterations.
            **({"mu_strategy": "monotone", "mu_init": 1e-5} if is_warm_start else {"mu_strategy": "adaptive"}),
            "linear_solver": "mumps",
        },
    }
