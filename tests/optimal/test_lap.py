"""Whole laps: consistent, refined until the mesh does not matter, refused when they do not converge."""

from types import SimpleNamespace

import numpy as np
import pytest

from hotlap.drivers.optimal_follower import FOLLOWER_SETTINGS
from hotlap.errors import OptimalError
from hotlap.optimal import lap
from hotlap.optimal.collocation import Guess, RoadProfile
from hotlap.optimal.lap import solve_flying, solve_standing
from hotlap.optimal.launch import launch
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import Control, State
from hotlap.optimal.plan import ROUGH_SETTINGS, TOLERANCE, LapSettings
from hotlap.optimal.reference import find_reference
from hotlap.optimal.solver import Solution
from hotlap.tracks.registry import load_track
from optimal.kernels import CAR, driven_s

TRACK = load_track("track-01")
NODES = TRACK.nodes


def test_the_flying_lap_is_closed_and_its_time_follows_from_its_speeds(followed):
    flying, _ = followed
    assert flying.arc_m[-1] == pytest.approx(NODES.length_m)
    assert driven_s(flying, NODES, 0.0, flying.states[-1, State.FORWARD]) == pytest.approx(flying.time_s, rel=2e-3)
    # The state is continuous across the start line.
    step = np.abs(flying.states[0] - flying.states[-1])
    assert step[State.FORWARD] < 0.5
    assert step[State.LATERAL] < 0.2


def test_the_standing_lap_begins_with_the_launch(followed):
    flying, standing = followed
    start = launch(CAR)
    assert standing.arc_m[0] > start.distance_m
    assert standing.states[0, State.FORWARD] == pytest.approx(start.state[State.FORWARD], abs=1.0)
    after_launch_s = driven_s(standing, NODES, start.distance_m, start.state[State.FORWARD])
    assert start.time_s + after_launch_s == pytest.approx(standing.time_s, rel=2e-3)
    assert flying.time_s + 2.0 < standing.time_s < flying.time_s + 6.0


def test_the_follower_keeps_its_margins_which_cost_less_than_half_a_percent(followed):
    reference = find_reference(TRACK)
    for plan, fastest_s in zip(followed, (reference.lap_time_s, reference.standing_lap_time_s), strict=True):
        left_m = along_track(NODES.road_left_m, NODES, plan.arc_m) - plan.states[:, State.LATERAL]
        right_m = along_track(NODES.road_right_m, NODES, plan.arc_m) + plan.states[:, State.LATERAL]
        assert min(left_m.min(), right_m.min()) == pytest.approx(FOLLOWER_SETTINGS.margin_m, abs=1e-3)
        limit = FOLLOWER_SETTINGS.steering_fraction * CAR.steering_rate_per_s
        assert np.abs(plan.controls[:, Control.STEER_RATE]).max() <= limit * 1.001
        assert 1.0 < plan.time_s / fastest_s < 1.005


class Solver:
    """A stand-in that returns the given times in turn and records its calls; None is a failure."""

    def __init__(self, times_s: list[float | None]) -> None:
        self.times_s, self.asked = list(times_s), []

    def __call__(self, road: RoadProfile, guess: Guess, car, **options) -> Solution:
        self.asked.append(SimpleNamespace(count=len(road.lengths_m), guess=guess, road=road, **options))
        time_s = self.times_s.pop(0)
        status = "Infeasible_Problem_Detected" if time_s is None else "Solve_Succeeded"
        times_s = np.full(len(road.lengths_m), (time_s or 0.0) / len(road.lengths_m))
        return Solution(status, time_s is not None, time_s or 0.0, guess.states, guess.controls, times_s, 7)

    @property
    def warm_starts(self) -> list[bool]:
        return [one.is_warm_start for one in self.asked]

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
    assert solver.counts == sorted(set(solver.counts))  # finer and finer
    assert plan.states.shape == (3 * solver.counts[-1], 9)


def test_a_lap_is_solved_from_a_rough_one_with_margins(monkeypatch):
    solver = stand_in(monkeypatch, 31.0, 30.0, 30.0)
    solve_flying(NODES)
    assert solver.warm_starts == [False, True, True]
    assert [one.max_slip_fraction for one in solver.asked] == [ROUGH_SETTINGS.max_slip_fraction, None, None]
    narrower_m = along_track(NODES.road_left_m, NODES, solver.asked[0].road.starts_m).max()
    assert solver.asked[0].road.left_m.max() == pytest.approx(narrower_m - ROUGH_SETTINGS.margin_m, abs=0.02)


