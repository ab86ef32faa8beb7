"""The report on disk: a page, its pictures, and refusals; what is drawn is read back from the pixels."""

import base64
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.errors import OutputFileError
from hotlap.evaluation import report
from hotlap.evaluation.comparison import compare
from hotlap.evaluation.report import loss_rate, write_report
from hotlap.tracks.registry import load_track

FILES = ["delta.png", "line-driver.png", "line-optimum.png", "report.html", "telemetry.png", "time-lost.png"]


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def inputs(track):
    raceline = centreline_raceline(track)
    return follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1])


@pytest.fixture(scope="module")
def folder(inputs, tmp_path_factory):
    place = tmp_path_factory.mktemp("reports") / "new" / "casual"
    assert write_report(*inputs, place, "$ca_sual <i>") == place / "report.html"
    return place


def share_of(path: Path, colour: str, tolerance=20) -> float:
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=np.int64)
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return float((np.abs(pixels - wanted).max(axis=2) <= tolerance).mean())


def test_page_and_pictures_are_there_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_the_page_holds_the_pictures_themselves(folder):
    page = (folder / "report.html").read_text(encoding="utf-8")
    inside = [base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", page)]
    assert sorted(inside) == sorted((folder / name).read_bytes() for name in FILES if name.endswith("png"))
    assert all(Image.open(BytesIO(png)).width > 1000 for png in inside)


@pytest.mark.parametrize("name", ["delta.png", "telemetry.png", "time-lost.png"])
def test_driver_and_optimum_have_the_same_colours_everywhere(folder, name):
    assert share_of(folder / name, report.DRIVER) > 5e-4
    assert share_of(folder / name, report.OPTIMUM) > 2e-4


def test_losses_are_red_where_time_is_lost(inputs, folder):
    assert share_of(folder / "time-lost.png", report.LOSS, 40) > 1e-3
    rate = loss_rate(compare(*inputs))
    assert rate.mean() == pytest.approx(100.0 * (inputs[3] / 9.0) / inputs[1].nodes.length_m, rel=1e-3)
    assert rate.min() > 0.0


def test_both_lines_share_one_scale_of_speed(inputs, track, monkeypatch):
    ranges = []
    monkeypatch.setattr(report, "draw_speed_line", lambda *_, range_mps: ranges.append(range_mps))
    result = compare(*inputs)
    report._draw_all(result, track, "casual")
    slowest, fastest = result.driver_line[2].min(), result.optimal_line[2].max()
    assert ranges == [pytest.approx((slowest, fastest))] * 2


def test_an_older_report_is_replaced(inputs, tmp_path):
    (tmp_path / "report.html").write_text("old")
    write_report(*inputs, tmp_path, "casual")
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    assert (tmp_path / "report.html").read_text(encoding="utf-8") != "old"


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
    code = "import sys, hotlap.evaluation.report; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
