"""Importing centrelines."""

import math

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.centreline import Centreline, length_m
from hotlap.tracks.centreline_file import write_centreline
from hotlap.tracks.geometry import build_nodes
from hotlap.tracks.track_import import IMPORT_SPACING_M, import_centreline


@pytest.fixture
def oval(tmp_path):
    """An ellipse in map coordinates, driven to the left, narrower on the right than on the left."""
    angle = np.linspace(0.0, 2.0 * math.pi, 120, endpoint=False)
    x, y = 500_000.0 + 120.0 * np.cos(angle), 5_300_000.0 + 60.0 * np.sin(angle)
    write_centreline(tmp_path / "oval.csv", Centreline(x, y, 0 * angle + 3.0, 0 * angle + 5.0))
    return tmp_path / "oval.csv"


def turning(line: Centreline) -> float:
    """Twice the enclosed area: positive for a left-hand loop."""
    return float(np.sum(line.x_m * np.roll(line.y_m, -1) - np.roll(line.x_m, -1) * line.y_m))


def test_the_track_is_moved_near_the_origin_and_resampled_and_reversing_swaps_left_and_right(oval):
    line, back = import_centreline(oval), import_centreline(oval, reverse_travel=True)
    assert max(abs(line.x_m).max(), abs(line.y_m).max()) < 200.0
    steps = np.hypot(np.diff(line.x_m), np.diff(line.y_m))
    assert steps == pytest.approx(IMPORT_SPACING_M, rel=0.05)
    assert np.ptp(line.x_m) == pytest.approx(240.0, abs=0.1)
    assert turning(line) > 0.0 > turning(back)
    assert line.width_right_m == pytest.approx(3.0)
    assert line.width_left_m == pytest.approx(5.0)
    assert back.width_right_m == pytest.approx(5.0)
    assert back.width_left_m == pytest.approx(3.0)
    assert math.hypot(back.x_m[0] - line.x_m[0], back.y_m[0] - line.y_m[0]) < 0.01
    assert build_nodes(line).num_nodes > 100


def test_the_start_line_moves_forward_and_a_width_applies_to_the_whole_road(oval):
    still, moved = import_centreline(oval), import_centreline(oval, start_m=40.0, width_m=10.0)
    assert length_m(moved) == pytest.approx(length_m(still), rel=1e-3)
    ahead = np.hypot(still.x_m - moved.x_m[0], still.y_m - moved.y_m[0]).argmin() * IMPORT_SPACING_M
    assert ahead == pytest.approx(40.0, abs=IMPORT_SPACING_M)
    assert moved.width_left_m + moved.width_right_m == pytest.approx(10.0)
    assert build_nodes(import_centreline(oval, reverse_travel=True, width_m=12.0, start_m=33.0)).num_nodes > 100


@pytest.mark.parametrize("width_m", [0.0, -5.0, 2.9, 101.0, math.nan, math.inf])
def test_an_impossible_width_is_refused(oval, width_m):
    with pytest.raises(TrackError, match="--width must be from 3 to 100 m"):
        import_centreline(oval, width_m=width_m)


def test_a_width_the_bends_do_not_allow_is_refused(oval):
    with pytest.raises(TrackError, match="tighter than the half-width"):
        import_centreline(oval, width_m=90.0)


@pytest.mark.parametrize("start_m", [-1.0, 1e6, math.nan, math.inf])
def test_a_start_beyond_the_lap_is_refused(oval, start_m):
    with pytest.raises(TrackError, match="--start must be from 0 to the lap's"):
        import_centreline(oval, start_m=start_m)


def tight_oval(left_m: float) -> Centreline:
    """An ellipse with a radius of 30 m at its ends, three points of which have `left_m` of road on the inside."""
    angle = np.linspace(0.0, 2.0 * math.pi, 120, endpoint=False)
    left = np.full_like(angle, 5.0)
    left[59:62] = left_m
    return Centreline(120.0 * np.cos(angle), 60.0 * np.sin(angle), np.full_like(angle, 3.0), left)


def test_a_bend_a_little_tighter_than_its_road_is_narrowed_with_a_warning(tmp_path, caplog):
    write_centreline(tmp_path / "oval.csv", tight_oval(31.0))
    line = import_centreline(tmp_path / "oval.csv")
    assert "is a little tighter than its road: narrowed by" in caplog.text
    assert 20.0 < build_nodes(line).road_left_m.max() < 30.0


def test_a_bend_that_is_much_too_tight_is_refused_unless_a_width_is_given(tmp_path):
    write_centreline(tmp_path / "oval.csv", tight_oval(38.0))
    with pytest.raises(TrackError, match=r"oval\.csv:6[123]: curve at s = \d+ m has a radius of 30"):
        import_centreline(tmp_path / "oval.csv")
    assert build_nodes(import_centreline(tmp_path / "oval.csv", width_m=10.0)).road_left_m == pytest.approx(5.0)
