"""`hotlap report`: a page on a driver, and what it refuses."""

from dataclasses import dataclass

import numpy as np
import pytest

from evaluation.synthetic import centreline_raceline, clock
from hotlap.drivers import driver as driver_module
from hotlap.optimal import store
from hotlap.tracks.files import Raceline
from hotlap.tracks.registry import load_track


@dataclass(frozen=True)
class Known:
    raceline: Raceline
    lap_time_s: float


@pytest.fixture
def reference(monkeypatch):
    """A known optimum, so that these tests depend on no stored one."""
    track = load_track("track-01")
    line = centreline_raceline(track)
    known = Known(line, float(clock(line, track)[1][-1]))
    monkeypatch.setattr(store, "find_reference", lambda track: known)
    return known


class Statue:
    name = "statue"

    def begin(self, fleet, seed):
        pass

    def act(self, obs):
        return np.zeros((1, 3), np.float32)


def test_figures_and_page(hotlap, reference, tmp_path):
    answer = hotlap("report", "casual", "--out", tmp_path / "new", "--json")
    assert answer.code == 0
    figures = answer.figures
    assert figures["driver"] == "casual"
    assert figures["clean"] is True
    assert 35.0 < figures["lap_time_sec"] < 45.0
    assert figures["optimal_lap_time_sec"] == reference.lap_time_s
    assert figures["gap_to_optimal"] == pytest.approx(figures["lap_time_sec"] / reference.lap_time_s - 1.0)
    lost = [corner["lost_sec"] for corner in figures["corners"]]
    assert sum(lost) == pytest.approx(figures["lap_time_sec"] - reference.lap_time_s, abs=1e-3)
    assert lost == sorted(lost, reverse=True)
    assert figures["page"] == str(tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "time-lost.png").is_file()


@pytest.mark.usefixtures("reference")
def test_for_people(hotlap, tmp_path):
    answer = hotlap("report", "casual", "--out", tmp_path)
    assert answer.out.startswith("casual on Lantern Bay: 40.")
    assert "s lost" in answer.out
    assert answer.out.rstrip().endswith("report.html")


def test_an_unknown_optimum_is_refused_before_driving(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(store, "find_reference", lambda track: None)
    assert "`hotlap optimal track-02` solves it" in refused(
        "report", "casual", "--track", "track-02", "--out", tmp_path
    )


@pytest.mark.usefixtures("reference")
def test_a_driver_without_a_flying_lap_is_below_what_was_asked(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(driver_module, "make_driver", lambda name: Statue())
    answer = hotlap("report", "statue", "--out", tmp_path)
    assert answer.code == 1
    assert "0 of 3 laps" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody", "--out", "x"], "driver 'nobody' is not known"),
        (["casual", "--out", "x", "--track", "nowhere"], "track 'nowhere' is not known"),
        (["casual"], "--out"),
    ],
)
def test_bad_input_is_refused_in_one_line(refused, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert words in refused("report", *arguments)


@pytest.mark.usefixtures("reference")
def test_a_folder_that_cannot_be_made_is_refused_before_driving(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(driver_module, "make_driver", lambda name: pytest.fail("it drove"))
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("report", "casual", "--out", tmp_path / "file" / "deeper")
