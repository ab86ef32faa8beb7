"""Reports on disk: a page, its pictures, and errors."""

import base64
import fnmatch
import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from hotlap.errors import OutputFileError
from hotlap.reports.model_laps import Baselines, ModelLaps
from hotlap.reports.pages import report
from hotlap.reports.pages.report import write_lap_report, write_run_report
from hotlap.reports.plots import chart
from hotlap.reports.run_record import group_runs
from reports.known_laps import known_comparison, known_trace
from reports.written_runs import lander, record

LAP_FILES = ["delta.png", "line-driver.png", "line-optimum.png", "telemetry.png", "time-lost.png"]
RUN_FILES = ["laps.png", "learning.png", "reward-terms.png"]
EMPTY_RUN = record(curves={}, final=None, is_finished=False)


@pytest.fixture(autouse=True)
def very_coarse_pictures(monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_lap_report_is_a_page_and_its_pictures(comparison, track, tmp_path):
    folder = tmp_path / "new" / "casual"
    assert write_lap_report(comparison, track, folder, "$ca_sual <i>") == folder / "report.html"
    assert names(folder) == sorted([*LAP_FILES, "report.html"])
    page = (folder / "report.html").read_text(encoding="utf-8")
    embedded = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", page)]
    assert sorted(embedded) == sorted((folder / name).read_bytes() for name in LAP_FILES)
    assert all(Image.open(BytesIO(png)).width > 200 for png in embedded)
    assert "$ca_sual &lt;i&gt;" in page


@pytest.mark.parametrize(
    ("laps", "files"),
    [
        ([ModelLaps(record(), None, known_comparison())], [*LAP_FILES, *RUN_FILES]),
        ([ModelLaps(record(), known_trace(), problem="stuck.")], ["line-driver.png", *RUN_FILES]),
        ([ModelLaps(EMPTY_RUN)], []),
        ([ModelLaps(lander())], ["learning.png"]),
        (
            [ModelLaps(record(1)), ModelLaps(record(2), None, known_comparison())],
            ["deltas.png", "line-driver.png", "line-optimum.png", *RUN_FILES],
        ),
    ],
    ids=["racer", "racer without a flying lap", "nothing recorded", "lander", "two racers"],
)
def test_run_report_has_the_pictures_it_has_data_for(laps, files, track, tmp_path):
    runs = [one.record for one in laps]
    racer_track = None if runs[0].track is None else track
    page = write_run_report(group_runs(runs), laps, racer_track, Baselines(40.0, 28.0), tmp_path)
    assert page == tmp_path / "report.html"
    assert names(tmp_path) == sorted([*files, "report.html"])


def test_earlier_report_is_replaced_and_other_files_stay(comparison, track, tmp_path):
    (tmp_path / "laps.png").write_text("mine")
    write_lap_report(comparison, track, tmp_path, "casual")
    assert (tmp_path / "laps.png").read_text() == "mine"  # there was no report beside it
    for name in ("report.html", "laps.png", "notes.png"):
        (tmp_path / name).write_text("old")
    write_lap_report(comparison, track, tmp_path, "casual")
    assert names(tmp_path) == sorted([*LAP_FILES, "notes.png", "report.html"])
    assert (tmp_path / "report.html").read_text(encoding="utf-8") != "old"


def test_every_picture_is_listed_and_documented():
    assert {*LAP_FILES, *RUN_FILES, "deltas.png", "gaps.png", "league.png"} == set(report.PICTURE_NAMES)
    text = (Path(__file__).resolve().parents[3] / "docs" / "report.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([\w-]+\.png)`", text))
    roads = set(fnmatch.filter(documented, report.ROAD_PICTURES))
    assert roads
    assert documented - roads == set(report.PICTURE_NAMES)


def test_report_that_cannot_be_written_is_an_error_and_leaves_no_temporary_files(comparison, track, tmp_path):
    (tmp_path / "file").write_text("")
    for place in ("file", "file/deeper"):
        with pytest.raises(OutputFileError, match="the report cannot be written"):
            write_lap_report(comparison, track, tmp_path / place, "casual")
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.html" / "in the way").write_text("")
    with pytest.raises(OutputFileError):
        write_lap_report(comparison, track, tmp_path, "casual")
    assert not list(tmp_path.glob(".report*"))
