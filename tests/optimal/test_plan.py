"""Plans: solutions as points along the track, and guesses derived from the flying lap."""

import numpy as np
import pytest

from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State
from hotlap.optimal.plan import RUN_UP_MPS2, RUN_UP_WPKG, Plan, guess_from_flying, make_plan, reachable_speed
from hotlap.optimal.solver import Solution

LAP_M = 1000.0


def even_lap(speed_mps: float = 30.0) -> Plan:
    """A lap of 1 km at one speed, two metres left of the centreline, wheel and pedals held."""
    states = np.zeros((500, NUM_STATES))
    states[:, [State.LATERAL, State.FORWARD, State.STEER, State.THROTTLE]] = 2.0, speed_mps, -0.2, 0.4
    controls = np.tile([0.0, 0.4, 0.0], (500, 1))
    return Plan(np.linspace(0.0, LAP_M, 501)[1:], states, controls, LAP_M / speed_mps, 0.0)


def going(speed_mps: float) -> np.ndarray:
    state = np.zeros(NUM_STATES)
    state[[State.LATERAL, State.FORWARD, State.THROTTLE]] = -1.0, speed_mps, 1.0
    return state


def test_a_plan_has_the_solutions_points_in_order():
    states = np.arange(2 * 3 * NUM_STATES, dtype=float).reshape(2, 3, NUM_STATES)
    controls = np.arange(2 * NUM_CONTROLS, dtype=float).reshape(2, NUM_CONTROLS)
    found = Solution("Solve_Succeeded", True, 1.5, states, controls, np.array([0.5, 1.0]), 7)
    plan = make_plan(np.array([10.0, 14.0, 20.0]), found)
    assert plan.arc_m.shape == (6,)
    assert (plan.arc_m[2], plan.arc_m[5]) == (pytest.approx(14.0), pytest.approx(20.0))
    np.testing.assert_array_equal(plan.states, states.reshape(6, NUM_STATES))
    np.testing.assert_array_equal(plan.controls[:3], controls[[0, 0, 0]])
    np.testing.assert_array_equal(plan.controls[3:], controls[[1, 1, 1]])
    assert plan.time_s == 1.5
    assert np.isnan(plan.mesh_change)


def test_speed_grows_at_constant_acceleration_and_then_at_constant_power():
    """Second by second: v + a t, and later the square root of v squared + 2 p t."""
    state = going(8.0)
    assert reachable_speed(state, np.array([0.0]))[0] == 8.0
    even_s = (RUN_UP_WPKG / RUN_UP_MPS2 - 8.0) / RUN_UP_MPS2
    clock_s = np.linspace(0.0, even_s + 6.0, 200_001)
    speed_mps = np.where(
        clock_s < even_s,
        8.0 + RUN_UP_MPS2 * clock_s,
        np.sqrt((8.0 + RUN_UP_MPS2 * even_s) ** 2 + 2.0 * RUN_UP_WPKG * np.maximum(clock_s - even_s, 0.0)),
    )
    metres = np.concatenate([[0.0], np.cumsum(0.5 * (speed_mps[1:] + speed_mps[:-1]) * np.diff(clock_s))])
    np.testing.assert_allclose(reachable_speed(state, metres), speed_mps, rtol=1e-6)
    assert speed_mps[-1] > 40.0
    # A fast car is limited by power from the start.
    gained2 = reachable_speed(going(40.0), np.array([1.0]))[0] ** 2 - 40.0**2
    assert gained2 == pytest.approx(2.0 * RUN_UP_WPKG / 40.0, rel=0.01)


def test_a_slow_car_accelerates_and_then_drives_the_lap():
    lap = even_lap()
    guess = guess_from_flying(lap, LAP_M, 0.0, going(8.0))
    np.testing.assert_array_equal(guess.arc_m, lap.arc_m)
    speed_mps = guess.states[:, State.FORWARD]
    slow = reachable_speed(going(8.0), guess.arc_m) < 30.0
    assert 20 < slow.sum() < 100
    assert (np.diff(speed_mps[slow]) > 0.0).all()
    np.testing.assert_allclose(guess.states[~slow], lap.states[~slow])
    np.testing.assert_allclose(guess.controls[~slow], lap.controls[~slow])
    # At first it has the car's own state and controls.
    assert guess.states[0, State.LATERAL] == pytest.approx(-1.0, abs=0.05)
    assert guess.controls[0, Control.THROTTLE] == pytest.approx(1.0, abs=0.05)
    assert (np.diff(guess.states[slow, State.LATERAL]) >= 0.0).all()


def test_a_guess_continues_past_the_start_line_and_is_never_faster_than_the_lap():
    lap = even_lap()
    assert (guess_from_flying(lap, LAP_M, 0.0, going(50.0)).states[:, State.FORWARD] == 30.0).all()
    guess = guess_from_flying(lap, LAP_M, 900.5, going(29.0))
    assert guess.arc_m[0] == pytest.approx(902.0)
    assert guess.arc_m[-1] == pytest.approx(1900.0)
    assert (np.diff(guess.arc_m) > 0.0).all()
    np.testing.assert_allclose(guess.states[-1], lap.states[0])
