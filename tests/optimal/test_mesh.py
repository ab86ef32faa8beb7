"""Meshes: intervals of equal driving time that cover the lap, and solutions resampled to another mesh."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotlap.optimal.mesh import (
    along_track,
    collocation_points_m,
    cut_evenly,
    cut_lap,
    estimate_speed,
    first_guess,
    make_road_profile,
    resample_guess,
)
from hotlap.optimal.model import NUM_CONTROLS, NUM_STATES, State
from hotlap.tracks.registry import load_track
from optimal.kernels import CAR

NODES = load_track("track-01").nodes
SPEED_MPS = estimate_speed(NODES, CAR)


@given(st.floats(0.05, 1.0), st.floats(0.0, 50.0))
@settings(max_examples=40, deadline=None)
def test_intervals_cover_the_lap_in_equal_driving_time(interval_s, from_m):
    edges_m = cut_lap(NODES, SPEED_MPS, interval_s, from_m)
    assert edges_m[0] == pytest.approx(from_m)
    assert edges_m[-1] == pytest.approx(NODES.length_m)
    clock_s = np.concatenate([[0.0], np.cumsum(NODES.step_m / SPEED_MPS)])
    pieces_s = np.diff(np.interp(edges_m, np.arange(NODES.num_nodes + 1) * NODES.step_m, clock_s))
    np.testing.assert_allclose(pieces_s, pieces_s[0], rtol=1e-6)
    assert pieces_s[0] <= interval_s * (1.0 + 1e-9)


def test_part_of_a_lap_is_cut_by_its_own_clock_and_into_at_least_eight_intervals():
    arc_m, clock_s = np.array([100.0, 140.0, 150.0]), np.array([0.0, 2.0, 4.0])
    edges_m = cut_evenly(arc_m, clock_s, 0.25, 1.0)
    assert (edges_m[0], edges_m[-1], len(edges_m)) == (120.0, 150.0, 13)
    np.testing.assert_allclose(np.diff(edges_m), [5.0] * 4 + [1.25] * 8)
    assert len(cut_lap(NODES, SPEED_MPS, 1e3)) == 9


def test_points_lie_in_their_intervals_and_the_last_is_the_end():
    edges_m = cut_lap(NODES, SPEED_MPS, 0.2)
    points_m = collocation_points_m(edges_m)
    np.testing.assert_allclose(points_m[:, -1], edges_m[1:])
    assert (points_m[:, 0] > edges_m[:-1]).all()
    assert (np.diff(points_m.ravel()) > 0.0).all()


def test_values_along_the_track_equal_the_nodes_and_are_periodic():
    at_m = np.arange(NODES.num_nodes) * NODES.step_m
    np.testing.assert_allclose(along_track(NODES.x_m, NODES, at_m), NODES.x_m, atol=1e-6)
    beyond = along_track(NODES.x_m, NODES, np.array([NODES.length_m + 3.5, -1.25]))
    np.testing.assert_allclose(beyond, along_track(NODES.x_m, NODES, np.array([3.5, NODES.length_m - 1.25])))
    half = along_track(NODES.x_m, NODES, np.array([NODES.length_m - 0.5 * NODES.step_m]))
    assert half[0] == pytest.approx(0.5 * (NODES.x_m[-1] + NODES.x_m[0]))


def test_the_road_is_narrowed_by_the_margin_and_by_walls_at_its_edge_but_never_closed():
    edges_m = cut_lap(NODES, SPEED_MPS, 0.2)
    whole, less, none = (make_road_profile(NODES, edges_m, CAR, margin_m) for margin_m in (0.0, 0.5, 100.0))
    np.testing.assert_allclose(whole.left_m - less.left_m, 0.5)
    np.testing.assert_allclose(whole.right_m - less.right_m, 0.5)
    assert none.left_m.min() == none.right_m.min() == 0.1
    assert whole.lengths_m.sum() == pytest.approx(NODES.length_m)
    np.testing.assert_array_equal(whole.starts_m, edges_m[:-1])
    # Of 5 m of road and 0.4 m more to the wall, a car of radius 1 m can use 4.4 m.
    ring = np.ones(NODES.num_nodes)
    narrow = replace(NODES, road_left_m=5.0 * ring, wall_left_m=5.4 * ring, road_right_m=5.0 * ring)
    road = make_road_profile(narrow, edges_m, CAR._replace(radius_m=1.0))
    np.testing.assert_allclose(road.left_m, 4.4)
    np.testing.assert_allclose(road.right_m, 5.0)


def test_the_first_guess_follows_the_centreline_within_all_limits():
    edges_m = cut_lap(NODES, SPEED_MPS, 0.2)
    guess = first_guess(NODES, edges_m, CAR, SPEED_MPS)
    assert (guess.states[..., State.LATERAL] == 0.0).all()
    assert (np.abs(guess.states[..., State.STEER]) <= 1.0).all()
    # A left-hand bend is driven with the wheel to the left, which is negative.
    turning = np.abs(guess.states[..., State.YAW]) > 0.1
    assert (guess.states[..., State.STEER] * guess.states[..., State.YAW])[turning].max() < 0.0
    for pedal in (State.THROTTLE, State.BRAKE):
        assert (guess.states[..., pedal] > 0.0).all()
        assert (guess.states[..., pedal] < 1.0).all()


def test_resampling_keeps_linear_states_and_each_places_controls():
    coarse_m, fine_m = cut_lap(NODES, SPEED_MPS, 0.2), cut_lap(NODES, SPEED_MPS, 0.07)
    arc_m, count = collocation_points_m(coarse_m), len(coarse_m) - 1
    states, controls = np.repeat(arc_m.reshape(-1, 1), NUM_STATES, axis=1), np.repeat(coarse_m[:-1], 3)[:, None]
    moved = resample_guess(arc_m.ravel(), states, np.repeat(controls, NUM_CONTROLS, axis=1), fine_m)
    inside = collocation_points_m(fine_m) >= arc_m[0, 0]
    np.testing.assert_allclose(moved.states[..., 0][inside], collocation_points_m(fine_m)[inside])
    middle_m = 0.5 * (fine_m[:-1] + fine_m[1:])
    assert (moved.controls[:, 0] <= middle_m).all()
    assert (middle_m - moved.controls[:, 0] < np.diff(coarse_m).max()).all()
    rng = np.random.default_rng(0)
    states, controls = rng.normal(size=(3 * count, NUM_STATES)), rng.normal(size=(count, NUM_CONTROLS))
    same = resample_guess(arc_m.ravel(), states, np.repeat(controls, 3, axis=0), coarse_m)
    np.testing.assert_allclose(same.states.reshape(-1, NUM_STATES), states)
    np.testing.assert_array_equal(same.controls, controls)
