"""The scripts that make the README's tables and pictures, on synthetic runs; the cost of sweeps; the sweep files."""

import importlib.util
import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest
from PIL import Image

import hotlap.tracks
from hotlap.reports.model_laps import Baselines, ModelLaps
from hotlap.reports.plots import chart
from hotlap.runs.recipe import resolve_config
from hotlap.runs.run_config import load_config
from hotlap.sweeps.sweep_file import load_sweep
from reports.known_laps import known_comparison
from reports.written_runs import LANDER_CURVES, LUNAR, RACER_CURVES, points_of, write_run

DATA = Path(hotlap.tracks.__file__).parent / "data"
BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
EVALUATION = {"completion_rate": 1.0, "clean_lap_rate": 0.9, "median_lap_time_sec": 31.5, "gap_to_optimal": 0.11}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
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


def test_table_of_racers(racers, capsys):
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
    assert load("tables").main([racers[0], "--best"]) == 0  # a racer's evaluation is of its best model already
    assert "| 31.50 s | +11.0 % |" in capsys.readouterr().out


def test_the_figures_of_runs_are_written_as_json(racers, landers, tmp_path):
    for runs, expected in ((racers, {"track": "track-01", "gap": 0.11}), (landers, {"solved_at_step": 3000})):
        file = tmp_path / "runs.json"
        assert load("tables").main([*runs, "--json", str(file)]) == 0
        written = json.loads(file.read_text(encoding="utf-8"))
        assert written["origin"]["command"]
        assert [run["seed"] for run in written["runs"]] == [1, 2]
        assert expected.items() <= written["runs"][0].items()


def test_table_of_landers_and_of_their_best_models(landers, capsys, monkeypatch):
    tables = load("tables")
    assert tables.main(landers) == 0
    assert "| 2 | 4,000 | 123 s | 3,000 | 300 s | 240.0 | 20.0 | 300 |" in capsys.readouterr().out
    measure = Mock(return_value={"mean_reward": 251.0, "std_reward": 11.0, "mean_episode_length": 222.0})
    monkeypatch.setattr(tables, "find_model", lambda run: run)
    monkeypatch.setattr(tables, "evaluate_model", measure)
    assert tables.main([landers[0], "--best"]) == 0
    assert measure.call_args.args[:2] == (landers[0], 100)
    assert "| 251.0 | 11.0 | 222 |" in capsys.readouterr().out


