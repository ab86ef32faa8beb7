"""Reports on disk: a page, its pictures, and refusals."""

import base64
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.errors import OutputFileError
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports import report
from hotlap.reports.model_laps import Drive, Yardsticks
from hotlap.reports.plots import chart
from hotlap.reports.report import write_report, write_run_report
from hotlap.reports.run_record import group_runs
from hotlap.tracks.registry import load_track
from reports.written_runs import lander, record

LAP_FILES = ["delta.png", "line-driver.png", "line-optimum.png", "telemetry.png", "time-lost.png"]
RUN_FILES = ["laps.png", "learning.png", "reward-terms.png"]


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def inputs(track):
    raceline = centreline_raceline(track)
    return follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1])


@pytest.fixture(scope="module")
def comparison(inputs):
    return compare(*inputs)


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few pixels draw faster."""
    monkeypatch.setattr(chart, "DPI", 40)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_drivers_page_and_pictures_are_there_and_nothing_else(inputs, tmp_path):
    folder = tmp_path / "new" / "casual"
    assert write_report(*inputs, folder, "$ca_sual <i>") == folder / "report.html"
    assert names(folder) == sorted([*LAP_FILES, "report.html"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    inside = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", page)]
    assert sorted(inside) == sorted((folder / name).read_bytes() for name in LAP_FILES)
    assert all(Image.open(BytesIO(png)).width > 200 for png in inside)
    assert "$ca_sual &lt;i&gt;" in page


def test_a_racers_run(track, comparison, tmp_path):
    groups = group_runs([record()])
    drives = [Drive(record(), None, comparison)]
    assert write_run_report(groups, drives, track, Yardsticks(40.0, 28.0), tmp_path) == tmp_path / "report.html"
    assert names(tmp_path) == sorted([*LAP_FILES, *RUN_FILES, "report.html"])


def test_a_run_that_cannot_lap_shows_how_far_it_came(track, inputs, tmp_path):
    drives = [Drive(record(), inputs[0], trouble="stuck.")]
    write_run_report(group_runs([record()]), drives, track, Yardsticks(), tmp_path)
    assert names(tmp_path) == sorted(["line-driver.png", *RUN_FILES, "report.html"])


def test_a_run_without_anything_to_draw(track, tmp_path):
    run = record(curves={}, final=None, is_finished=False)
    write_run_report(group_runs([run]), [Drive(run)], track, Yardsticks(), tmp_path)
    assert names(tmp_path) == ["report.html"]


def test_a_landers_run(tmp_path):
    write_run_report(group_runs([lander()]), [Drive(lander())], None, Yardsticks(), tmp_path)
    assert names(tmp_path) == ["learning.png", "report.html"]


def test_runs_side_by_side(track, comparison, tmp_path):
    runs = [record(1), record(2)]
    drives = [Drive(runs[0]), Drive(runs[1], None, comparison)]
    write_run_report(group_runs(runs), drives, track, Yardsticks(40.0, 28.0), tmp_path)
    assert names(tmp_path) == sorted(["deltas.png", "line-driver.png", "line-optimum.png", *RUN_FILES, "report.html"])


def test_an_older_report_is_replaced_and_other_files_stay(inputs, tmp_path):
    for name in ("report.html", "laps.png", "notes.png"):
        (tmp_path / name).write_text("old")
    write_report(*inputs, tmp_path, "casual")
    assert names(tmp_path) == sorted([*LAP_FILES, "notes.png", "report.html"])
    assert (tmp_path / "report.html").read_text(encoding="utf-8") != "old"


def test_where_no_report_was_nothing_is_taken_for_a_part_of_one(inputs, tmp_path):
    (tmp_path / "laps.png").write_text("mine")
    write_report(*inputs, tmp_path, "casual")
    assert (tmp_path / "laps.png").read_text() == "mine"


def test_every_picture_is_known_to_whoever_cleans_up():
    assert set(LAP_FILES + RUN_FILES + ["deltas.png"]) == set(report.PICTURE_NAMES)


def test_every_picture_is_documented():
    text = (Path(__file__).resolve().parents[2] / "docs" / "report.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`([\w-]+\.png)`", text)) == set(report.PICTURE_NAMES)


def test_a_folder_that_cannot_be_written_is_refused(inputs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputFileError, match="the report cannot be written"):
        write_report(*inputs, tmp_path / "file" / "deeper", "casual")
    with pytest.raises(OutputFileError, match="the report cannot be written"):
        write_report(*inputs, tmp_path / "file", "casual")


def test_a_report_that_fails_leaves_no_half(inputs, tmp_path):
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "in the way").write_text("")
    with pytest.raises(OutputFileError):
        write_report(*inputs, tmp_path, "casual")
    assert not list(tmp_path.glob(".report*"))


def test_importing_the_module_does_not_load_matplotlib():
    code = "import sys, hotlap.reports.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
