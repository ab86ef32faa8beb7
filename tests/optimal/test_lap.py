"""Whole laps: consistent in themselves, refined until the mesh does not matter, refused when they cannot be trusted."""

from types import SimpleNamespace

import numpy as np
import pytest

from hotlap.drivers.optimal_follower import FOLLOWER_AIMS
from hotlap.errors import OptimalError
from hotlap.optimal import lap
from hotlap.optimal.collocation import Guess, RoadProfile
from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.launch import launch
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import Control, State
from hotlap.optimal.plan import INTERVALS_S, ROUGH_AIMS, TOLERANCE, Aims
from hotlap.optimal.reference import find_reference
from hotlap.optimal.solver import Solution
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
    """Answers with the times it is given, one after the other, and notes what it was asked; None is a failure."""

    def __init__(self, times_s: list[float | None]) -> None:
        self.times_s, self.asked = list(times_s), []

    def __call__(self, road: RoadProfile, guess: Guess, car, **options) -> Solution:
        self.asked.append(SimpleNamespace(count=len(road.lengths_m), guess=guess, road=road, **options))
        time_s = self.times_s.pop(0)
        status = "Infeasible_Problem_Detected" if time_s is None else "Solve_Succeeded"
        times_s = np.full(len(road.lengths_m), (time_s or 0.0) / len(road.lengths_m))
        return Solution(status, time_s is not None, time_s or 0.0, guess.states, guess.controls, times_s, 7)

    @property
    def near(self) -> list[bool]:
        return [one.is_near for one in self.asked]

    @property
    def counts(self) -> list[int]:
        return [one.count for one in self.asked]


def stand_in(monkeypatch, *times_s: float | None) -> Solver:
    solver = Solver(list(times_s))
    monkeypatch.setattr(lap, "solve", solver)
    return solver


@pytest.mark.parametrize("solve_lap", [solve_flying, solve_standing])
def test_refinement_stops_when_the_lap_no_longer_changes(monkeypatch, solve_lap):
    solver = stand_in(monkeypatch, 31.0, 30.0, 29.9, 29.899, 29.0)
    plan = solve_lap(NODES)
    launch_s = launch(CAR).time_s if solve_lap is solve_standing else 0.0
    assert plan.time_s == pytest.approx(29.899 + launch_s)
    assert plan.mesh_change == pytest.approx(1.0 - 29.899 / 29.9)
    assert len(solver.counts) == 4
    assert solver.counts == sorted(set(solver.counts))  # ever finer
    assert plan.states.shape == (3 * solver.counts[-1], 9)


def test_a_lap_begins_from_a_rough_one_with_something_in_hand(monkeypatch):
    solver = stand_in(monkeypatch, 31.0, 30.0, 30.0)
    solve_flying(NODES)
    assert solver.near == [False, True, True]
    assert [one.most_slip for one in solver.asked] == [ROUGH_AIMS.most_slip, None, None]
    narrower_m = along_track(NODES.road_left_m, NODES, solver.asked[0].road.starts_m).max()
    assert solver.asked[0].road.left_m.max() == pytest.approx(narrower_m - ROUGH_AIMS.margin_m, abs=0.02)


def test_a_lap_that_is_near_spares_the_rough_one(monkeypatch, followed):
    solver = stand_in(monkeypatch, 30.0, 30.0)
    solve_flying(NODES, near=followed[0])
    assert solver.near == [True, True]
    given = np.interp(40.0, followed[0].arc_m, followed[0].states[:, State.LATERAL])
    at_m = solver.asked[0].road.starts_m + solver.asked[0].road.lengths_m
    taken = np.interp(40.0, at_m, solver.asked[0].guess.states[:, -1, State.LATERAL])
    assert taken == pytest.approx(given, abs=0.05)


def test_a_standing_lap_is_sought_from_the_flying_one_slowed_down(monkeypatch, followed):
    flying, _ = followed
    solver = stand_in(monkeypatch, 30.0, 30.0)
    solve_standing(NODES, near=flying)
    states = solver.asked[0].guess.states
    assert states[0, 0, State.FORWARD] == pytest.approx(launch(CAR).state[State.FORWARD], abs=1.0)
    assert states[0, 0, State.THROTTLE] > 0.9
    late = solver.asked[0].road.starts_m > 0.6 * NODES.length_m
    speed_mps = np.interp(solver.asked[0].road.starts_m[late], flying.arc_m, flying.states[:, State.FORWARD])
    np.testing.assert_allclose(states[late, 0, State.FORWARD], speed_mps, atol=1.0)


def test_what_fails_from_near_is_tried_more_patiently_and_then_from_nothing(monkeypatch):
    solver = stand_in(monkeypatch, 31.0, None, None, 30.0, 30.0)
    assert solve_flying(NODES).time_s == 30.0
    assert solver.near == [False, True, False, False, True]
    assert (solver.asked[3].guess.states[..., State.LATERAL] == 0.0).all()  # along the centreline


def test_without_a_rough_lap_it_begins_from_nothing(monkeypatch):
    solver = stand_in(monkeypatch, None, 30.0, 30.0)
    assert solve_flying(NODES).time_s == 30.0
    assert solver.near == [False, False, True]
    standing = stand_in(monkeypatch, None, 30.0, 30.0)
    assert solve_standing(NODES).mesh_change == 0.0
    assert standing.near == [False, False, True]


def test_a_lap_that_never_settles_is_not_trusted(monkeypatch):
    stand_in(monkeypatch, 31.0, 30.0, 29.0, 28.0, 27.0)
    with pytest.raises(OptimalError, match=r"still changes by 3\.571 % on the finest mesh"):
        solve_flying(NODES)
    assert len(INTERVALS_S) == 4


def test_a_solver_that_gives_up_is_quoted(monkeypatch):
    stand_in(monkeypatch, *[None] * 9)
    with pytest.raises(
        OptimalError, match=r"optimal lap did not converge on \d+ intervals: Infeasible_Problem_Detected"
    ):
        solve_flying(NODES)
    stand_in(monkeypatch, *[None] * 9)
    with pytest.raises(OptimalError, match=r"standing lap did not converge on \d+ intervals: .* after 7 iterations"):
        solve_standing(NODES)


def test_aims_reach_the_solver_and_one_mesh_is_enough_where_one_is_asked_for(monkeypatch, followed):
    aims = Aims(margin_m=0.3, most_slip=0.7, steering_share=0.5, intervals_s=(0.3,))
    solver = stand_in(monkeypatch, 30.0, 30.0)
    flying = solve_flying(NODES, aims, near=followed[0])
    standing = solve_standing(NODES, aims, near=followed[0])
    assert len(solver.asked) == 2
    for one in solver.asked:
        assert (one.most_slip, one.steering_share) == (0.7, 0.5)
    assert standing.time_s == pytest.approx(30.0 + launch(CAR).time_s)
    assert np.isnan([flying.mesh_change, standing.mesh_change]).all()
    assert [one.start is None for one in solver.asked] == [True, False]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("track_id", ["track-01", "track-02", "track-03", "train-006", "train-038"])
def test_a_fresh_lap_is_the_shipped_one(track_id):
    track = load_track(track_id)
    known = find_reference(track)
    flying = solve_flying(track.nodes)
    standing = solve_standing(track.nodes, near=flying)
    assert flying.time_s == pytest.approx(known.lap_time_s, rel=TOLERANCE)
    assert standing.time_s == pytest.approx(known.standing_lap_time_s, rel=TOLERANCE)
    assert max(flying.mesh_change, standing.mesh_change) < TOLERANCE
