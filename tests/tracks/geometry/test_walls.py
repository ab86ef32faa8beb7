"""Walls in bends and between legs: known distances, and shapely as an independent check."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hotlap.errors import TrackError
from hotlap.tracks.geometry import node_builder
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes
from tracks.shapes import advance, circle, eight, stadium, wavy


def test_the_inner_wall_of_a_tight_bend_comes_in_and_the_outer_stays():
    nodes = build_nodes(stadium(9.0, straight_m=120.0, right=4.0, left=4.0))
    bend = nodes.curvature_radpm > 0.08
    assert bend.sum() > 30
    assert (1.0 - nodes.curvature_radpm * nodes.wall_left_m >= 0.15 - 1e-9).all()
    assert nodes.wall_left_m[bend].max() < 8.0
    assert nodes.wall_right_m[bend] == pytest.approx(10.0)


def test_two_legs_of_a_hairpin_share_the_gap_between_them():
    radius_m, half_width_m = 8.0, 5.0
    nodes = build_nodes(stadium(radius_m, right=half_width_m, left=half_width_m))
    legs = np.abs(nodes.x_m) < 120.0
    assert legs.sum() > 400
    assert nodes.wall_left_m[legs] == pytest.approx(radius_m, abs=0.02)  # 5 m of road, half of 6 m between
    assert nodes.wall_right_m[legs] == pytest.approx(half_width_m + 6.0)


def test_a_wide_leg_and_a_narrow_one_share_the_gap_between_their_edges():
    base = stadium(10.0)
    left = np.where(base.y_m < 10.0, 8.0, 4.0)
    nodes = build_nodes(Centreline(base.x_m, base.y_m, np.full_like(left, 4.0), left))
    middle = np.abs(nodes.x_m) < 100.0
    assert nodes.wall_left_m[middle & (nodes.y_m < 1.0)] == pytest.approx(8.0 + 4.0, abs=0.05)
    assert nodes.wall_left_m[middle & (nodes.y_m > 19.0)] == pytest.approx(4.0 + 4.0, abs=0.05)


@pytest.mark.parametrize(
    "centreline",
    [stadium(9.0, right=4.0, left=4.0), wavy(120.0, 6, 0.3), wavy(150.0, 9, 0.18), eight(120.0)],
    ids=["hairpins", "six waves", "nine waves", "eight"],
)
def test_walls_advance_vary_smoothly_and_stay_off_the_road(centreline: Centreline):
    nodes = build_nodes(centreline)
    left, right = node_builder.wall_lines(nodes)
    sides = (nodes.wall_left_m, nodes.road_left_m, left), (nodes.wall_right_m, nodes.road_right_m, right)
    for wall, road, points in sides:
        assert (wall >= road).all()
        assert (wall <= road + node_builder.DEFAULT_RUNOFF_M + 1e-9).all()
        assert (advance(nodes, points) >= 0.1 * nodes.step_m - 1e-9).all()
        slope = np.abs(np.roll(wall, -1) - wall) / nodes.step_m
        assert slope.max() <= 0.5 + 1e-6


def test_walls_advance_even_where_a_noisy_line_makes_the_normals_cross():
    rng = np.random.default_rng(2)
    clean = circle(20.0, 62, right=3.0, left=9.0)
    noise = 0.02 * rng.standard_normal((2, 62))
    noisy = Centreline(clean.x_m + noise[0], clean.y_m + noise[1], clean.width_right_m, clean.width_left_m)
    nodes = build_nodes(noisy, runoff_m=9.0)
    left, _ = node_builder.wall_lines(nodes)
    has_runoff = nodes.wall_left_m > nodes.road_left_m
    assert has_runoff.sum() > 100
    assert (advance(nodes, left)[has_runoff] >= 0.1 * nodes.step_m).all()


@settings(deadline=None, max_examples=25)
@given(waves=st.integers(2, 7), depth=st.floats(0.0, 0.3), radius_m=st.floats(80.0, 300.0))
@example(waves=7, depth=0.21875, radius_m=86.0)  # narrowed
def test_no_wall_stands_on_the_road_of_another_part(waves: int, depth: float, radius_m: float):
    try:
        nodes = build_nodes(wavy(radius_m, waves, depth))
    except TrackError:
        return
    # The road is 5 m wide on each side, less where the inside of a bend leaves a car no room.
    half_m = np.minimum(nodes.road_left_m, nodes.road_right_m)
    for wall in node_builder.wall_lines(nodes):
        for x_m, y_m in wall[::3]:
            distance_m = np.hypot(nodes.x_m - x_m, nodes.y_m - y_m)
            nearest = int(np.argmin(distance_m))
            assert distance_m[nearest] >= half_m[nearest] - 0.1
