"""`hotlap evaluate`: figures, exit codes, and one-line errors."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotlap.evaluation.baseline import measure_casual_lap
from hotlap.reports.model_laps import measure_baselines
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from tiny_runs import LUNAR, RACER, skip_evaluation, tiny_config, train

FIGURES = {
    "episodes", "laps", "completion_rate", "clean_lap_rate", "mean_lap_time_sec", "best_lap_time_sec",
    "std_lap_time_sec", "standing_lap_time_sec", "gap_to_optimal", "wall_contacts_per_lap", "mean_reward",
}  # fmt: skip


@pytest.mark.timeout(60)  # a cold start on a busy machine
def test_json_is_the_only_line_of_stdout():
    command = [sys.executable, "-m", "hotlap", "evaluate", "casual", "--episodes", "2", "--start", "random", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    [line] = answer.stdout.splitlines()
    figures = json.loads(line)
    assert set(figures) >= FIGURES
    assert (figures["episodes"], figures["laps"], figures["completion_rate"]) == (2, 2, 1.0)
    assert figures["standing_lap_time_sec"] is None
    assert "Traceback" not in answer.stderr


def test_the_text_output(hotlap):
    answer = hotlap("evaluate", "casual", "--episodes", 1)
    assert "casual on track-01, 1 episode from the line" in answer.out
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "completed      100 %" in answer.out
    assert "standing lap   mean 4" in answer.out
    assert "Traceback" not in answer.err


def test_any_whole_number_is_a_seed(hotlap):
    for seed in (-3, 2**70):
        answer = hotlap("evaluate", "casual", "--episodes", 1, "--start", "random", "--seed", seed, "--json")
        assert (answer.code, answer.figures["seed"]) == (0, seed)


def test_bad_input_is_refused_in_one_line(refused):
    assert "driver 'nobody' is not known" in refused("evaluate", "nobody")
    assert "track '' is not known" in refused("evaluate", "casual", "--track", "")
    assert "start must be one of 'line', 'random', got 'pit'" in refused("evaluate", "casual", "--start", "pit")
    assert "episodes must be from 1" in refused("evaluate", "casual", "--episodes", "9" * 30, "--json")
    assert "'--episodes'" in refused("evaluate", "casual", "--episodes", "many")
    assert "'--seed'" in refused("evaluate", "casual", "--seed", "1.5", "--json")


def test_another_car_is_measured_against_its_own_optimum(hotlap, monkeypatch):
    from hotlap.optimal import reference as module

    asked = []

    def find(track, notify, car):
        asked.append(car)
        return SimpleNamespace(lap_time_s=30.0)

    monkeypatch.setattr(module, "find_or_solve_reference", find)
    arguments = ("evaluate", "casual", "--episodes", 1, "--start", "random")
    answer = hotlap(*arguments, "--car", "grip=0.9", "--json")
    standard = hotlap(*arguments, "--json")
    assert answer.figures["car"] == "grip=0.9"
    assert "car" not in standard.figures
    assert [round(car.friction, 3) for car in asked] == [1.278, 1.42]
    assert answer.figures["gap_to_optimal"] == answer.figures["median_lap_time_sec"] / 30.0 - 1.0
    assert answer.figures["median_lap_time_sec"] > 1.03 * standard.figures["median_lap_time_sec"]
    text = hotlap(*arguments, "--car", "grip=0.9").out
    assert "casual on track-01, 1 random start, seed 0, car grip=0.9" in text


def test_for_cars_that_differ_no_gap_is_claimed(hotlap):
    answer = hotlap("evaluate", "casual", "--episodes", 2, "--start", "random", "--car", "mass=0.9:1.1", "--json")
    assert answer.figures["gap_to_optimal"] is None
    assert "no gap to the optimum: each start has a car of its own (mass=0.9:1.1)." in answer.err


def test_a_bad_car_is_refused_in_one_line(refused):
    assert "--car: grip_low must be from 0.5 to 1.5, got 9.0" in refused("evaluate", "casual", "--car", "grip=9")
    assert "one car, got cars that differ: grip=0.8:1" in refused("evaluate", "optimal", "--car", "grip=0.8:1")


@pytest.fixture
def measured(monkeypatch):
    """The drives that a command asks for, as (track, episodes, start), without driving so many."""
    from hotlap.evaluation import evaluate as module

    asked, measure = [], module.evaluate

    def record(driver, track, *, episodes, start, **options):
        asked.append((track, episodes, start))
        return measure(driver, track, episodes=min(episodes, 2), start=start, **options)

    monkeypatch.setattr(module, "evaluate", record)
    return asked


def test_by_default_a_model_drives_from_random_starts_and_once_from_the_line(hotlap, measured):
    figures = hotlap("evaluate", "champion", "--json").figures
    assert measured == [("track-01", 100, "random"), ("track-01", 1, "line")]
    assert (figures["start"], figures["seed"]) == ("random", 0)
    line = hotlap("evaluate", "champion", "--start", "line", "--episodes", 1, "--json").figures
    assert figures["standing_lap_time_sec"] == line["standing_lap_time_sec"] > 31.0
    assert figures["line_lap_time_sec"] == line["mean_lap_time_sec"]
    assert "line_lap_time_sec" not in line
    out = hotlap("evaluate", "champion").out
    assert out.startswith("champion on track-01, 2 random starts, seed 0\n")
    assert "  from the line  standing lap 32." in out
    assert max(map(len, out.splitlines())) <= 80


def test_by_default_the_built_in_drivers_drive_from_the_line(hotlap, measured, monkeypatch):
    from hotlap.drivers import driver as drivers

    make = drivers.make_driver
    monkeypatch.setattr(drivers, "make_driver", lambda name, model: make("casual", model))  # the optimal one is slow
    for driver, episodes in (("casual", 20), ("optimal", 1)):
        hotlap("evaluate", driver)
        assert measured.pop() == ("track-01", episodes, "line")
        assert measured == []


def test_reports_and_the_page_have_the_casual_lap_that_evaluate_shows(hotlap):
    """`tests/test_lap_times_agree.py` compares it with everything else."""
    lap_s = hotlap("evaluate", "casual", "--json").figures["median_lap_time_sec"]
    assert measure_casual_lap("track-01") == measure_baselines(load_track("track-01"), None).casual_lap_s == lap_s


def test_equal_episodes_are_called_so(hotlap):
    out = hotlap("evaluate", "champion", "--start", "line", "--episodes", 2).out
    assert out.startswith("champion on track-01, 2 episodes from the line, all of them the same drive\n")


# --- trained models ---


@pytest.fixture(scope="module")
def experiments(tmp_path_factory):
    """A folder with two short runs: one on track-02, with a best model, and one of CartPole."""
    path = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        skip_evaluation(patch)
        options = {"track": "track-02", "action_repeat": 3, "stack": 2}
        for name, config in (
            ("laps", tiny_config(env=RACER, steps=40, racer=options, evaluation={"interval": 20, "episodes": 1})),
            ("pole", tiny_config(env="CartPole-v1", steps=40)),
        ):
            train(config, path / "results" / "experiments" / name)
    return path


@pytest.fixture
def in_experiments(experiments, monkeypatch):
    monkeypatch.chdir(experiments)
    return Path("results") / "experiments"


def test_a_run_is_evaluated_with_its_best_model_on_its_track_or_as_asked(hotlap, in_experiments):
    answer = hotlap("evaluate", "laps", "--episodes", 2, "--json")
    assert answer.code == 0
    assert set(answer.figures) >= FIGURES
    assert (answer.figures["driver"], answer.figures["track"]) == ("ppo_seed42_best", "track-02")
    assert hotlap("evaluate", in_experiments / "laps", "--episodes", 2, "--json").figures == answer.figures
    model = in_experiments / "laps" / "ppo_seed42_model.zip"
    figures = hotlap("evaluate", model, "--track", "track-01", "--episodes", 1, "--start", "random", "--json").figures
    assert (figures["driver"], figures["track"], figures["start"]) == ("ppo_seed42_model", "track-01", "random")


def test_a_run_whose_settings_have_old_names_is_still_evaluated(hotlap, refused, in_experiments, tmp_path):
    run = tmp_path / "old"
    shutil.copytree(in_experiments / "laps", run)
    text = (run / "config.toml").read_text(encoding="utf-8")
    text = re.sub(
        r"\[racer\.rewards\].*?(?=\n\[policy\])", '[racer.config.episode]\nstart = "anywhere"\n', text, flags=re.DOTALL
    )
    (run / "config.toml").write_text(text, encoding="utf-8")
    asked = ("--episodes", 2, "--json")
    assert hotlap("evaluate", run, *asked).figures == hotlap("evaluate", "laps", *asked).figures
    for verb in ("resume", "report"):
        assert "config.toml: racer: unknown key 'config'. Write its keys in snake_case into" in refused(verb, run)


def test_a_model_of_another_environment_gets_its_mean_return(hotlap, in_experiments):
    answer = hotlap("evaluate", "pole", "--episodes", 3, "--seed", 5, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "model", "environment", "episodes", "seed", "mean_reward", "std_reward", "mean_episode_length",
    }  # fmt: skip
    assert (answer.figures["environment"], answer.figures["episodes"], answer.figures["seed"]) == ("CartPole-v1", 3, 5)
    assert answer.figures["mean_reward"] == answer.figures["mean_episode_length"]  # CartPole gives 1 per step
    assert hotlap("evaluate", "pole", "--episodes", 3, "--seed", 5, "--json").figures == answer.figures
    assert "ppo_seed42_model.zip in CartPole-v1, 3 episodes" in hotlap("evaluate", "pole", "--episodes", 3).out


def test_a_model_trained_with_envpool_is_evaluated_in_gymnasium(hotlap, tmp_path, monkeypatch):
    pytest.importorskip("envpool")
    pytest.importorskip("Box2D")
    skip_evaluation(monkeypatch)
    train(tiny_config(env=LUNAR, steps=16, num_envs=2, backend="envpool", env_args={}), tmp_path / "moon")
    answer = hotlap("evaluate", tmp_path / "moon", "--episodes", 2, "--json")
    assert (answer.code, answer.figures["environment"]) == (0, "LunarLander-v3")


def test_bad_arguments_for_a_model_are_refused_in_one_line(refused, in_experiments):
    whole = (in_experiments / "pole" / "ppo_seed42_model.zip").read_bytes()
    Path("damaged.zip").write_bytes(whole[:500] + b"x" + whole[501:])
    assert "damaged.zip" in refused("evaluate", "damaged.zip")
    assert "has no tracks" in refused("evaluate", "pole", "--track", "track-01")
    assert "episodes must be 1 or more" in refused("evaluate", "pole", "--episodes", 0)
    assert "seed must be 0 or more" in refused("evaluate", "pole", "--seed", "-1")
    assert "holds no model and no checkpoint yet" in refused("evaluate", "results")


# --- a whole split, and the drivers that come with the package ---


@pytest.fixture
def short_split(monkeypatch):
    from hotlap.tracks import registry

    monkeypatch.setattr(registry, "SPLITS", {"train": range(0), "test": range(10_000, 10_003)})
    registry._shipped.cache_clear()
    yield ["test-000", "test-001", "test-002"]
    registry._shipped.cache_clear()


def test_a_split_gives_the_figures_of_every_track(hotlap, short_split):
    answer = hotlap("evaluate", "generalist", "--split", "test", "--episodes", 1, "--json")
    found = answer.figures
    assert (answer.code, found["split"], found["completed_tracks"]) == (0, "test", 3)
    assert [row["track"] for row in found["tracks"]] == short_split
    assert all(set(row) >= FIGURES for row in found["tracks"])
    gaps = sorted(row["gap_to_optimal"] for row in found["tracks"])
    assert (found["median_gap_to_optimal"], found["worst_gap_to_optimal"]) == (gaps[1], gaps[2])
    assert len(answer.out.splitlines()) == 1


def test_the_table_of_a_split(hotlap, short_split):
    answer = hotlap("evaluate", "generalist", "--split", "test", "--episodes", 1)
    starts, head, *rows, completed, gap = answer.out.splitlines()
    assert starts == "generalist, on each track 1 random start, seed 0"
    assert head.split() == ["track", "completed", "clean", "laps", "median", "lap", "gap"]
    assert [row.split()[0] for row in rows] == short_split
    assert completed == "completed from every start: 3 of 3 tracks"
    assert gap.startswith("gap to the optimal lap: median ")


@pytest.fixture
def few_roads(monkeypatch):
    """Two roads for the evaluations of `generated`, instead of fifty."""
    from hotlap.tracks import registry

    monkeypatch.setattr(registry, "EVALUATION_SEEDS", range(2))
    registry._evaluated.cache_clear()
    yield
    registry._evaluated.cache_clear()


def test_generated_roads_are_driven_in_turn_and_have_no_gap(hotlap, few_roads):
    answer = hotlap("evaluate", "generalist", "--track", "generated", "--episodes", 2, "--json")
    found = answer.figures
    assert (answer.code, found["track"], found["episodes"], found["gap_to_optimal"]) == (0, "generated", 2, None)
    assert found["track_digest"] == track_digest(load_track("generated-000").nodes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("optimal", "--track", "generated"), "the optimal driver drives one track at a time"),
        (("casual", "--split", "tset"), "split must be one of train, test, got 'tset'"),
        (("casual", "--split", "test", "--track", "track-01"), "--split test: it names the tracks already"),
        (("champion", "--split", "test"), "driver champion: none comes with the package for 'test-000'"),
        (("champion", "--track", "train-001"), "The generalist drives any track."),
        (("champion", "--track", ""), "none comes with the package for ''"),
    ],
)
def test_a_split_or_driver_that_does_not_fit_is_refused(hotlap, arguments, words):
    answer = hotlap("evaluate", *arguments)
    assert answer.code == 2
    assert words in answer.err
    assert len(answer.err.splitlines()) == 1


@pytest.mark.parametrize("driver", ["champion", "generalist"])
def test_the_drivers_of_the_package_complete_their_laps(hotlap, driver):
    figures = hotlap("evaluate", driver, "--track", "track-01", "--episodes", 2, "--json").figures
    assert (figures["driver"], figures["completion_rate"], figures["clean_lap_rate"]) == (driver, 1.0, 1.0)
    assert figures["gap_to_optimal"] < 0.1
