"""`hotlap report`: a page on a driver or on runs, and what it refuses."""

from dataclasses import dataclass

import numpy as np
import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.drivers import driver as driver_module
from hotlap.evaluation import telemetry as trace
from hotlap.optimal import reference as store
from hotlap.reports import model_laps as drives
from hotlap.reports.model_laps import Yardsticks
from hotlap.reports.plots import chart
from hotlap.tracks.files import Raceline
from hotlap.tracks.registry import load_track
from reports.written_runs import LANDER_CURVES, LUNAR, RACER_CURVES, points_of, write_run


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


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few pixels draw faster."""
    monkeypatch.setattr(chart, "DPI", 40)


class Statue:
    name = "statue"

    def begin(self, fleet, seed):
        pass

    def act(self, obs):
        return np.zeros((1, 3), np.float32)


@pytest.fixture
def laps(monkeypatch, reference):
    """Whoever drives does three laps on the centreline at nine tenths of the optimum's speed; who did is noted."""
    drivers = []
    driven = follow(reference.raceline, load_track("track-01"), 0.9, num_laps=3)

    def record(driver, track_id, *, num_laps, seed, progress):
        drivers.append((driver.name, track_id, num_laps))
        return driven

    monkeypatch.setattr(trace, "record_laps", record)
    return drivers


def test_figures_and_page(hotlap, reference, laps, tmp_path):
    answer = hotlap("report", "casual", "--out", tmp_path / "new", "--json")
    assert answer.code == 0
    assert laps == [("casual", "track-01", 3)]
    figures = answer.figures
    assert figures["driver"] == "casual"
    assert figures["clean"] is True
    assert figures["lap_time_sec"] == pytest.approx(reference.lap_time_s / 0.9)
    assert figures["optimal_lap_time_sec"] == reference.lap_time_s
    assert figures["gap_to_optimal"] == pytest.approx(figures["lap_time_sec"] / reference.lap_time_s - 1.0)
    lost = [corner["lost_sec"] for corner in figures["corners"]]
    assert sum(lost) == pytest.approx(figures["lap_time_sec"] - reference.lap_time_s, abs=1e-3)
    assert lost == sorted(lost, reverse=True)
    assert figures["page"] == str(tmp_path / "new" / "report.html")
    assert (tmp_path / "new" / "time-lost.png").is_file()


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.usefixtures("reference")
def test_the_casual_drivers_own_laps(hotlap, tmp_path):
    figures = hotlap("report", "casual", "--out", tmp_path, "--json").figures
    assert 35.0 < figures["lap_time_sec"] < 45.0
    assert figures["clean"] is True


@pytest.mark.usefixtures("laps")
def test_for_people(hotlap, reference, tmp_path):
    answer = hotlap("report", "casual", "--out", tmp_path)
    assert answer.out.startswith(f"casual on Lantern Bay: {reference.lap_time_s / 0.9:.2f} s, optimum")
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
    answer = hotlap("report", "casual", "--out", tmp_path)
    assert answer.code == 1
    assert "0 of 3 laps" in answer.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody", "--out", "x"], "driver 'nobody' is not known"),
        (["casual", "--out", "x", "--track", "nowhere"], "track 'nowhere' is not known"),
        (["casual"], "--out: the report on casual needs a folder"),
        (["casual", "optimal", "--out", "x"], "'casual' is no run"),
        (["nobody"], "driver 'nobody' is not known"),
        (["."], "holds no model and no checkpoint yet"),
        ([], "Missing argument"),
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


# --- runs ---

EVALUATION = {"completion_rate": 1.0, "clean_lap_rate": 0.9, "median_lap_time_sec": 31.5, "gap_to_optimal": 0.11}


@pytest.fixture
def driven(monkeypatch, reference):
    """Each run's model drives the centreline at nine tenths of the optimum's speed; the yardsticks are known."""
    found = follow(reference.raceline, load_track("track-01"), 0.9, num_laps=3)
    monkeypatch.setattr(drives, "make_driver", lambda name: Statue())
    monkeypatch.setattr(drives, "record_laps", lambda *_, **__: found)
    monkeypatch.setattr(drives, "measure_yardsticks", lambda *_, **__: Yardsticks(40.0, reference.lap_time_s))