def test_picture_of_landers(landers, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)
    assert load("pictures").main([*landers, "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "new" / "learning.png")]
    assert Image.open(tmp_path / "new" / "learning.png").width > 200


def test_pictures_of_racers(racers, tmp_path, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 40)
    pictures = load("pictures")
    monkeypatch.setattr(pictures, "drive_model", lambda record, *_: ModelLaps(record, None, known_comparison()))
    monkeypatch.setattr(pictures, "measure_baselines", lambda *_: Baselines(40.0, 28.0))
    assert pictures.main([*racers, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "learning.png").is_file()
    width, height = Image.open(tmp_path / "learned.png").size
    assert width > height


def test_no_run_or_one_without_an_episode_is_a_one_line_error(tmp_path, capsys):
    young = str(write_run(tmp_path / "young", env=LUNAR, is_finished=False).path)
    (tmp_path / "young" / "ppo_seed1_metrics.jsonl").unlink()
    out = ["--out", str(tmp_path / "new")]
    assert load("tables").main([str(tmp_path)]) == 2
    assert load("pictures").main([str(tmp_path), *out]) == 2
    assert load("pictures").main([young, *out]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["no run there" in line for line in lines] == [True, True, False]
    assert "no run has finished an episode yet" in lines[2]


def test_the_cost_of_many_machines_from_figures_that_can_be_checked_by_hand(capsys):
    script = load("scale_cost")
    given = {"runs": 100, "run-s": 100, "slots": 2, "slowdown": 1, "price": 1}
    given |= dict.fromkeys(("task-s", "scheduler-s", "start-s"), 0)
    arguments = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    assert script.main([*arguments, "--json"]) == 0
    one, ten, hundred, _ = json.loads(capsys.readouterr().out)["estimates"]
    assert (one["wall_s"], ten["wall_s"], hundred["wall_s"]) == (5000, 500, 100)  # 50 waves, 5, and one half empty
    assert (ten["efficiency"], hundred["efficiency"]) == (1.0, 0.5)
    assert hundred["cost"] == pytest.approx(100 * 100 / 3600)
    assert script.main([*arguments, "--scheduler-s", "3"]) == 0
    assert "| 1,000 | 0.08 h |" in capsys.readouterr().out  # 300 s: the scheduling process is the limit
    assert script.main(["--runs", "0"]) == 2


def test_the_documented_cost_command_prints_the_table_of_its_defaults(capsys):
    script = load("scale_cost")
    page = (BENCHMARKS.parent / "docs" / "sweeps.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^python benchmarks/scale_cost.py (.*)", page, re.MULTILINE)
    assert script.main(command.split()) == script.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("*.sweep.toml")), ids=lambda path: path.name)
def test_the_sweep_files_that_ship_are_valid(path):
    sweep = load_sweep(path)
    assert sweep.trials * len(sweep.seeds) >= 3
    assert f"benchmarks/{path.name}" in path.read_text(encoding="utf-8")


def test_table_of_two_learners(capsys):
    gaps = {"PPO": [0.05, 0.06, 0.07], "SB3Learner": [0.06, 0.08, float("nan")]}
    runs = [
        {"learner": name, "seed": seed, "checks": [{"return": 1.0, "completed": 1.0, "gap": gap}]}
        for name, values in gaps.items()
        for seed, gap in enumerate(values)
    ]
    load("learners").print_table(runs, 3_000_000, 1)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| million decisions | figure | learner | seeds | interval |"
    assert lines[6] == "| 3.00 | gap | PPO | 0.050, 0.060, 0.070 | 0.050 to 0.070 |"
    assert lines[7] == "| 3.00 | gap | SB3Learner | 0.060, 0.080, nan | - |"


@pytest.mark.slow
def test_two_learners_are_trained_and_compared():
    program = [sys.executable, BENCHMARKS / "learners.py", "--seeds", "1", "--steps", "65536", "--checks", "2"]
    done = subprocess.run([*program, "--episodes", "2"], capture_output=True, text=True, check=True)
    assert done.stdout.count("PPO") == done.stdout.count("SB3Learner") == 6


def laps(*gaps):
    return [
        Mock(
            completion_rate=1.0,
            clean_lap_rate=1.0 if gap else 0.0,
            gap_to_optimal=gap,
            as_dict=Mock(return_value={"gap": gap}),
        )
        for gap in gaps
    ]


def test_changes_are_compared_with_the_recipe_by_whether_their_seeds_overlap(tmp_path, monkeypatch):
    script = load("ablations")
    found = {
        "recipe": laps(0.030, 0.033, 0.031, 0.029, 0.035),
        "rays": laps(0.051, 0.036, 0.04, 0.041, 0.039),
        "gamma-990": laps(0.028, 0.034, 0.04, 0.041, 0.042),
        "fourier-8": laps(0.02, 0.028, 0.021, 0.022, 0.023),
        "head-pedal": laps(0.03, None, 0.05, 0.05, 0.05),
        "spun-0": laps(0.02, 0.02, 0.02),
    }
    lines = script.make_table(found).splitlines()
    assert lines[2].endswith("| 3.0, 3.3, 3.1, 2.9, 3.5 % | 3.1 % |  |")
    assert lines[3].endswith("| 100 %, 100 %, 100 %, 100 %, 100 % | 5.1, 3.6, 4.0, 4.1, 3.9 % | 4.0 % | slower |")
    assert [line.split("|")[-2].strip() for line in lines[4:]] == [
        "not told apart",
        "faster",
        "a run without clean laps",
        "",  # too few seeds
    ]
    assert "| 100 %, 0 %, 100 %, 100 %, 100 % | 3.0, –, 5.0, 5.0, 5.0 % |" in lines[6]
    monkeypatch.setattr(chart, "DPI", 40)
    picture = tmp_path / "gaps.png"
    picture.write_bytes(script.draw_gaps(found))
    assert Image.open(picture).width == 40 * chart.WIDTH_IN


def test_ablations_can_change_another_recipe(tmp_path):
    script = load("ablations")
    other, usual = (script.Job("batch-512", 2, tmp_path, None, recipe) for recipe in ("racer-a2c", script.RECIPE))
    assert (other.name, usual.name) == ("racer-a2c-batch-512-seed2", "batch-512-seed2")
    assert (other.config.algo, other.config.seed, other.config.ppo.batch_size) == ("a2c", 2, 512)
    assert script.main(["--recipe", "racer-none", "--out", str(tmp_path), "--table"]) == 2


@pytest.mark.parametrize("name", load("ablations").CHANGES)
def test_every_change_is_a_valid_setting_unlike_the_recipe(name):
    script = load("ablations")
    changed = resolve_config(script.RECIPE, script.CHANGES[name].settings)
    assert (changed != resolve_config(script.RECIPE, {})) == (name != script.BASE)


def finish(folder, config):
    """A finished run of these settings, as far as the script looks."""
    write_run(folder, seed=config.seed, logged=points_of(RACER_CURVES), evaluation=EVALUATION)
    (folder / "config.toml").write_text(config.to_toml(), encoding="utf-8")


def test_a_run_is_begun_then_resumed_then_left_alone(tmp_path, capsys, monkeypatch):
    script = load("ablations")
    train = Mock(return_value=Mock(pid=2**22 + 1, wait=Mock(return_value=1)))  # no process has this number
    monkeypatch.setattr(script.subprocess, "Popen", train)
    monkeypatch.setenv("HOTLAP_COMMIT", "0123abcd")
    asked = ["--only", "rays", "--out", str(tmp_path)]
    assert script.main(asked) == 2  # all five failed, so there is nothing to show
    assert "has no finished run of these changes" in capsys.readouterr().err
    begun = [call.args[0][3:] for call in train.call_args_list]
    files = [str(tmp_path / "rays-seed2.toml"), "--run-name", str(tmp_path / "rays-seed2")]
    assert len(begun) == 5
    assert begun[1] == ["train", "--recipe", *files, "--quiet"]
    config = load_config(tmp_path / "rays-seed2.toml")
    assert (config.seed, config.racer.observation, config.ppo.gamma) == (2, "rays", 0.987)

    finish(tmp_path / "rays-seed1", load_config(tmp_path / "rays-seed1.toml"))
    (tmp_path / "rays-seed2").mkdir()
    (tmp_path / "rays-seed2" / "config.toml").write_bytes((tmp_path / "rays-seed2.toml").read_bytes())
    train.reset_mock()
    monkeypatch.setattr(script, "evaluate_best", lambda job: laps(0.05)[0])
    assert script.main([*asked, "--json", str(tmp_path / "figures.json")]) == 1
    assert [call.args[0][3] for call in train.call_args_list] == ["resume", "train", "train", "train"]
    written = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))
    assert written["origin"]["machine"].endswith(f"Python {platform.python_version()}")
    assert written["origin"]["commit"] == "0123abcd"
    assert [(run["change"], run["seed"], run["evaluation"]) for run in written["runs"]] == [("rays", 1, {"gap": 0.05})]
    printed = capsys.readouterr()
    assert "| 5.0 % | 5.0 % |  |" in printed.out  # no verdict from one seed
    assert printed.err.count("rays-seed2: the run failed. Its output is in") == 1

    train.reset_mock()
    assert script.main([*asked, "--table"]) == 0
    assert not train.called
    assert script.main([*asked, "--table", "--steps", "1000"]) == 2
    assert "is of a run with other settings than rays-seed1" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["--workers", "0"], ["--steps", "-1"], ["--only", "nothing"]])
