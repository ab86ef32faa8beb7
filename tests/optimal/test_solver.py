"""The solver: known optima on simple roads, every limit respected, failure reported."""

import os
import signal
import threading

import numpy as np
import pytest

from hotlap.optimal import solver as solver_module
from hotlap.optimal.collocation import DEGREE, Guess, RoadProfile
from hotlap.optimal.launch import launch
from hotlap.optimal.mesh import cut_lap, estimate_speed, make_road_profile, resample_guess
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, Control, State
from hotlap.optimal.solver import solve
from hotlap.tracks.registry import load_track
from optimal.kernels import CAR, rates_of, sprint_s

RADIUS_M, HALF_WIDTH_M = 60.0, 5.0


def even_road(length_m: float, count: int, curvature_radpm: float, half_width_m: float) -> RoadProfile:
    """A road that is everywhere the same."""
    edges_m = np.linspace(0.0, length_m, count + 1)
    half = np.full((count, DEGREE), half_width_m)
    return RoadProfile(edges_m[:-1], np.diff(edges_m), np.full((count, DEGREE), curvature_radpm), half, half.copy())


def even_guess(count: int, speed_mps: float, curvature_radpm: float, throttle: float = 0.3) -> Guess:
    """The centreline at one speed."""
    states, controls = np.zeros((count, DEGREE, NUM_STATES)), np.zeros((count, NUM_CONTROLS))
    states[..., State.FORWARD], states[..., State.YAW] = speed_mps, speed_mps * curvature_radpm
    states[..., State.STEER] = -8.0 * curvature_radpm
    states[..., State.THROTTLE] = controls[:, Control.THROTTLE] = throttle
    return Guess(states, controls)


def steady_limit_mps(radius_m: float) -> float:
    """Highest speed at which the simulator's car can circle, over all slip angles of the body."""

    def balance(unknown: np.ndarray, slide_rad: float) -> np.ndarray:
        speed, steer, throttle, shift_kn = unknown
        body = [speed * np.cos(slide_rad), speed * np.sin(slide_rad), speed / radius_m, steer, throttle, 0.0]
        rates = rates_of(np.array([[*body, 1e3 * shift_kn]]), np.array([[steer, throttle, 0.0]]))[0]
        return rates[[0, 1, 2, 6]] * [1.0, 1.0, 1.0, 1e-4]

    best, unknown = 0.0, np.array([20.0, -0.3, 0.2, 0.0])
    for slide_rad in np.linspace(0.0, -0.16, 81):
        for _ in range(12):
            miss = balance(unknown, slide_rad)
            slope = np.empty((4, 4))
            for k, step in enumerate((0.02, 1e-3, 1e-3, 5e-3)):
                moved = unknown.copy()
                moved[k] += step
                slope[:, k] = (balance(moved, slide_rad) - miss) / step
            unknown = unknown - np.clip(np.linalg.solve(slope, miss), -0.5, 0.5)
        if np.abs(balance(unknown, slide_rad)).max() < 1e-3 and abs(unknown[1]) <= 1.0 and 0.0 <= unknown[2] <= 1.0:
            best = max(best, float(unknown[0]))
    return best


def test_on_a_circle_the_best_lap_is_the_inner_edge_at_the_limit_of_grip():
    count = 40
    road = even_road(2.0 * np.pi * RADIUS_M, count, 1.0 / RADIUS_M, HALF_WIDTH_M)
    found = solve(road, even_guess(count, 22.0, 1.0 / RADIUS_M), CAR)
    assert found.is_solved
    inner_m = RADIUS_M - HALF_WIDTH_M
    limit_mps = steady_limit_mps(inner_m)
    assert 25.0 < limit_mps < np.sqrt(CAR.friction * 1.02 * 9.81 * inner_m)  # the tyres' own limit
    assert found.time_s == pytest.approx(2.0 * np.pi * inner_m / limit_mps, rel=1e-3)
    np.testing.assert_allclose(found.states[..., State.LATERAL], HALF_WIDTH_M, atol=0.02)
    assert found.times_s.sum() == pytest.approx(found.time_s)
    # A slip limit costs time.
    limited = solve(road, even_guess(count, 22.0, 1.0 / RADIUS_M), CAR, max_slip_fraction=0.5)
    assert limited.time_s > 1.01 * found.time_s


def test_a_sprint_takes_as_long_as_full_throttle_in_the_simulator():
    start, count, length_m = launch(CAR), 30, 400.0
    road = even_road(length_m, count, 0.0, HALF_WIDTH_M)
    found = solve(road, even_guess(count, 25.0, 0.0, throttle=0.9), CAR, start=start.state)
    assert found.is_solved
    assert found.time_s == pytest.approx(sprint_s(start.state[State.FORWARD :], length_m), rel=1e-3)
    assert found.controls[:-1, Control.THROTTLE].min() > 0.95
    assert np.abs(found.states[..., State.LATERAL]).max() < 0.5


