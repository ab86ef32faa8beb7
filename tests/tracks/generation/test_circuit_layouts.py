"""Polygons of circuits: what is added to them, and that the rest of them stays."""

import math

import pytest

from hotlap.tracks.generation import circuit_layouts
from hotlap.tracks.generation.circuit_layouts import (
    MIN_RADIUS_M,
    CircuitStyle,
    add_bends,
    add_detour,
    draw_circuit_base,
    slow_down,
    split_corner,
)
from hotlap.tracks.generation.layouts import Random, perimeter
from hotlap.tracks.geometry.clothoid_path import PolygonCorner

SIDE_M = 400.0
SQUARE = [PolygonCorner(x, y, 50.0) for x, y in ((0.0, 0.0), (SIDE_M, 0.0), (SIDE_M, SIDE_M), (0.0, SIDE_M))]
STYLES = [CircuitStyle(3000.0, slow, has_long_straight=False) for slow in (0.0, 1.0)]
SEEDS = range(20)


def points(corners):
    return [(corner.x_m, corner.y_m) for corner in corners]


@pytest.mark.parametrize("style", STYLES, ids=["fast", "slow"])
def test_a_base_has_the_length_of_its_style_and_radii_that_can_be_driven(style):
    for seed in SEEDS:
        corners = draw_circuit_base(Random(seed), style)
        assert perimeter(points(corners)) == pytest.approx(style.length_m)
        assert min(corner.radius_m for corner in corners) > MIN_RADIUS_M


def test_slow_circuits_have_smaller_radii():
    fast, slow = (
        sorted(corner.radius_m for seed in SEEDS for corner in draw_circuit_base(Random(seed), style))
        for style in STYLES
    )
    assert slow[len(slow) // 2] < 0.7 * fast[len(fast) // 2]


def test_a_split_corner_becomes_two_on_its_own_edges():
    for seed in SEEDS:
        corners = split_corner(Random(seed), SQUARE)
        [gone] = set(points(SQUARE)) - set(points(corners))
        first, second = (point for point in points(corners) if point not in points(SQUARE))
        for new, other in ((first, second), (second, first)):
            assert 0.0 < math.dist(new, gone) <= 0.45 * SIDE_M
            assert math.dist(new, gone) < math.dist(new, other)  # on both sides of the old corner


@pytest.mark.parametrize("style", STYLES, ids=["fast", "slow"])
def test_detours_and_bends_replace_one_edge(style):
    for seed in SEEDS:
        detour = add_detour(Random(seed), style, SQUARE, depth_m=60.0)
        bends = add_bends(Random(seed), style, SQUARE)
        for corners in (detour, bends):
            kept = [corner for corner in corners if corner in SQUARE]
            assert kept == SQUARE
            assert len(corners) > len(SQUARE)
        assert perimeter(points(detour)) > 4.0 * SIDE_M + 60.0


def test_only_sharp_corners_after_long_straights_are_slowed_down(monkeypatch):
    monkeypatch.setattr(Random, "happens", lambda self, chance: True)
    assert all(corner.radius_m < 24.0 for corner in slow_down(Random(1), SQUARE))
    monkeypatch.setattr(circuit_layouts, "_LONG_EDGE_M", SIDE_M)
    assert slow_down(Random(1), SQUARE) == SQUARE
