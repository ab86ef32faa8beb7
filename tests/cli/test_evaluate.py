"""`hotlap evaluate`: figures out, exit codes, and refusals in one line."""

import json
import subprocess
import sys

import pytest

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
