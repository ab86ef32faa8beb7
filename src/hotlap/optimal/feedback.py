"""Feedback gains that bring a car back to its plan: a linear-quadratic regulator along the track."""

from functools import lru_cache

import casadi as ca
import numpy as np

from hotlap.optimal.collocation import Floats
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, motion
from hotlap.optimal.plan import Plan
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.vehicle import CarParameters

# Quadratic costs of state deviations and control corrections: one over the square of a typical size of each.
_STATE_COST = np.zeros(NUM_STATES)
_STATE_COST[[State.LATERAL, State.HEADING, State.FORWARD]] = 1.0 / np.array([0.3, 0.1, 1.0]) ** 2
_STATE_COST[[State.LEFT, State.YAW]] = 1.0 / np.array([1.0, 0.4]) ** 2
_CONTROL_COST = np.zeros(NUM_CONTROLS)
_CONTROL_COST[[Control.STEER_RATE, Control.THROTTLE, Control.BRAKE]] = 1.0 / np.array([6.0, 0.7, 0.4]) ** 2
_LAPS_BACK = 2


@lru_cache(maxsize=4)
def _slopes(car: CarParameters) -> ca.Function:
    """State and control Jacobians of the motion along the track (per metre)."""
    state, control, curvature = ca.SX.sym("x", NUM_STATES), ca.SX.sym("u", NUM_CONTROLS), ca.SX.sym("k")
    now = motion(state, control, curvature, car)
    per_metre = now.rates / now.progress_mps
    outputs = [ca.jacobian(per_metre, state), ca.jacobian(per_metre, control), 1.0 / now.progress_mps]
    return ca.Function("slopes", [state, control, curvature], outputs)


def feedback_gains(plan: Plan, nodes: RibbonNodes, car: CarParameters | None = None) -> Floats:
    """Gains (num_points, 3, 9): the control correction is minus the gain times the deviation from the plan.

    The Riccati recursion runs backwards over the closed lap twice, so that its initial value no longer matters.
    """
    car = car or CarParameters()
    count = len(plan.arc_m)
    steps_m = np.diff(np.concatenate([[2.0 * plan.arc_m[0] - plan.arc_m[1]], plan.arc_m]))
    curvature = along_track(nodes.curvature_radpm, nodes, plan.arc_m)
    by_state, by_control, pace = _slopes(car).map(count)(plan.states.T, plan.controls.T, curvature[None, :])
    a_all = np.array(by_state).reshape(NUM_STATES, count, NUM_STATES).transpose(1, 0, 2)
    b_all = np.array(by_control).reshape(NUM_STATES, count, NUM_CONTROLS).transpose(1, 0, 2)
    seconds = np.array(pace).ravel() * steps_m

    overs = [_over_step(a_all[k], b_all[k], steps_m[k]) for k in range(count)]
    control_cost, state_cost = np.diag(_CONTROL_COST), np.diag(_STATE_COST)
    gains = np.zeros((count, NUM_CONTROLS, NUM_STATES))
    value = state_cost
    for step in range(_LAPS_BACK * count - 1, -1, -1):
        k = step % count
        a, b = overs[k][:NUM_STATES, :NUM_STATES], overs[k][:NUM_STATES, NUM_STATES:]
        cost = control_cost * seconds[k] + b.T @ value @ b
        gains[k] = np.linalg.solve(cost, b.T @ value @ a)
        value = state_cost * seconds[k] + a.T @ value @ (a - b @ gains[k])
        value = 0.5 * (value + value.T)
    return gains


def _over_step(a: Floats, b: Floats, step_m: float) -> Floats:
    """Exact transition of state and held control over `step_m`: the exponential of the joint matrix.

    Scaling and squaring with a Taylor series, written here because SciPy is not a dependency.
    """
    joint = np.zeros((NUM_STATES + NUM_CONTROLS,) * 2)
    joint[:NUM_STATES, :NUM_STATES], joint[:NUM_STATES, NUM_STATES:] = a * step_m, b * step_m
    halvings = max(0, int(np.ceil(np.log2(max(np.abs(joint).sum(axis=1).max(), 1e-9) / 0.25))))
    joint /= 2.0**halvings
    result, term = np.eye(len(joint)), np.eye(len(joint))
    for order in range(1, 9):
        term = term @ joint / order
        result = result + term
    for _ in range(halvings):
        result = result @ result
    return result