def test_ablations_refuse_wrong_options(wrong):
    with pytest.raises(SystemExit, match="2"):
        load("ablations").main(wrong)


def test_ablations_refuse_places_that_hold_nothing(tmp_path, capsys):
    script = load("ablations")
    (tmp_path / "file").write_text("")
    assert script.main(["--out", str(tmp_path / "file" / "out"), "--only", "rays"]) == 2
    assert script.main(["--out", str(tmp_path), "--picture", str(tmp_path / "file" / "a.png"), "--table"]) == 2
    assert [line.startswith("ablations: ") for line in capsys.readouterr().err.splitlines()] == [True, True]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_change_is_trained_evaluated_and_drawn(tmp_path, capfd):
    arguments = ["--only", "rays", "--steps", "32768", "--workers", "2", "--out", str(tmp_path / "runs")]
    assert load("ablations").main([*arguments, "--picture", str(tmp_path / "gaps.png")]) == 0
    row = "| `observation` rays | 0 %, 0 %, 0 %, 0 %, 0 % | –, –, –, –, – | –, –, –, –, – | – | "
    assert row + "a run without clean laps |" in capfd.readouterr().out
    assert Image.open(tmp_path / "gaps.png").width > 200


def test_generated_circuits_are_compared_with_files(tmp_path, capsys):
    script, file, results = load("road_statistics"), DATA / "track-01.csv", tmp_path / "roads.json"
    picture = tmp_path / "roads.png"
    assert script.main([str(file), "--seeds", "2", "--json", str(results), "--picture", str(picture)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| lap (m) | 890 / 890 / 890 | 890 to 890 | ")
    assert " of the 7 real corners have a near one among the " in lines[-2]
    assert json.loads(results.read_text(encoding="utf-8"))["spreads"]["lap (m)"]["real"][0] == pytest.approx(890, abs=1)
    assert Image.open(picture).width > 1000
    assert script.main([str(tmp_path / "missing.csv"), "--seeds", "1"]) == 2
    assert capsys.readouterr().err.startswith("road_statistics: ")
    with pytest.raises(SystemExit):
        script.main([str(file), "--seeds", "0"])
    assert "--seeds must be 1 or more" in capsys.readouterr().err


def test_training_over_the_bridge_is_measured_with_and_without_it(compiled, capsys):
    small = ["--cars", "4", "--rollouts", "1", "--library-rollouts", "1", "--library-steps", "64"]
    assert load("bridge_training").main(small) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["recipe_figures"]) == ["bridge", "local"]
    assert list(found["library_figures"]) == ["bridge", "local", "idle"]
    for name in ("recipe_figures", "library_figures"):
        for figures in found[name].values():
            assert min(figures["decisions_per_sec"], figures["cpu_ms_per_decision"]) > 0.0


@pytest.mark.usefixtures("compiled")
def test_a_driver_is_measured_in_the_first_overtaking_scenarios(capsys, tmp_path):
    script = load("overtaking")
    assert script.main(["casual", "--first", "2", "--json", str(tmp_path / "few.json")]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:3] == ["driver", "safe", "overtakes"]
    [driver] = json.loads((tmp_path / "few.json").read_text(encoding="utf-8"))["drivers"]
    assert (driver["driver"], driver["overall"]["scenarios"]) == ("casual", 2)
    assert script.main(["casual", "--first", "0"]) == 2
    assert capsys.readouterr().err == "overtaking: --first must be from 1 to 2400, got 0.\n"


def test_a_league_of_too_few_races_gets_one_line(capsys):
    assert load("league").main(["--races", "2"]) == 2
    assert capsys.readouterr().err == "league: a league has from 3 races, one a track, to 100000, got 2.\n"
