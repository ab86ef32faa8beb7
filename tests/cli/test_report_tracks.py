"""`hotlap report DRIVER --tracks`: a page on the roads of track files, and its errors."""

from dataclasses import replace
from pathlib import Path

import pytest

import hotlap.tracks
from hotlap.optimal import reference as optimal_reference
from hotlap.reports import road_laps
from hotlap.reports.plots import chart
from hotlap.tracks.files.centreline_file import write_centreline
from reports.known_laps import known_reference, known_trace
from reports.test_road_laps import FIGURES
from tracks.shapes import stadium

LANTERN = Path(hotlap.tracks.__file__).parent / "data" / "track-01.csv"


@pytest.fixture(autouse=True)
def coarse_pictures(monkeypatch):
    """Fewer pixels are drawn faster."""
    monkeypatch.setattr(chart, "DPI", 40)


@pytest.fixture
def circuits(tmp_path):
    """A folder with a short track, a text and Lantern Bay."""
    folder = tmp_path / "circuits"
    folder.mkdir()
    (folder / "Lantern.csv").write_bytes(LANTERN.read_bytes())
    write_centreline(folder / "oval.csv", stadium(25.0, straight_m=60.0, right=4.0, left=4.0))
    (folder / "notes.txt").write_text("no track\n")
    return folder


def test_a_folder_of_tracks_is_driven_and_none_is_kept(hotlap, circuits, home, tmp_path):
    out = tmp_path / "out"
    (circuits / "Lantern.csv").unlink()
    answer = hotlap("report", "casual", "--tracks", circuits, "--starts", "2", "--out", out)
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "casual, on each track 2 random starts, seed 0"
    assert lines[2].split()[:6] == ["oval", "277", "m", "100", "%", "100"]
    assert lines[2].endswith("–  not solved")
    assert lines[-2] == "1 of 1 track completed from every start; no gap to an optimal lap is known"
    assert lines[-1] == f"page: {out / 'report.html'}"
    assert answer.err.startswith(f"hotlap: skipped {circuits / 'notes.txt'}:1: a row has 3, 4 or 5 columns")
    assert sorted(path.name for path in out.iterdir()) == ["report.html", "road-01-oval.png"]
    assert not home.exists()


@pytest.fixture
def driven(monkeypatch):
    """Every driver drives the known laps."""
    monkeypatch.setattr(road_laps, "evaluate", lambda driver, track, **_: replace(FIGURES, track=track.track_id))
    monkeypatch.setattr(road_laps, "record_laps", lambda *_, **__: known_trace())


@pytest.mark.usefixtures("driven")
def test_optimal_laps_are_solved_where_asked_and_kept(hotlap, circuits, monkeypatch, tmp_path):
    calls = []

    def solve(track, car=None):
        calls.append(track.track_id)
        return optimal_reference.Reference(known_reference().raceline, known_reference().lap_time_s, 30.0, 0.0)

    monkeypatch.setattr(optimal_reference, "solve_reference", solve)
    monkeypatch.setattr(optimal_reference, "solved_folder", lambda: tmp_path / "solved")
    command = ("report", "casual", "--tracks", circuits / "Lantern.csv", "--out", tmp_path, "--json")
    assert "solving the optimal lap of lantern" in hotlap(*command, "--solve").err
    figures = hotlap(*command).figures
    assert calls == ["lantern"]
    [road] = figures["tracks"]
    assert (road["file"], road["track"], road["driver"]) == (str(circuits / "Lantern.csv"), "lantern", "casual")
    assert road["gap_to_optimal"] == pytest.approx(road["median_lap_time_sec"] / road["optimal_lap_time_sec"] - 1.0)
    assert figures["median_gap_to_optimal"] == figures["worst_gap_to_optimal"] == road["gap_to_optimal"]
    assert (figures["completed_tracks"], road["stopped"], road["left_road"], figures["skipped"]) == (0, [], [], [])
    assert len(road["corners"]) == 7
    (circuits / "Lantern.csv").rename(circuits / "Bay.csv")
    hotlap("report", "casual", "--tracks", circuits / "Bay.csv", "--out", tmp_path)
    assert [path.name for path in tmp_path.glob("road-*")] == ["road-01-bay.png"]  # that of the first report is gone


def test_bad_input_is_a_one_line_error(refused, circuits, tmp_path):
    def error(*arguments):
        return refused("report", *arguments, "--out", tmp_path / "out")

    assert "notes.txt:1: a row has 3, 4 or 5 columns" in error("casual", "--tracks", circuits / "notes.txt")
    assert "missing.csv: there is no such file" in error("casual", "--tracks", circuits / "missing.csv")
    (tmp_path / "empty").mkdir()
    assert "empty: the folder holds no track. Put" in error("casual", "--tracks", tmp_path / "empty")
    assert "only for track-01" in error("champion", "--tracks", circuits / "oval.csv")
    assert "driver 'nobody' is not known" in error("nobody", "--tracks", circuits / "oval.csv")
    assert "Name a model, a run or casual" in error("optimal", "--tracks", circuits)
    assert "--tracks: it goes with one driver" in error("casual", "--track", "track-01", "--tracks", circuits)
    assert "--tracks: it goes with one driver" in error("casual", "generalist", "--tracks", circuits)
    assert "--solve: it is for track files" in error("casual", "--solve")
    assert "--starts: it is for track files" in error("casual", "--starts", "3")
    assert "--starts must be from 1 to 100000, got 0" in error(
        "casual", "--starts", "0", "--tracks", circuits / "oval.csv"
    )
    assert "needs a folder" in refused("report", "casual", "--tracks", circuits)
    assert not (tmp_path / "out").exists()