def racer(path, seed, **more):
    return write_run(path / f"r{seed}", seed=seed, logged=points_of(RACER_CURVES), evaluation=EVALUATION, **more).path


@pytest.mark.usefixtures("driven")
def test_a_run_is_reported_within_its_folder(hotlap, reference, tmp_path):
    run = racer(tmp_path, 1)
    answer = hotlap("report", run, "--json")
    assert answer.code == 0, answer.err
    [figures] = answer.figures["runs"]
    assert figures["run"] == str(run)
    assert (figures["seed"], figures["finished"], figures["steps"]) == (1, True, 4000)
    assert (figures["median_lap_time_sec"], figures["gap_to_optimal"]) == (31.5, 0.11)
    assert figures["best_lap_time_sec"] == pytest.approx(reference.lap_time_s / 0.9, rel=1e-3)
    assert len(figures["corners"]) == 7
    assert answer.figures["casual_lap_time_sec"] == 40.0
    assert answer.figures["page"] == str(run / "report" / "report.html")
    assert {"laps.png", "learning.png", "line-driver.png"} <= {path.name for path in (run / "report").iterdir()}


@pytest.mark.usefixtures("driven")
def test_runs_side_by_side_for_people(hotlap, tmp_path):
    answer = hotlap("report", racer(tmp_path, 2), racer(tmp_path, 1), "--out", tmp_path / "both")
    assert answer.code == 0, answer.err
    lines = answer.out.splitlines()
    assert lines[0] == "PPO"
    assert [line.split()[0] for line in lines[1:-1]] == ["seed", "1", "2", "median", "worst", "interquartile", "its"]
    assert lines[-1] == f"page: {tmp_path / 'both' / 'report.html'}"
    assert len({len(line) for line in lines[1:4]}) == 1  # in columns


def test_another_environments_run_needs_no_driver(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(drives, "make_driver", lambda name: pytest.fail("it drove"))
    run = write_run(tmp_path / "lander", env=LUNAR, logged=points_of(LANDER_CURVES)).path
    answer = hotlap("report", run)
    assert answer.code == 0, answer.err
    assert "time to 200" in answer.out
    assert sorted(path.name for path in (run / "report").iterdir()) == ["learning.png", "report.html"]


@pytest.mark.usefixtures("reference")
def test_a_run_in_progress_without_a_model_is_reported_and_says_so(hotlap, monkeypatch, tmp_path):
    monkeypatch.setattr(drives, "measure_yardsticks", lambda *_, **__: Yardsticks())
    run = write_run(tmp_path / "young", is_finished=False).path
    answer = hotlap("report", run)
    assert answer.code == 0, answer.err
    assert "young: no lap to show." in answer.err
    assert "1, so far" in answer.out
    page = (run / "report" / "report.html").read_text(encoding="utf-8")
    assert "young is not finished: step 2,000 of 4,000" in page


@pytest.mark.usefixtures("driven")
def test_runs_that_cannot_be_reported_are_refused_in_one_line(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, two = racer(tmp_path, 1), racer(tmp_path, 2)
    lander = write_run(tmp_path / "lander", env=LUNAR).path
    assert "several runs need a folder" in refused("report", one, two)
    assert "'nobody' is no run" in refused("report", one, "nobody", "--out", "x")
    assert "its environment is LunarLander-v3" in refused("report", one, lander, "--out", "x")
    assert "is named twice" in refused("report", one, one, "--out", "x")
    assert "a run is shown on its own track" in refused("report", one, "--track", "track-02")
    (one / "ppo_seed1_results.json").write_text("{")
    assert "ppo_seed1_results.json: not valid JSON" in refused("report", one)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_run_that_was_really_trained(hotlap, tmp_path):
    from tiny_runs import tiny_config, train

    train(tiny_config(evaluation={"interval": 50, "episodes": 2}), tmp_path / "racer")
    answer = hotlap("report", tmp_path / "racer", "--json")
    assert answer.code == 0, answer.err
    [figures] = answer.figures["runs"]
    assert (figures["steps"], figures["finished"], figures["completion_rate"]) == (100, True, 0.0)
    assert "line-driver.png" in {path.name for path in (tmp_path / "racer" / "report").iterdir()}
