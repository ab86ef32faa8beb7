"""Feedback gains: their signs, and that they bring a car back to the plan."""

import casadi as ca
import numpy as np

from hotlap.optimal.feedback import feedback_gains
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State, motion
from hotlap.tracks.registry import load_track
from optimal.kernels import CAR

NODES = load_track("track-01").nodes


def test_a_car_left_of_the_plan_or_pointing_left_is_steered_right_and_a_fast_one_slowed(followed):
    flying, _ = followed
    gains = feedback_gains(flying, NODES)
    assert gains.shape == (len(flying.arc_m), NUM_CONTROLS, NUM_STATES)
    assert np.isfinite(gains).all()
    # The correction is minus gain times deviation; a positive steering rate turns right.
    assert (gains[:, Control.STEER_RATE, State.LATERAL] < 0.0).mean() > 0.95
    assert (gains[:, Control.STEER_RATE, State.HEADING] < 0.0).mean() > 0.95
    # In bends the pedals also turn the car; on the straights they are for the speed alone.
    straight = (np.abs(flying.states[:, State.YAW]) < 0.05) & (flying.states[:, State.BRAKE] < 0.02)
    assert straight.sum() > 50
    assert (gains[straight, Control.THROTTLE, State.FORWARD] > 0.0).mean() > 0.9
    assert (gains[straight, Control.BRAKE, State.FORWARD] < 0.0).mean() > 0.9


def test_a_small_deviation_decays_with_feedback_and_not_without(followed):
    """The linear motion around the plan, step by step for half a lap, with and without the gains."""
    flying, _ = followed
    gains = feedback_gains(flying, NODES)
    x, u, k = ca.SX.sym("x", NUM_STATES), ca.SX.sym("u", NUM_CONTROLS), ca.SX.sym("k")
    now = motion(x, u, k, CAR)
    per_metre = ca.Function("f", [x, u, k], [now.rates / now.progress_mps])
    curvature = along_track(NODES.curvature_radpm, NODES, flying.arc_m)
    offset = np.zeros(NUM_STATES)
    offset[[State.LATERAL, State.FORWARD]] = 1e-3, 1e-3
    steered, free = offset.copy(), offset.copy()
    for point in range(len(flying.arc_m) // 2):
        step_m = (flying.arc_m[point + 1] - flying.arc_m[point]) / 8
        state, control = flying.states[point], flying.controls[point]
        there = np.array(per_metre(state, control, curvature[point])).ravel()
        for _ in range(8):
            taken = gains[point] @ steered
            steered = steered + step_m * (
                np.array(per_metre(state + steered, control - taken, curvature[point])).ravel() - there
            )
            free = free + step_m * (np.array(per_metre(state + free, control, curvature[point])).ravel() - there)
    assert abs(steered[State.LATERAL]) < 1e-4
    assert np.abs(free[: State.STEER]).max() > 10.0 * np.abs(steered[: State.STEER]).max()
