"""Nodes from centrelines: known answers."""

import hashlib
import math

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry import node_builder
from hotlap.tracks.geometry.centreline import (
    Centreline,
    length_m,
    recentre,
    resample,
    reverse,
    rotate_start,
    with_width,
)
from hotlap.tracks.geometry.node_builder import build_nodes
from tracks.shapes import advance, circle, eight, line, peanut, stadium

NODES_DIGEST = "628065a99cd96f7689a2bac8b6b1f8e13dd02c7e31ed214b9ac3d0b1a1effdc8"


def test_a_circle_has_the_curvature_and_length_of_a_circle():
    nodes = build_nodes(circle(100.0))
    assert nodes.curvature_radpm == pytest.approx(0.01, abs=1e-4)
    assert nodes.step_m * nodes.x_m.size == pytest.approx(2.0 * math.pi * 100.0, rel=1e-4)
    assert np.hypot(nodes.x_m, nodes.y_m) == pytest.approx(100.0, abs=1e-3)


def test_nodes_start_on_the_first_point_a_metre_apart_and_follow_the_line():
    centreline = stadium(40.0)
    nodes = build_nodes(centreline)
    assert (nodes.x_m[0], nodes.y_m[0]) == (centreline.x_m[0], centreline.y_m[0])
    hops = np.hypot(np.diff(nodes.x_m), np.diff(nodes.y_m))
    assert hops == pytest.approx(nodes.step_m, rel=1e-3)
    assert nodes.step_m == pytest.approx(1.0, rel=1e-2)
    assert np.hypot(nodes.tangent_x, nodes.tangent_y) == pytest.approx(1.0, abs=1e-12)
    assert advance(nodes, node_builder.edge_points(nodes, 0.0)) == pytest.approx(nodes.step_m, rel=2e-3)
    straight = (np.abs(nodes.x_m) < 100.0) & (nodes.y_m < 1.0)
    assert straight.sum() > 150
    assert nodes.curvature_radpm[straight] == pytest.approx(0.0, abs=1e-9)
    assert nodes.curvature_radpm[nodes.x_m > 180.0] == pytest.approx(1 / 40.0, rel=1e-2)


def test_uneven_points_give_uniform_nodes():
    angle = np.sort(np.concatenate((np.linspace(0, 3, 40), np.linspace(3.03, 6.2, 120))))
    nodes = build_nodes(line(100 * np.cos(angle), 100 * np.sin(angle)))
    assert np.hypot(np.diff(nodes.x_m), np.diff(nodes.y_m)) == pytest.approx(nodes.step_m, rel=1e-3)
    assert nodes.curvature_radpm == pytest.approx(0.01, abs=2e-4)


def test_widths_are_linear_between_points():
    centreline = circle(100.0, 100)
    ramp = 4.0 + np.arange(100) * 0.04
    nodes = build_nodes(Centreline(centreline.x_m, centreline.y_m, ramp, ramp + 1.0))
    fraction = np.arange(nodes.x_m.size) / nodes.x_m.size
    inner = fraction < 0.99
    assert nodes.road_right_m[inner] == pytest.approx((4.0 + 4.0 * fraction)[inner], abs=1e-3)
    assert nodes.road_left_m == pytest.approx(nodes.road_right_m + 1.0, abs=1e-9)


def test_edges_lie_at_their_distances_and_walls_a_runoff_beyond_where_there_is_room():
    nodes = build_nodes(circle(100.0, right=5.0, left=4.0), runoff_m=7.0)
    left, right = node_builder.road_edges(nodes)
    assert np.hypot(*left.T) == pytest.approx(96.0, abs=1e-3)
    assert np.hypot(*right.T) == pytest.approx(105.0, abs=1e-3)
    assert nodes.wall_right_m == pytest.approx(12.0)
    assert nodes.wall_left_m == pytest.approx(11.0)


def test_an_overpass_keeps_its_walls():
    nodes = build_nodes(eight())
    assert len(node_builder.find_crossings(nodes)) == 1
    assert nodes.wall_left_m == pytest.approx(11.0)
    assert nodes.wall_right_m == pytest.approx(11.0)


def test_a_leg_that_comes_near_without_crossing_is_not_an_overpass():
    nodes = build_nodes(peanut(200.0, 3.0, right=1.9, left=1.9))
    assert node_builder.find_crossings(nodes) == []
    waist = np.abs(nodes.x_m) < 1.0
    assert waist.sum() >= 4
    left, _ = node_builder.wall_lines(nodes)
    assert left[waist, 1] == pytest.approx(0.0, abs=0.05)  # both walls meet on the line halfway


