"""Approaches: they start at the car and end on the flying lap; from a state of the lap they follow the lap."""

import numpy as np
import pytest

from hotlap.drivers.optimal_follower import FOLLOWER_SETTINGS
from hotlap.optimal import approach
from hotlap.optimal.approach import solve_approach
from hotlap.optimal.mesh import along_track
from hotlap.optimal.model import State
from hotlap.optimal.plan import Plan
from hotlap.tracks.registry import load_track
from optimal.kernels import driven_s

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


def test_from_a_state_of_the_lap_the_approach_follows_the_lap(followed):
    flying, _ = followed
    for point in (30, len(flying.arc_m) - 60):  # the second crosses the start line
        from_m = float(flying.arc_m[point])
        found = solve_approach(NODES, flying, from_m, flying.states[point], FOLLOWER_SETTINGS)
        assert found.arc_m[0] > from_m
        off = np.abs(found.states - of_lap(flying, found.arc_m))[:, SEEN]
        assert (off < 3.0 * ALIKE).all(), off.max(axis=0)
        assert np.median(off / ALIKE) < 0.5


@pytest.mark.parametrize("fraction", [0.35, 0.7])
def test_a_slow_car_off_the_racing_line_ends_on_the_lap_and_loses_time(followed, fraction):
    flying, _ = followed
    point = 200
    from_m, there = float(flying.arc_m[point]), flying.states[point]
    state = moved(there * 0.0, LATERAL=-2.0, HEADING=0.05, FORWARD=fraction * there[State.FORWARD])
    found = solve_approach(NODES, flying, from_m, state, FOLLOWER_SETTINGS)
    assert found.states[0, State.LATERAL] == pytest.approx(-2.0, abs=0.3)
    assert found.states[0, State.FORWARD] == pytest.approx(state[State.FORWARD], abs=1.0)
    assert (np.abs(found.states[-1] - of_lap(flying, found.arc_m[-1:])[0])[SEEN] < ALIKE).all()
    assert driven_s(found, NODES, from_m, state[State.FORWARD]) == pytest.approx(found.time_s, rel=0.01)
    part = flying.arc_m[(flying.arc_m > from_m) & (flying.arc_m <= found.arc_m[-1])]
    lap_piece = Plan(part, of_lap(flying, part), np.zeros((len(part), 3)), 0.0, 0.0)
    assert found.time_s > driven_s(lap_piece, NODES, from_m, there[State.FORWARD]) + 0.2
    # The margin to the edge holds here, too.
    room_m = np.minimum(
        along_track(NODES.road_left_m, NODES, found.arc_m) - found.states[:, State.LATERAL],
        along_track(NODES.road_right_m, NODES, found.arc_m) + found.states[:, State.LATERAL],
    )
    assert room_m.min() > FOLLOWER_SETTINGS.margin_m - 1e-3


def test_a_car_far_too_fast_for_the_corner_has_no_approach(followed, monkeypatch):
    monkeypatch.setattr(approach, "SETTLING_S", approach.SETTLING_S[:1])  # more time would not help either
    flying, _ = followed
    slowest = int(np.argmin(flying.states[:, State.FORWARD]))
    before_m = float(flying.arc_m[slowest]) - 12.0
    state = moved(np.zeros(9), FORWARD=40.0)
    assert solve_approach(NODES, flying, before_m, state, FOLLOWER_SETTINGS) is None
