"""`hotlap report`: a page on a driver or on runs, and its errors."""

from unittest.mock import Mock

import numpy as np
import pytest

from hotlap.drivers import driver as driver_module
from hotlap.evaluation import telemetry
from hotlap.optimal import reference as optimal_reference
from hotlap.reports import model_laps
from hotlap.reports.model_laps import Baselines
from hotlap.reports.plots import chart
from reports.known_laps import known_reference, known_trace
from reports.written_runs import LANDER_CURVES, LUNAR, RACER_CURVES, points_of, write_run


@pytest.fixture
def reference(monkeypatch):
    """A known optimum, so that these tests do not depend on the shipped one."""
    for module in (optimal_reference, model_laps):
        monkeypatch.setattr(module, "find_reference", lambda track: known_reference())
    return known_reference()


@pytest.fixture(autouse=True)
def coarse_pictures(monkeypatch):
    """Fewer pixels are drawn faster."""
    monkeypatch.setattr(chart, "DPI", 40)


# A driver that never moves.
STATUE = Mock(observation="rays", act=lambda obs: np.zeros((1, 3), np.float32))
STATUE.name = "statue"


@pytest.fixture
def laps(monkeypatch, reference):
    """Every driver drives the known laps; returns the calls."""
    calls = []

    def record(driver, track_id, *, num_laps, seed, progress):
        calls.append((driver.name, track_id, num_laps))
        return known_trace()

    monkeypatch.setattr(telemetry, "record_laps", record)
    return calls


def test_driver_report(hotlap, reference, laps, tmp_path):
    figures = hotlap("report", "casual", "--out", tmp_path / "new", "--json").figures
    assert laps == [("casual", "track-01", 3)]
    assert (figures["driver"], figures["clean"]) == ("casual", True)
    assert figures["lap_time_sec"] == pytest.approx(reference.lap_time_s / 0.9)
    assert figures["optimal_lap_time_sec"] == reference.lap_time_s
    assert figures["gap_to_optimal"] == pytest.approx(figures["lap_time_sec"] / reference.lap_time_s - 1.0)
    lost = [corner["lost_sec"] for corner in figures["corners"]]
    assert sum(lost) == pytest.approx(figures["lap_time_sec"] - reference.lap_time_s, abs=1e-3)
    assert lost == sorted(lost, reverse=True)
    assert figures["page"] == str(tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "time-lost.png").is_file()
    answer = hotlap("report", "casual", "--out", tmp_path)
    assert answer.out.startswith(f"casual on Lantern Bay: {reference.lap_time_s / 0.9:.2f} s, optimum")
    assert answer.out.splitlines()[0].endswith("(best of 2 flying laps)")
    assert "s lost" in answer.out
    assert "-0.00" not in answer.out
    assert (answer.code, answer.out.rstrip().endswith("report.html")) == (0, True)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("reference")
def test_real_laps_of_the_casual_driver(hotlap, tmp_path):
    figures = hotlap("report", "casual", "--out", tmp_path, "--json").figures
    assert 35.0 < figures["lap_time_sec"] < 45.0
    assert figures["clean"] is True


def test_unknown_optimum_or_unwritable_folder_is_an_error_before_driving(refused, monkeypatch, tmp_path):
    monkeypatch.setattr(telemetry, "record_laps", lambda *_, **__: pytest.fail("it drove"))
    monkeypatch.setattr(optimal_reference, "find_reference", lambda track: None)
    unknown = refused("report", "casual", "--track", "track-02", "--out", tmp_path)
    assert "`hotlap optimal track-02` solves it" in unknown
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: pytest.fail("a driver was made"))
    (tmp_path / "file").write_text("")
    assert "cannot be made" in refused("report", "casual", "--out", tmp_path / "file" / "deeper")


