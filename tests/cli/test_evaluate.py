"""`hotlap evaluate`: figures out, exit codes, and refusals in one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tiny_runs import LUNAR, RACER, skip_evaluation, tiny_config, train

FIGURES = {
    "episodes", "laps", "completion_rate", "clean_lap_rate", "mean_lap_time_sec", "best_lap_time_sec",
    "std_lap_time_sec", "standing_lap_time_sec", "gap_to_optimal", "wall_contacts_per_lap", "mean_reward",
}  # fmt: skip


def test_json_is_the_last_line_of_stdout_and_nothing_else_is_there():
    command = [sys.executable, "-m", "hotlap", "evaluate", "casual", "--episodes", "2", "--start", "random", "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=9, check=True)
    figures = json.loads(answer.stdout.splitlines()[-1])
    assert set(figures) >= FIGURES
    assert (figures["episodes"], figures["laps"], figures["completion_rate"]) == (2, 2, 1.0)
    assert figures["standing_lap_time_sec"] is None
    assert len(answer.stdout.splitlines()) == 1
    assert "Traceback" not in answer.stderr


def test_for_people(hotlap):
    answer = hotlap("evaluate", "casual", "--episodes", 1)
    assert answer.code == 0
    assert "casual on track-01, 1 episodes from line" in answer.out
    assert "completed      100 %" in answer.out
    assert "standing lap   mean 4" in answer.out
    assert "Traceback" not in answer.err


@pytest.mark.parametrize("seed", [-3, 2**70])
def test_any_whole_number_is_a_seed(hotlap, seed):
    answer = hotlap("evaluate", "casual", "--episodes", 1, "--start", "random", "--seed", seed, "--json")
    assert (answer.code, answer.figures["seed"]) == (0, seed)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "driver 'nobody' is not known"),
        (["casual", "--track", "nowhere"], "track 'nowhere' is not known"),
        (["casual", "--track", "track-1"], "Did you mean 'track-01'?"),
        (["casual", "--track", "../track-01"], "'../track-01' is not known"),
        (["casual", "--track", ""], "track '' is not known"),
        (["casual", "--start", "pit"], "start must be 'line' or 'random', got 'pit'"),
        (["casual", "--episodes", "0"], "episodes must be from 1"),
        (["casual", "--episodes", "-4"], "episodes must be from 1"),
        (["casual", "--episodes", "9" * 30], "episodes must be from 1"),
        (["casual", "--episodes", "many"], "'--episodes'"),
        (["casual", "--episodes", "1.5"], "'--episodes'"),
        (["casual", "--seed", "x"], "'--seed'"),
        (["casual", "--seed", "1.5"], "'--seed'"),
    ],
)
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_bad_input_is_refused_in_one_line(refused, arguments, words, more):
    assert words in refused("evaluate", *arguments, *more)


# --- trained models ---


@pytest.fixture(scope="module")
def experiments(tmp_path_factory):
    """A folder with two short runs in it: one on track-02, with a best model, and one on the pole."""
    path = tmp_path_factory.mktemp("experiments")
    with pytest.MonkeyPatch.context() as patch:
        skip_evaluation(patch)
        world = {"track": "track-02", "action_repeat": 3, "stack": 2}
        for name, config in (
            ("laps", tiny_config(env=RACER, steps=40, racer=world, evaluation={"interval": 20, "episodes": 1})),
            ("pole", tiny_config(env="CartPole-v1", steps=40)),
        ):
            train(config, path / "results" / "experiments" / name)
    return path


@pytest.fixture
def inside(experiments, monkeypatch):
    monkeypatch.chdir(experiments)
    return Path("results") / "experiments"


def test_a_run_means_its_best_model_on_its_own_track(hotlap, inside):
    answer = hotlap("evaluate", "laps", "--episodes", 2, "--json")
    assert answer.code == 0
    assert set(answer.figures) >= FIGURES
    assert (answer.figures["driver"], answer.figures["track"]) == ("ppo_seed42_best", "track-02")
    assert hotlap("evaluate", inside / "laps", "--episodes", 2, "--json").figures == answer.figures


def test_another_track_can_be_asked_for_and_another_model_named(hotlap, inside):
    model = inside / "laps" / "ppo_seed42_model.zip"
    figures = hotlap("evaluate", model, "--track", "track-01", "--episodes", 1, "--start", "random", "--json").figures
    assert (figures["driver"], figures["track"], figures["start"]) == ("ppo_seed42_model", "track-01", "random")


def test_a_model_of_another_environment_gets_its_mean_return(hotlap, inside):
    answer = hotlap("evaluate", "pole", "--episodes", 3, "--seed", 5, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "model", "environment", "episodes", "seed", "mean_reward", "std_reward", "mean_episode_length",
    }  # fmt: skip
    assert (answer.figures["environment"], answer.figures["episodes"], answer.figures["seed"]) == ("CartPole-v1", 3, 5)
    assert answer.figures["mean_reward"] == answer.figures["mean_episode_length"]  # the pole gives one a step
    assert hotlap("evaluate", "pole", "--episodes", 3, "--seed", 5, "--json").figures == answer.figures
    assert "ppo_seed42_model.zip in CartPole-v1, 3 episodes" in hotlap("evaluate", "pole", "--episodes", 3).out


def test_what_was_trained_over_envpool_is_evaluated_in_gymnasium(hotlap, tmp_path, monkeypatch):
    pytest.importorskip("envpool")
    pytest.importorskip("Box2D")
    skip_evaluation(monkeypatch)
    train(tiny_config(env=LUNAR, steps=16, num_envs=2, backend="envpool", env_args={}), tmp_path / "moon")
    answer = hotlap("evaluate", tmp_path / "moon", "--episodes", 2, "--json")
    assert (answer.code, answer.figures["environment"]) == (0, "LunarLander-v3")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["pole", "--track", "track-01"], "is a model of CartPole-v1, which has none"),
        (["pole", "--episodes", "0"], "episodes must be 1 or more"),
        (["pole", "--seed", "-1"], "seed must be 0 or more"),
        (["laps", "--track", ""], "track '' is not known"),
        (["laps", "--episodes", "0"], "episodes must be from 1"),
        (["damaged.zip"], "damaged.zip"),
        (["results"], "holds no model and no checkpoint yet"),
    ],
)
def test_what_a_model_cannot_do_is_refused_in_one_line(refused, inside, arguments, words):
    whole = (inside / "pole" / "ppo_seed42_model.zip").read_bytes()
    Path("damaged.zip").write_bytes(whole[:500] + b"x" + whole[501:])
    assert words in refused("evaluate", *arguments)
