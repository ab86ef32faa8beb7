"""Whole laps: consistent in themselves, refined until the mesh does not matter, refused when they cannot be trusted."""

from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.optimal import FOLLOWER_AIMS
from hotlap.errors import OptimalError
from hotlap.optimal import lap
from hotlap.optimal.collocation import Guess, Road, Solution
from hotlap.optimal.lap import INTERVALS_S, TOLERANCE, Aims, solve_flying, solve_standing
from hotlap.optimal.launch import launch
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import Control, State
from hotlap.optimal.store import find_reference
from hotlap.tracks.registry import load_track

from .kernels import CAR

TRACK = load_track("track-01")
NODES = TRACK.nodes


def driven_s(plan) -> float:
    """Time over a plan's points, from speeds, angles and curvature alone."""
    states = plan.states
    curvature = along_track(NODES.curvature_radpm, NODES, plan.arc_m)
    heading = states[:, State.HEADING]
    along_mps = states[:, State.FORWARD] * np.cos(heading) - states[:, State.LEFT] * np.sin(heading)
    pace = (1.0 - states[:, State.LATERAL] * curvature) / along_mps
    return float(np.sum(0.5 * (pace[1:] + pace[:-1]) * np.diff(plan.arc_m)))


def test_the_flying_lap_closes_and_takes_what_its_speeds_say(followed):
    flying, _ = followed
    assert flying.arc_m[-1] == pytest.approx(NODES.length_m)
    assert flying.mesh_change < TOLERANCE
    first_piece_s = flying.arc_m[0] / flying.states[-1, State.FORWARD]
    assert driven_s(flying) + first_piece_s == pytest.approx(flying.time_s, rel=2e-3)
    # Just over the line the car is what it was just before.
    step = np.abs(flying.states[0] - flying.states[-1])
    assert step[State.FORWARD] < 0.5
    assert step[State.LATERAL] < 0.2


def test_the_standing_lap_begins_with_the_launch(followed):
    flying, standing = followed
    start = launch(CAR)
    assert standing.arc_m[0] > start.distance_m
    assert standing.states[0, State.FORWARD] == pytest.approx(start.state[State.FORWARD], abs=1.0)
    first_piece_s = (standing.arc_m[0] - start.distance_m) / start.state[State.FORWARD]
    assert start.time_s + first_piece_s + driven_s(standing) == pytest.approx(standing.time_s, rel=2e-3)
    assert flying.time_s + 2.0 < standing.time_s < flying.time_s + 6.0


def test_what_the_follower_keeps_in_hand_is_kept(followed):
    for plan in followed:
        left_m = along_track(NODES.road_left_m, NODES, plan.arc_m) - plan.states[:, State.LATERAL]
        right_m = along_track(NODES.road_right_m, NODES, plan.arc_m) + plan.states[:, State.LATERAL]
        assert min(left_m.min(), right_m.min()) == pytest.approx(FOLLOWER_AIMS.margin_m, abs=1e-3)
        limit = FOLLOWER_AIMS.steering_share * CAR.steering_rate_per_s
        assert np.abs(plan.controls[:, Control.STEER_RATE]).max() <= limit * 1.001


def test_it_costs_less_than_half_a_percent_and_gains_nothing(followed):
    reference = find_reference(TRACK)
    assert 1.0 < followed[0].time_s / reference.lap_time_s < 1.005
    assert 1.0 < followed[1].time_s / reference.standing_lap_time_s < 1.005


class Solver:
    """Answers with the times it is given, one after the other, and notes what it was asked."""

    def __init__(self, times_s: list[float], status: str = "Solve_Succeeded") -> None:
        self.times_s, self.status, self.asked = list(times_s), status, []

    def __call__(self, road: Road, guess: Guess, car, **options) -> Solution:
        self.asked.append((len(road.lengths_m), options))
        is_solved = self.status == "Solve_Succeeded"
        time_s = self.times_s.pop(0)
        times_s = np.full(len(road.lengths_m), time_s / len(road.lengths_m))
        return Solution(self.status, is_solved, time_s, guess.states, guess.controls, times_s, 7)


def stand_in(monkeypatch, *times_s: float, status: str = "Solve_Succeeded") -> Solver:
    solver = Solver(list(times_s), status)
    monkeypatch.setattr(lap, "solve", solver)
    return solver


def test_refinement_stops_when_the_lap_no_longer_changes(monkeypatch):
    solver = stand_in(monkeypatch, 30.0, 29.9, 29.899, 29.0)
    plan = solve_flying(NODES)
    assert plan.time_s == 29.899
    assert plan.mesh_change == pytest.approx(1.0 - 29.899 / 29.9)
    counts = [count for count, _ in solver.asked]
    assert len(counts) == 3
    assert counts == sorted(set(counts))  # ever finer
    assert plan.states.shape == (3 * counts[-1], 9)


def test_a_lap_that_never_settles_is_not_trusted(monkeypatch):
    stand_in(monkeypatch, 30.0, 29.0, 28.0, 27.0)
    with pytest.raises(OptimalError, match=r"still changes by 3\.571 % on the finest mesh"):
        solve_flying(NODES)
    assert len(INTERVALS_S) == 4


def test_a_solver_that_gives_up_is_quoted(monkeypatch):
    stand_in(monkeypatch, 30.0, status="Infeasible_Problem_Detected")
    with pytest.raises(OptimalError, match=r"did not converge on \d+ intervals: Infeasible_Problem_Detected after 7"):
        solve_flying(NODES)
    stand_in(monkeypatch, 30.0, status="Restoration_Failed")
    with pytest.raises(OptimalError, match=r"standing lap did not converge: Restoration_Failed"):
        solve_standing(NODES)


def test_aims_reach_the_solver(monkeypatch):
    aims = Aims(margin_m=0.3, most_slip=0.7, steering_share=0.5)
    solver = stand_in(monkeypatch, 30.0, 30.0)
    solve_flying(NODES, aims)
    standing = stand_in(monkeypatch, 30.0)
    plan = solve_standing(NODES, aims)
    for _, options in (*solver.asked, *standing.asked):
        assert (options["most_slip"], options["steering_share"]) == (0.7, 0.5)
    assert plan.time_s == pytest.approx(30.0 + launch(CAR).time_s)
    assert replace(aims, margin_m=0.0).margin_m == Aims().margin_m == 0.0