def test_a_warm_start_replaces_the_rough_lap(monkeypatch, followed):
    solver = stand_in(monkeypatch, 30.0, 30.0)
    solve_flying(NODES, warm_start=followed[0])
    assert solver.warm_starts == [True, True]
    given = np.interp(40.0, followed[0].arc_m, followed[0].states[:, State.LATERAL])
    at_m = solver.asked[0].road.starts_m + solver.asked[0].road.lengths_m
    taken = np.interp(40.0, at_m, solver.asked[0].guess.states[:, -1, State.LATERAL])
    assert taken == pytest.approx(given, abs=0.05)


def test_a_standing_lap_starts_from_the_flying_one_slowed_down(monkeypatch, followed):
    flying, _ = followed
    solver = stand_in(monkeypatch, 30.0, 30.0)
    solve_standing(NODES, warm_start=flying)
    states = solver.asked[0].guess.states
    assert states[0, 0, State.FORWARD] == pytest.approx(launch(CAR).state[State.FORWARD], abs=1.0)
    assert states[0, 0, State.THROTTLE] > 0.9
    late = solver.asked[0].road.starts_m > 0.6 * NODES.length_m
    speed_mps = np.interp(solver.asked[0].road.starts_m[late], flying.arc_m, flying.states[:, State.FORWARD])
    np.testing.assert_allclose(states[late, 0, State.FORWARD], speed_mps, atol=1.0)


def test_after_a_failed_warm_start_the_default_options_and_then_the_centreline_are_tried(monkeypatch):
    solver = stand_in(monkeypatch, 31.0, None, None, 30.0, 30.0)
    assert solve_flying(NODES).time_s == 30.0
    assert solver.warm_starts == [False, True, False, False, True]
    assert (solver.asked[3].guess.states[..., State.LATERAL] == 0.0).all()  # along the centreline
    # So is a lap without a rough one.
    for solve_lap in (solve_flying, solve_standing):
        solver = stand_in(monkeypatch, None, 30.0, 30.0)
        assert solve_lap(NODES).mesh_change == 0.0
        assert solver.warm_starts == [False, False, True]


def test_a_lap_that_does_not_settle_or_converge_is_refused(monkeypatch):
    stand_in(monkeypatch, 31.0, 30.0, 29.0, 28.0, 27.0)
    with pytest.raises(OptimalError, match=r"still changes by 3\.571 % on the finest mesh"):
        solve_flying(NODES)
    for solve_lap, name in ((solve_flying, "optimal"), (solve_standing, "standing")):
        stand_in(monkeypatch, *[None] * 9)
        status = r"\d+ intervals: Infeasible_Problem_Detected after 7 iterations"
        with pytest.raises(OptimalError, match=rf"{name} lap did not converge on {status}"):
            solve_lap(NODES)


def test_settings_reach_the_solver_and_a_single_mesh_is_not_refined(monkeypatch, followed):
    settings = LapSettings(margin_m=0.3, max_slip_fraction=0.7, steering_fraction=0.5, intervals_s=(0.3,))
    solver = stand_in(monkeypatch, 30.0, 30.0)
    flying = solve_flying(NODES, settings, warm_start=followed[0])
    standing = solve_standing(NODES, settings, warm_start=followed[0])
    assert len(solver.asked) == 2
    for one in solver.asked:
        assert (one.max_slip_fraction, one.steering_fraction) == (0.7, 0.5)
    assert standing.time_s == pytest.approx(30.0 + launch(CAR).time_s)
    assert np.isnan([flying.mesh_change, standing.mesh_change]).all()
    assert [one.start is None for one in solver.asked] == [True, False]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("track_id", ["track-01", "track-02", "track-03", "train-006", "train-038"])
def test_a_fresh_lap_agrees_with_the_shipped_one(track_id):
    track = load_track(track_id)
    known = find_reference(track)
    flying = solve_flying(track.nodes)
    standing = solve_standing(track.nodes, warm_start=flying)
    assert flying.time_s == pytest.approx(known.lap_time_s, rel=TOLERANCE)
    assert standing.time_s == pytest.approx(known.standing_lap_time_s, rel=TOLERANCE)
    assert max(flying.mesh_change, standing.mesh_change) < TOLERANCE
