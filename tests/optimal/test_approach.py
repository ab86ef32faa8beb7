"""Ways into the lap: they begin where the car is, end on the lap, and on the lap itself they are the lap."""

import numpy as np
import pytest

from hotlap.drivers.optimal_follower import FOLLOWER_AIMS
from hotlap.optimal import approach as joining
from hotlap.optimal.approach import solve_joining
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import State
from hotlap.optimal.plan import Plan
from hotlap.tracks.registry import load_track

NODES = load_track("track-01").nodes
SEEN = [State.LATERAL, State.HEADING, State.FORWARD, State.LEFT, State.YAW]
ALIKE = np.array([0.05, 0.01, 0.1, 0.1, 0.05])


def of_lap(flying: Plan, arc_m: np.ndarray) -> np.ndarray:
    columns = [np.interp(arc_m, flying.arc_m, column, period=NODES.length_m) for column in flying.states.T]
    return np.stack(columns, axis=1)


def moved(state: np.ndarray, **changes: float) -> np.ndarray:
    state = state.copy()
    for name, value in changes.items():
        state[State[name]] = value
    return state


def time_s(plan: Plan, from_m: float, start_mps: float) -> float:
    """Time over a plan, from speeds, angles and curvature alone."""
    curvature = along_track(NODES.curvature_radpm, NODES, plan.arc_m)
    heading = plan.states[:, State.HEADING]
    along_mps = plan.states[:, State.FORWARD] * np.cos(heading) - plan.states[:, State.LEFT] * np.sin(heading)
    pace = np.concatenate([[1.0 / start_mps], (1.0 - plan.states[:, State.LATERAL] * curvature) / along_mps])
    return float(np.sum(0.5 * (pace[1:] + pace[:-1]) * np.diff(plan.arc_m, prepend=from_m)))


def test_from_a_state_of_the_lap_the_way_is_the_lap(followed):
    flying, _ = followed
    for point in (30, len(flying.arc_m) - 60):  # the second goes over the line
        from_m = float(flying.arc_m[point])
        way = solve_joining(NODES, flying, from_m, flying.states[point], FOLLOWER_AIMS)
        assert way.arc_m[0] > from_m
        off = np.abs(way.states - of_lap(flying, way.arc_m))[:, SEEN]
        assert (off < 3.0 * ALIKE).all(), off.max(axis=0)
        assert np.median(off / ALIKE) < 0.5


@pytest.mark.parametrize("share", [0.35, 0.7])
def test_a_slow_car_off_the_line_ends_on_the_lap_and_loses_time_on_the_way(followed, share):
    flying, _ = followed
    point = 200
    from_m, there = float(flying.arc_m[point]), flying.states[point]
    state = moved(there * 0.0, LATERAL=-2.0, HEADING=0.05, FORWARD=share * there[State.FORWARD])
    way = solve_joining(NODES, flying, from_m, state, FOLLOWER_AIMS)
    assert way.states[0, State.LATERAL] == pytest.approx(-2.0, abs=0.3)
    assert way.states[0, State.FORWARD] == pytest.approx(state[State.FORWARD], abs=1.0)
    assert (np.abs(way.states[-1] - of_lap(flying, way.arc_m[-1:])[0])[SEEN] < ALIKE).all()
    assert time_s(way, from_m, state[State.FORWARD]) == pytest.approx(way.time_s, rel=0.01)
    part = flying.arc_m[(flying.arc_m > from_m) & (flying.arc_m <= way.arc_m[-1])]
    lap_piece = Plan(part, of_lap(flying, part), np.zeros((len(part), 3)), 0.0, 0.0)
    assert way.time_s > time_s(lap_piece, from_m, there[State.FORWARD]) + 0.2
    # What is kept in hand on the lap is kept here too.
    room_m = np.minimum(
        along_track(NODES.road_left_m, NODES, way.arc_m) - way.states[:, State.LATERAL],
        along_track(NODES.road_right_m, NODES, way.arc_m) + way.states[:, State.LATERAL],
    )
    assert room_m.min() > FOLLOWER_AIMS.margin_m - 1e-3


@pytest.mark.timeout(60)
def test_a_car_far_too_fast_for_the_bend_finds_none(followed, monkeypatch):
    monkeypatch.setattr(joining, "SETTLING_S", joining.SETTLING_S[:1])  # more time would not help either
    flying, _ = followed
    slowest = int(np.argmin(flying.states[:, State.FORWARD]))
    before_m = float(flying.arc_m[slowest]) - 12.0
    state = moved(np.zeros(9), FORWARD=40.0)
    assert solve_joining(NODES, flying, before_m, state, FOLLOWER_AIMS) is None
