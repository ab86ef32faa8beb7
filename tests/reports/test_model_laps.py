"""A run's model on its track: a lap against the optimum, or one line on why there is none."""

from dataclasses import dataclass, replace

import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ModelError
from hotlap.reports import model_laps as drives
from hotlap.reports.model_laps import Drive, drive_run, fastest_drive, measure_yardsticks
from hotlap.tracks.files import Raceline
from hotlap.tracks.registry import load_track
from reports.written_runs import record


@dataclass(frozen=True)
class Known:
    raceline: Raceline
    lap_time_s: float


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def reference(track):
    raceline = centreline_raceline(track)
    return Known(raceline, float(clock(raceline, track)[1][-1]))


@pytest.fixture
def driven(monkeypatch, track, reference):
    """The next drive is this many laps on the centreline at nine tenths of the optimum's speed."""

    def set_laps(num_laps: int) -> None:
        trace = follow(reference.raceline, track, 0.9, num_laps=num_laps)
        monkeypatch.setattr(drives, "make_driver", lambda name: CasualDriver())
        monkeypatch.setattr(drives, "record_laps", lambda *_, **__: trace)

    return set_laps


def test_a_flying_lap_is_held_against_the_optimum(track, reference, driven):
    driven(3)
    found = drive_run(record(), track, reference)
    assert found.trouble is None
    assert found.comparison is not None
    assert found.comparison.gap == pytest.approx(1.0 / 0.9 - 1.0, rel=1e-3)
    assert found.model == "casual"


def test_without_a_flying_lap_the_way_is_kept(track, reference, driven):
    driven(1)
    found = drive_run(record(), track, reference)
    assert found.comparison is None
    assert found.trace is not None
    assert found.trouble == "its model finished 1 of 3 laps, none of them flying."


def test_an_unknown_optimum_is_said(track, driven):
    driven(3)
    found = drive_run(record(), track, None)
    assert (found.comparison, found.trace is not None) == (None, True)
    assert found.trouble is not None
    assert "`hotlap optimal track-01` solves it" in found.trouble


def test_a_model_that_is_refused_costs_the_lap_and_nothing_else(track, reference, monkeypatch):
    def refuse(name):
        raise ModelError(f"{name}: was trained on other physics.")

    monkeypatch.setattr(drives, "make_driver", refuse)
    found = drive_run(record(), track, reference)
    assert (found.trace, found.comparison) == (None, None)
    assert found.trouble == f"no lap to show. {record().folder}: was trained on other physics."


def test_a_run_without_a_model_is_no_error(track, reference, tmp_path):
    found = drive_run(record(folder=tmp_path), track, reference)
    assert found.trouble is not None
    assert "holds no model and no checkpoint yet" in found.trouble


def test_the_fastest_clean_lap_wins(track, reference, driven):
    driven(3)
    one = drive_run(record(1), track, reference)
    assert one.comparison is not None
    faster = replace(one, comparison=replace(one.comparison, lap=replace(one.comparison.lap, time_s=20.0)))
    assert faster.comparison is not None
    dirty_lap = replace(faster.comparison.lap, time_s=10.0, is_clean=False)
    dirty = replace(one, comparison=replace(one.comparison, lap=dirty_lap))
    assert fastest_drive([one, Drive(record(2)), dirty, faster]) is faster
    assert fastest_drive([Drive(record(2)), dirty]) is dirty
    assert fastest_drive([Drive(record(2))]) is None
    assert fastest_drive([one, one]) is one


def test_the_casual_driver_and_the_optimum_are_the_yardsticks(track, reference, monkeypatch):
    monkeypatch.setattr(drives, "CASUAL_EPISODES", 2)
    found = measure_yardsticks(track, reference)
    assert found.casual_lap_s == pytest.approx(40.7, abs=0.3)  # as docs/casual-driver.md has it
    assert found.optimal_lap_s == reference.lap_time_s
