"""Statistics of roads with a known shape."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hotlap.tracks.geometry.centreline import reverse
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.geometry.road_statistics import measure_road
from tracks.shapes import circle, stadium

STRAIGHT_M, RADIUS_M = 300.0, 40.0
LAP_M = 2.0 * STRAIGHT_M + 2.0 * math.pi * RADIUS_M


@pytest.fixture(scope="module")
def oval():
    return stadium(RADIUS_M, STRAIGHT_M, right=5.0, left=6.0)


def test_a_stadium_has_two_straights_and_two_half_turns(oval):
    found = measure_road(build_nodes(oval))
    assert found.length_m == pytest.approx(LAP_M, rel=1e-3)
    assert (found.min_width_m, found.median_width_m, found.max_width_m) == pytest.approx((11.0, 11.0, 11.0))
    assert found.turning_radpkm == pytest.approx(1000.0 * 2.0 * math.pi / LAP_M, rel=0.01)
    # Curvature is averaged over 31 m, so a straight ends up to 15 m before its corner.
    assert STRAIGHT_M - 30.0 < found.longest_straight_m < STRAIGHT_M
    assert found.straight_fraction == pytest.approx(2.0 * found.longest_straight_m / found.length_m, rel=0.01)
    for corner in found.corners:
        assert corner.entry_m == pytest.approx(found.longest_straight_m, abs=2.0)
        assert corner.radius_m == pytest.approx(RADIUS_M, rel=0.03)
        assert corner.turn_rad == pytest.approx(math.pi, rel=0.02)
    assert len(found.corners) == 2


def test_a_reversed_road_turns_the_other_way(oval):
    turns = [corner.turn_rad for corner in measure_road(build_nodes(reverse(oval))).corners]
    assert turns == pytest.approx([-math.pi, -math.pi], rel=0.02)


def test_the_width_of_a_corner_is_that_at_its_tightest_place(oval):
    is_corner = np.abs(oval.x_m) > 0.5 * STRAIGHT_M + 1.0
    narrow = replace(oval, width_left_m=np.where(is_corner, 4.0, 6.0))
    found = measure_road(build_nodes(narrow))
    assert [corner.width_m for corner in found.corners] == pytest.approx([9.0, 9.0])
    assert (found.min_width_m, found.max_width_m) == pytest.approx((9.0, 11.0))


def test_a_straight_across_the_start_line_is_one(oval):
    assert measure_road(build_nodes(oval)).corners[0].entry_m > 0.8 * STRAIGHT_M


@pytest.mark.parametrize(("radius_m", "fraction"), [(100.0, 0.0), (400.0, 1.0)])
def test_a_circle_is_straight_only_if_it_is_large(radius_m, fraction):
    found = measure_road(build_nodes(circle(radius_m)))
    assert found.straight_fraction == fraction
    assert found.longest_straight_m == pytest.approx(fraction * found.length_m)
