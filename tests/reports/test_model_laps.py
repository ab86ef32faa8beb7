"""A run's model on its track: a lap compared with the optimum, or the reason why there is none."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from hotlap.drivers.casual import CasualDriver
from hotlap.errors import ModelError
from hotlap.evaluation import baseline
from hotlap.reports import model_laps
from hotlap.reports.model_laps import Baselines, ModelLaps, drive_model, drive_runs, fastest_laps, measure_baselines
from reports.known_laps import known_trace
from reports.written_runs import record


@pytest.fixture
def set_laps(monkeypatch):
    """Makes the next model finish this many known laps."""

    def set_laps(num_laps: int) -> None:
        monkeypatch.setattr(model_laps, "find_driver", lambda name: CasualDriver())
        monkeypatch.setattr(model_laps, "record_laps", lambda *_, **__: known_trace(num_laps))

    return set_laps


def test_flying_lap_is_compared_with_the_optimum(track, reference, set_laps):
    set_laps(3)
    found = drive_model(record(), track, reference)
    assert found.problem is None
    assert found.comparison.gap == pytest.approx(1.0 / 0.9 - 1.0, rel=1e-3)
    assert found.driver_name == "casual"


@pytest.mark.parametrize(
    ("num_laps", "has_reference", "problem"),
    [
        (1, True, "its model finished 1 of 3 laps, none of them flying."),
        (3, False, "the optimal lap of track-01 is not known. `hotlap optimal track-01` solves it."),
    ],
)
def test_without_a_comparison_trace_and_reason_remain(track, reference, set_laps, num_laps, has_reference, problem):
    set_laps(num_laps)
    found = drive_model(record(), track, reference if has_reference else None)
    assert found == ModelLaps(record(), known_trace(num_laps), None, "casual", problem)


def test_rejected_or_missing_model_is_reported_as_a_problem(track, reference, tmp_path, monkeypatch):
    assert "holds no model and no checkpoint yet" in drive_model(record(folder=tmp_path), track, reference).problem

    def refuse(name):
        raise ModelError(f"{name}: was trained on other physics.")

    monkeypatch.setattr(model_laps, "find_driver", refuse)
    problem = f"no lap to show. {record().folder}: was trained on other physics."
    assert drive_model(record(), track, reference) == ModelLaps(record(), problem=problem)


def test_every_run_is_driven_with_its_own_progress_bar(track, reference, set_laps, monkeypatch):
    set_laps(3)
    monkeypatch.setattr(model_laps, "find_reference", lambda track: reference)
    monkeypatch.setattr(model_laps, "measure_baselines", lambda *_, **__: Baselines(40.0, 28.0))
    titles = []

    def progress_bar(title):
        titles.append(title)
        return nullcontext(lambda fraction: None)

    laps, baselines = drive_runs([record(1), record(2)], track, seed=0, progress_bar=progress_bar)
    assert [one.record.seed for one in laps if one.comparison] == [1, 2]
    assert titles == ["run1 on track-01", "run2 on track-01"]
    assert baselines == Baselines(40.0, 28.0)


def test_fastest_clean_lap_is_chosen(comparison):
    def laps(seed: int, time_s: float, is_clean: bool = True) -> ModelLaps:
        lap = replace(comparison.lap, time_s=time_s, is_clean=is_clean)
        return ModelLaps(record(seed), None, replace(comparison, lap=lap))

    slow, fast, dirty, none = laps(1, 30.0), laps(2, 20.0), laps(3, 10.0, is_clean=False), ModelLaps(record(4))
    assert fastest_laps([slow, none, dirty, fast]) is fast
    assert fastest_laps([none, dirty]) is dirty
    assert fastest_laps([none]) is None
    assert fastest_laps([slow, slow]) is slow


def test_baselines_are_the_casual_driver_and_the_optimum(track, reference, monkeypatch):
    monkeypatch.setattr(baseline, "CASUAL_EPISODES", 2)
    found = measure_baselines(track, reference)
    assert found.casual_lap_s == pytest.approx(40.7, abs=0.3)  # see docs/casual-driver.md
    assert found.optimal_lap_s == reference.lap_time_s