def test_the_steering_rate_stays_within_its_fraction():
    """A narrow slalom, as fast as the steering can follow."""
    count, length_m = 72, 240.0
    road = even_road(length_m, count, 0.0, 0.3)
    at_m = (road.starts_m + 0.5 * road.lengths_m)[:, None] + np.zeros((1, DEGREE))
    road.curvature_radpm[:] = 0.03 * np.sin(2.0 * np.pi * at_m / 40.0)
    times_s = []
    for fraction in (1.0, 0.4):
        found = solve(road, even_guess(count, 18.0, 0.0), CAR, steering_fraction=fraction)
        assert found.is_solved
        rates = np.abs(found.controls[:, Control.STEER_RATE])
        assert rates.max() == pytest.approx(fraction * CAR.steering_rate_per_s, rel=1e-3)
        times_s.append(found.time_s)
    assert times_s[1] > times_s[0]


def test_a_corner_that_comes_too_soon_is_reported_as_not_solved():
    """60 m/s, 20 m before a bend of 10 m radius."""
    count = 20
    road = even_road(60.0, count, 0.0, 3.0)
    road.curvature_radpm[7:] = 0.1
    start = np.zeros(NUM_STATES)
    start[State.FORWARD] = 60.0
    found = solve(road, even_guess(count, 30.0, 0.0), CAR, start=start, max_iterations=100)
    assert not found.is_solved
    assert found.status in {"Infeasible_Problem_Detected", "Maximum_Iterations_Exceeded", "Restoration_Failed"}


def test_the_final_state_is_within_its_bounds():
    """A sprint that has to end at 20 m/s, two metres to the left."""
    start, count, length_m = launch(CAR), 40, 300.0
    road = even_road(length_m, count, 0.0, HALF_WIDTH_M)
    low, high = np.full(NUM_STATES, -np.inf), np.full(NUM_STATES, np.inf)
    low[[State.LATERAL, State.FORWARD]] = 1.9, 19.9
    high[[State.LATERAL, State.FORWARD]] = 2.1, 20.1
    found = solve(road, even_guess(count, 20.0, 0.0), CAR, start=start.state, end=(low, high))
    assert found.is_solved
    end = found.states[-1, -1]
    assert 1.9 - 1e-6 <= end[State.LATERAL] <= 2.1 + 1e-6
    assert 19.9 - 1e-6 <= end[State.FORWARD] <= 20.1 + 1e-6
    # Only the end is bounded: the car goes faster in between and brakes for it.
    assert found.states[..., State.FORWARD].max() > 30.0
    assert found.states[..., State.BRAKE].max() > 0.3


def test_the_steering_command_stays_within_full_lock():
    """In a hairpin that needs full lock, the steering rate falls as the wheel nears the stop."""
    count = 60
    road = even_road(60.0, count, 0.0, 0.4)
    road.curvature_radpm[25:45] = 1.0 / 7.0
    found = solve(road, even_guess(count, 8.0, 0.0), CAR, start=launch(CAR).state)
    assert found.is_solved
    rates = found.controls[:, Control.STEER_RATE]
    commands = found.states[:, -1, State.STEER] + CAR.steering_lag_s * rates
    assert np.abs(commands).max() == pytest.approx(1.0, abs=1e-3)
    assert np.abs(rates).max() == pytest.approx(CAR.steering_rate_per_s, rel=1e-2)  # away from the stop


def test_a_warm_start_finds_the_same_in_fewer_iterations(followed):
    nodes = load_track("track-01").nodes
    edges_m = cut_lap(nodes, estimate_speed(nodes, CAR), 0.2)
    guess = resample_guess(followed[0].arc_m, followed[0].states, followed[0].controls, edges_m)
    road = make_road_profile(nodes, edges_m, CAR)
    warm, cold = (solve(road, guess, CAR, is_warm_start=is_warm_start) for is_warm_start in (True, False))
    assert warm.is_solved
    assert warm.time_s == pytest.approx(cold.time_s, rel=1e-5)
    assert warm.iterations < cold.iterations


class InterruptedSolver:
    """A solver of CasADi that gets Ctrl-C shortly after it starts."""

    def __init__(self, solver):
        self._solver, self.stats = solver, solver.stats

    def __call__(self, **arguments):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        return self._solver(**arguments)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_stops_the_solver(monkeypatch):
    """CasADi swallows the interrupt and returns a status, which must not pass for a lap that cannot be solved."""
    count, real = 800, solver_module.ca.nlpsol
    monkeypatch.setattr(solver_module.ca, "nlpsol", lambda *arguments: InterruptedSolver(real(*arguments)))
    road = even_road(2.0 * np.pi * RADIUS_M, count, 1.0 / RADIUS_M, HALF_WIDTH_M)
    with pytest.raises(KeyboardInterrupt):
        solve(road, even_guess(count, 22.0, 1.0 / RADIUS_M), CAR)
