"""Corners of tracks with a known shape."""

import math

import pytest

from hotlap.tracks.geometry.corners import find_corners, name_corners
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.registry import load_track
from tracks.shapes import circle, rounded_square


def test_a_rounded_square_has_four_corners_and_a_circle_one():
    corners = find_corners(build_nodes(rounded_square()))
    assert [c.turn_rad for c in corners] == pytest.approx([math.pi / 2] * 4, rel=0.05)
    assert [c.apex for c in corners] == sorted(c.apex for c in corners)
    assert [c.turn_rad for c in find_corners(build_nodes(circle(50.0, 60)))] == pytest.approx([2 * math.pi], rel=1e-3)


def test_the_corners_of_track_01_are_named():
    track = load_track("track-01")
    names = name_corners(track.nodes, find_corners(track.nodes))
    assert names == ["right sweeper", "chicane", "chicane", "hairpin", "left", "right kink", "right"]
