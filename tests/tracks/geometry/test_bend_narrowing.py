"""A road is narrowed on its inside where a bend or a neighbouring leg leaves no room, and only there."""

from dataclasses import replace

import numpy as np
import pytest
from shapely.geometry import LinearRing

from hotlap.tracks.geometry.bend_narrowing import NARROWED_MARGIN, find_narrowings, narrow_tight_bends
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import DEFAULT_SPACING_M, build_nodes, find_fault, road_edges
from hotlap.tracks.geometry.road import ROAD_MARGIN, inner_margin, trace
from tracks.shapes import circle, hairpins, peanut, stadium


def mirrored(line: Centreline) -> Centreline:
    return Centreline(line.x_m, -line.y_m, line.width_left_m, line.width_right_m)


def narrowed(line: Centreline) -> Centreline:
    return narrow_tight_bends(line, DEFAULT_SPACING_M)


def tightest(line: Centreline) -> float:
    return float(inner_margin(trace(line, DEFAULT_SPACING_M), "left").min())


@pytest.mark.parametrize("half_m", [6.8, 7.5, 9.0, 15.0])
def test_a_hairpin_tighter_than_its_road_is_narrowed_at_its_tip_and_nothing_else_changes(half_m):
    line = hairpins(5.7, left=half_m, right=6.8)
    assert "tighter than the half-width" in find_fault(line).text
    narrow = narrowed(line)
    assert find_fault(narrow) is None
    assert ROAD_MARGIN < tightest(narrow) <= NARROWED_MARGIN + 0.1
    for name in ("x_m", "y_m", "width_right_m"):
        assert getattr(narrow, name) is getattr(line, name)
    changed = np.flatnonzero(narrow.width_left_m != line.width_left_m)
    assert (np.abs(line.x_m[changed]) > 200.0 - 6.0 * half_m).all()
    assert narrow.width_left_m.min() > 4.0
    nodes = build_nodes(narrow)
    assert all(LinearRing(edge).is_simple for edge in road_edges(nodes))


def test_the_right_hand_side_is_narrowed_the_same():
    line = hairpins(5.7, left=6.8, right=6.8)
    assert narrowed(mirrored(line)).width_right_m == pytest.approx(narrowed(line).width_left_m)


@pytest.mark.parametrize(
    "line",
    [
        stadium(5.7, straight_m=250.0, spacing_m=4.0, left=6.8, right=6.8),
        peanut(30.0, 3.0, right=1.0, left=5.0),
    ],
    ids=["legs side by side", "a waist"],
)
def test_neighbouring_legs_share_the_room_between_them(line):
    assert find_fault(line) is not None
    assert find_fault(narrowed(line)) is None
    assert narrowed(line).width_left_m.min() > 1.9


def test_a_road_with_room_is_the_same_object_afterwards():
    for line in (circle(), hairpins(12.0, left=6.8, right=6.8), stadium(20.0)):
        assert find_fault(line) is None
        assert narrowed(line) is line


def test_what_is_no_road_is_left_for_the_check_and_the_rest_is_narrowed():
    spike = hairpins(5.7, left=6.8, right=6.8)
    y = spike.y_m.copy()
    far = int(np.argmin(np.abs(spike.x_m) + 100.0 * (y > 0.0)))
    y[far] -= 12.0
    spike = replace(spike, y_m=y)
    narrow = narrowed(spike)
    assert find_fault(narrow).point in {far - 1, far}
    assert "half-width of 6.80 m on its inside" in find_fault(narrow).text
    assert narrow.width_left_m.min() < 6.0
    short = replace(spike, x_m=0.1 * spike.x_m, y_m=0.1 * spike.y_m)
    assert narrowed(short) is short


def test_narrowings_are_found_by_side_place_and_amount():
    road, nodes = trace(circle(), DEFAULT_SPACING_M), build_nodes(circle())
    left, right = nodes.road_left_m.copy(), nodes.road_right_m.copy()
    left[20:23] -= (0.5, 1.5, 0.4)
    left[60] -= 0.009
    right[50] -= 2.0
    found = find_narrowings(road, replace(nodes, road_left_m=left, road_right_m=right))
    assert [(one.at_m / road.step, one.side) for one in found] == [(21.0, "left"), (50.0, "right")]
    assert [one.by_m for one in found] == pytest.approx([1.5, 2.0])
