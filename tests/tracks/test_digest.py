"""The digest identifies the road, not the walls."""

from dataclasses import replace

import pytest

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track

NODES = load_track("track-01").nodes


def test_the_digest_of_a_shipped_track_does_not_change():
    assert track_digest(NODES) == "5692f681dbde6baf"


@pytest.mark.parametrize("name", ["x_m", "curvature_radpm", "road_left_m", "road_right_m"])
def test_a_changed_road_has_another_digest(name):
    assert track_digest(replace(NODES, **{name: getattr(NODES, name) + 1e-9})) != track_digest(NODES)


def test_walls_do_not_enter_the_digest():
    assert track_digest(replace(NODES, wall_left_m=NODES.wall_left_m + 1.0)) == track_digest(NODES)