@pytest.mark.usefixtures("reference")
def test_driver_without_a_flying_lap_exits_with_1(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(driver_module, "make_driver", lambda *_: STATUE)
    answer = hotlap("report", "casual", "--out", tmp_path)
    assert answer.code == 1
    assert "0 of 3 laps" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reference")
def test_bad_input_is_a_one_line_error(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "track 'nowhere' is not known" in refused("report", "casual", "--out", "x", "--track", "nowhere")
    assert "--out: the report on casual needs a folder" in refused("report", "casual")
    assert "'casual' is not a run" in refused("report", "casual", "optimal", "--out", "x")
    assert "driver 'nobody' is not known" in refused("report", "nobody")
    assert "holds no model and no checkpoint yet" in refused("report", ".")
    assert "Missing argument" in refused("report")


# --- runs ---

EVALUATION = {"completion_rate": 1.0, "clean_lap_rate": 0.9, "median_lap_time_sec": 31.5, "gap_to_optimal": 0.11}


@pytest.fixture
def driven(monkeypatch, reference):
    """Every run's model drives the known laps; the baselines are known."""
    monkeypatch.setattr(model_laps, "find_driver", lambda *_: STATUE)
    monkeypatch.setattr(model_laps, "record_laps", lambda *_, **__: known_trace())
    monkeypatch.setattr(model_laps, "measure_baselines", lambda *_, **__: Baselines(40.0, reference.lap_time_s))


def racer(path, seed, **more):
    return write_run(path / f"r{seed}", seed=seed, logged=points_of(RACER_CURVES), evaluation=EVALUATION, **more).path


@pytest.mark.usefixtures("driven")
def test_report_on_a_run_is_written_into_its_folder(hotlap, reference, tmp_path):
    run = racer(tmp_path, 1)
    answer = hotlap("report", run, "--json")
    assert answer.code == 0, answer.err
    [figures] = answer.figures["runs"]
    assert [figures[name] for name in ("run", "seed", "finished", "steps")] == [str(run), 1, True, 4000]
    assert (figures["median_lap_time_sec"], figures["gap_to_optimal"]) == (31.5, 0.11)
    assert figures["best_lap_time_sec"] == pytest.approx(reference.lap_time_s / 0.9, rel=1e-3)
    assert len(figures["corners"]) == 7
    assert answer.figures["casual_lap_time_sec"] == 40.0
    assert answer.figures["page"] == str(run / "report" / "report.html")
    assert {"laps.png", "learning.png", "line-driver.png"} <= {path.name for path in (run / "report").iterdir()}


@pytest.mark.usefixtures("driven")
def test_report_on_several_runs_as_text(hotlap, tmp_path):
    answer = hotlap("report", racer(tmp_path, 2), racer(tmp_path, 1), "--out", tmp_path / "both")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "PPO"
    assert [line.split()[0] for line in lines[1:-1]] == ["seed", "1", "2", "median", "worst", "interquartile", "its"]
    assert lines[-1] == f"page: {tmp_path / 'both' / 'report.html'}"
    assert len({len(line) for line in lines[1:4]}) == 1  # aligned


def test_run_on_another_environment_is_not_driven(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(model_laps, "find_driver", lambda *_: pytest.fail("it drove"))
    run = write_run(tmp_path / "lander", env=LUNAR, logged=points_of(LANDER_CURVES)).path
    answer = hotlap("report", run)
    assert answer.code == 0, answer.err
    assert "time to 200" in answer.out
    assert sorted(path.name for path in (run / "report").iterdir()) == ["learning.png", "report.html"]


@pytest.mark.usefixtures("reference")
def test_unfinished_run_without_a_model_is_reported(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(model_laps, "measure_baselines", lambda *_, **__: Baselines())
    run = write_run(tmp_path / "young", is_finished=False).path
    answer = hotlap("report", run)
    assert (answer.code, "1, so far" in answer.out) == (0, True)
    assert "young: no lap to show." in answer.err
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    assert "young is not finished: step 2,000 of 4,000" in page


@pytest.mark.usefixtures("driven")
def test_bad_runs_are_one_line_errors(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two = racer(tmp_path, 1), racer(tmp_path, 2)
    lander = write_run(tmp_path / "lander", env=LUNAR).path
    assert "a report on several runs needs a folder" in refused("report", one, two)
    assert "'nobody' is not a run" in refused("report", one, "nobody", "--out", "x")
    assert "its environment is LunarLander-v3" in refused("report", one, lander, "--out", "x")
    assert "the run is given twice" in refused("report", one, one, "--out", "x")
    assert "a run is shown on its own track" in refused("report", one, "--track", "track-02")
    (one / "ppo_seed1_results.json").write_text("{")
    assert "ppo_seed1_results.json: not valid JSON" in refused("report", one)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_report_on_a_real_run(hotlap, tmp_path):
    from tiny_runs import tiny_config, train

    train(tiny_config(evaluation={"interval": 50, "episodes": 2}), tmp_path / "racer")
    answer = hotlap("report", tmp_path / "racer", "--json")
    assert answer.code == 0, answer.err
    [figures] = answer.figures["runs"]
    assert (figures["steps"], figures["finished"], figures["completion_rate"]) == (100, True, 0.0)
    assert "line-driver.png" in {path.name for path in (tmp_path / "racer" / "report").iterdir()}
