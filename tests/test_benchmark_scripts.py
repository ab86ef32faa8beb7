"""The scripts that make the README's tables and pictures, run on made-up runs."""

import importlib.util
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports.model_laps import Drive, Yardsticks
from hotlap.reports.plots import chart
from hotlap.tracks.registry import load_track
from reports.written_runs import LANDER_CURVES, LUNAR, RACER_CURVES, points_of, write_run

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
EVALUATION = {"completion_rate": 1.0, "clean_lap_rate": 0.9, "median_lap_time_sec": 31.5, "gap_to_optimal": 0.11}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def racers(tmp_path):
    return [
        str(write_run(tmp_path / f"r{s}", seed=s, logged=points_of(RACER_CURVES), evaluation=EVALUATION).path)
        for s in (1, 2)
    ]


@pytest.fixture
def landers(tmp_path):
    return [str(write_run(tmp_path / f"l{s}", env=LUNAR, seed=s, logged=points_of(LANDER_CURVES)).path) for s in (1, 2)]


def test_the_racers_table(racers, capsys):
    assert load("tables").main(racers) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "PPO on track-01",
        "",
        "| seed | steps | training | completed | clean laps | median lap | gap to optimum |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| 1 | 4,000 | 123 s | 100 % | 90 % | 31.50 s | +11.0 % |",
    ]
    assert "| **median** |  | **123 s** | **100 %** | **90 %** | **31.50 s** | **+11.0 %** |" in lines
    assert any(line.startswith("| **worst** |") for line in lines)


def test_the_landers_table(landers, capsys):
    assert load("tables").main(landers) == 0
    assert "| 2 | 4,000 | 123 s | 3,000 | 300 s | 240.0 | 20.0 | 300 |" in capsys.readouterr().out


def test_a_landers_best_model_is_measured_when_asked(landers, capsys, monkeypatch):
    tables = load("tables")
    asked = []

    def measure(path, episodes, seed):
        asked.append((path, episodes))
        return {"mean_reward": 251.0, "std_reward": 11.0, "mean_episode_length": 222.0}

    monkeypatch.setattr(tables, "find_model", lambda run: run)
    monkeypatch.setattr(tables, "evaluate_model", measure)
    assert tables.main([landers[0], "--best"]) == 0
    assert asked == [(landers[0], 100)]
    assert "| 251.0 | 11.0 | 222 |" in capsys.readouterr().out


def test_a_racers_run_quotes_its_best_model_anyway(racers, capsys):
    assert load("tables").main([racers[0], "--best"]) == 0
    assert "| 31.50 s | +11.0 % |" in capsys.readouterr().out


def test_the_landers_picture(landers, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)
    assert load("pictures").main([*landers, "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "new" / "learning.png")]
    assert Image.open(tmp_path / "new" / "learning.png").width > 200


def test_the_racers_pictures(racers, tmp_path, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)
    pictures = load("pictures")
    track = load_track("track-01")
    line = centreline_raceline(track)
    lap = compare(follow(line, track, 0.9), track, line, float(clock(line, track)[1][-1]))
    monkeypatch.setattr(pictures, "drive_run", lambda record, *_: Drive(record, None, lap))
    monkeypatch.setattr(pictures, "measure_yardsticks", lambda *_: Yardsticks(40.0, 28.0))
    assert pictures.main([*racers, "--out", str(tmp_path)]) == 0
    sizes = [Image.open(BytesIO((tmp_path / name).read_bytes())).size for name in ("learned.png", "learning.png")]
    assert sizes[0][0] > sizes[0][1]


@pytest.mark.parametrize("name", ["tables", "pictures"])
def test_what_is_no_run_is_refused_in_one_line(name, tmp_path, capsys):
    arguments = [str(tmp_path)] + (["--out", str(tmp_path)] if name == "pictures" else [])
    assert load(name).main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "no run there" in line


def test_runs_without_a_lap_have_no_picture(tmp_path, capsys):
    pictures = load("pictures")
    young = str(write_run(tmp_path / "young", env=LUNAR, is_finished=False).path)
    (tmp_path / "young" / "ppo_seed1_metrics.jsonl").unlink()
    assert pictures.main([young, "--out", str(tmp_path / "new")]) == 2
    assert "no run has finished an episode yet" in capsys.readouterr().err
