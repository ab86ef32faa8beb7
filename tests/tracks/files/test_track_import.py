"""Importing centrelines."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from hotlap.drivers.driver import make_driver
from hotlap.errors import TrackError
from hotlap.evaluation.evaluate import evaluate
from hotlap.tracks.files.centreline_file import write_centreline
from hotlap.tracks.files.track_import import IMPORT_SPACING_M, import_centreline
from hotlap.tracks.geometry.centreline import Centreline, length_m
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.registry import save_track
from tracks.shapes import circle, hairpins, stadium


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


def test_a_width_the_bends_have_no_room_for_is_narrowed_there(oval, caplog):
    line = import_centreline(oval, width_m=90.0)
    assert "narrowed on the inside: by" in caplog.text
    assert line.width_right_m == pytest.approx(45.0)
    assert 20.0 < line.width_left_m.min() < 30.0


@pytest.mark.parametrize("start_m", [-1.0, 1e6, math.nan, math.inf])
def test_a_start_beyond_the_lap_is_refused(oval, start_m):
    with pytest.raises(TrackError, match="--start must be from 0 to the lap's"):
        import_centreline(oval, start_m=start_m)


def test_the_hairpin_of_spa_is_imported_narrowed_with_one_line_and_driven_clean(tmp_path, caplog):
    write_centreline(tmp_path / "spa.csv", hairpins(5.7, right=6.8, left=6.8))
    line = import_centreline(tmp_path / "spa.csv")
    [record] = caplog.records
    place = r"by \d+\.\d+ m on the left at s = \d+ m"
    assert re.search(rf"so it was narrowed on the inside: {place}, {place}\.$", record.message)
    nodes = build_nodes(line)
    assert nodes.road_right_m == pytest.approx(6.8)
    assert 3.5 < nodes.road_left_m.min() < 5.0
    save_track("spa", line, "")
    laps = evaluate(make_driver("casual"), "spa", episodes=2)
    assert (laps.completion_rate, laps.clean_lap_rate) == (1.0, 1.0)


def test_a_noisy_line_with_dense_points_is_imported(tmp_path):
    rng = np.random.default_rng(3)
    clean = circle(100.0, 628, right=6.0, left=6.0)
    noisy = replace(clean, x_m=clean.x_m + rng.normal(0.0, 0.1, 628), y_m=clean.y_m + rng.normal(0.0, 0.1, 628))
    write_centreline(tmp_path / "noisy.csv", noisy)
    assert length_m(import_centreline(tmp_path / "noisy.csv")) == pytest.approx(628.0, rel=0.01)


@pytest.mark.parametrize("options", [{}, {"reverse_travel": True}, {"start_m": 100.0}])
def test_a_fault_found_after_resampling_names_the_line_of_the_file(tmp_path, options):
    # Two legs 2 m apart: no road of any width has room there.
    write_centreline(tmp_path / "pin.csv", stadium(1.2, straight_m=250.0, spacing_m=1.0, right=4.0, left=4.0))
    with pytest.raises(TrackError, match=r"pin\.csv:(\d+): ") as caught:
        import_centreline(tmp_path / "pin.csv", **options)
    line = int(re.search(r"pin\.csv:(\d+)", str(caught.value))[1])
    row = (tmp_path / "pin.csv").read_text().splitlines()[line - 1]
    assert abs(float(row.split(",")[0])) > 40.0


def test_a_lap_that_is_too_short_or_too_long_is_refused(tmp_path):
    for radius_m in (12.0, 6000.0):
        write_centreline(tmp_path / "lap.csv", circle(radius_m, 900, right=2.0, left=2.0))
        with pytest.raises(TrackError, match=r"lap\.csv:2: the lap is .* m long; it must be at"):
            import_centreline(tmp_path / "lap.csv")