def test_a_reversed_track_has_negated_curvature_and_swapped_sides():
    centreline = stadium(20.0, right=4.0, left=6.0)
    there, back = build_nodes(centreline), build_nodes(reverse(centreline))
    mirrored = np.roll(back.curvature_radpm[::-1], 1)
    assert mirrored == pytest.approx(-there.curvature_radpm, abs=1e-9)
    assert (back.x_m[0], back.y_m[0]) == (there.x_m[0], there.y_m[0])
    assert np.roll(back.wall_left_m[::-1], 1) == pytest.approx(there.wall_right_m, abs=1e-6)
    assert back.road_left_m == pytest.approx(4.0)
    assert back.road_right_m == pytest.approx(6.0)


@pytest.mark.parametrize("start_m", [0.0, 3.0, 100.0, 250.4, -50.0, 5000.0])
def test_a_moved_start_line_lies_on_the_same_track(start_m: float):
    centreline = circle(100.0, 90)
    moved = rotate_start(centreline, start_m)
    angle = start_m / 100.0
    assert (moved.x_m[0], moved.y_m[0]) == pytest.approx((100 * math.cos(angle), 100 * math.sin(angle)), abs=0.01)
    nodes = build_nodes(moved)
    assert nodes.curvature_radpm == pytest.approx(0.01, abs=2e-4)
    assert abs(moved.x_m.size - 90) <= 1


def test_resampling_keeps_the_shape_and_a_start_moved_to_a_point_the_points():
    centreline = circle(100.0, 60)
    fine = resample(centreline, 4.0)
    assert fine.x_m.size == 157
    assert np.hypot(fine.x_m, fine.y_m) == pytest.approx(100.0, abs=2e-3)
    assert (np.round(fine.x_m, 3) == fine.x_m).all()
    moved = rotate_start(centreline, length_m(centreline) / 3)
    assert moved.x_m == pytest.approx(np.roll(centreline.x_m, -20), abs=1e-3)


def test_a_far_track_is_moved_to_the_origin_by_whole_metres():
    near, far = circle(), circle()
    far = Centreline(far.x_m + 691_000.0, far.y_m + 5_335_000.0, far.width_right_m, far.width_left_m)
    nodes, moved = build_nodes(near), build_nodes(far)
    assert np.abs(moved.x_m).max() < 200.0
    assert moved.x_m - nodes.x_m == pytest.approx(float(round(moved.x_m[0] - nodes.x_m[0])), abs=1e-6)
    assert recentre(near) is near


@pytest.mark.parametrize(
    ("centreline", "rule"),
    [
        (stadium(4.0, spacing_m=1.0), "radius of .* tighter than the half-width of 5.00 m"),
        (circle(10.0, right=2.0, left=2.0), "must be at least 100 m"),
        (circle(6000.0, 800), "must be at most 30000 m"),
        (line([0.0, 1.0, 1.0], [0.0, 0.0, 1.0]), "has 3 points; a track needs at least 8"),
        (line(np.append(circle().x_m, 100.0), np.append(circle().y_m, 0.0)), "points 121 and 1 of 121 coincide"),
        (line(circle().x_m * math.nan, circle().y_m), "not finite"),
        (Centreline(np.ones(9), np.ones(9), np.ones(8), np.ones(9)), "have shapes"),
        (peanut(30.0, 3.0, right=1.0, left=5.0), r"left edge crosses itself near s = \d+ m; edges may not cross"),
    ],
)
def test_an_impossible_centreline_is_refused(centreline: Centreline, rule: str):
    with pytest.raises(TrackError, match=rule):
        build_nodes(centreline)


def test_a_fault_names_its_point_and_a_valid_line_has_none():
    centreline = stadium(4.0, spacing_m=1.0)
    assert abs(centreline.x_m[node_builder.find_fault(centreline).point]) > 149.0
    assert node_builder.find_fault(stadium(20.0)) is None
    # The same line as one whose edges cross, with a narrower road.
    assert node_builder.find_fault(peanut(30.0, 3.0, right=1.0, left=2.5)) is None
    with pytest.raises(TrackError, match="road width is 0"):
        with_width(circle(), 0.0)


def test_the_nodes_are_bit_identical_on_every_machine():
    """A polygon of round numbers, so that no platform's sine enters."""
    x = [0, 120, 260, 330, 345, 300, 230, 190, 140, 100, 110, 170, 160, 90, 30, -40, -100, -115, -80, -60, -105, -80]
    y = [0, 0, 5, 30, 85, 120, 112, 80, 75, 105, 150, 190, 230, 200, 215, 255, 240, 180, 140, 95, 65, 2]
    nodes = build_nodes(line(x, y))
    digest = hashlib.sha256()
    for name in RibbonNodes.__dataclass_fields__:
        digest.update(np.asarray(getattr(nodes, name), dtype="<f8").tobytes())
    assert digest.hexdigest() == NODES_DIGEST
