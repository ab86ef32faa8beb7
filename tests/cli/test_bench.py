"""`hotlap bench`: its output and errors."""

import re
import warnings
from unittest.mock import Mock

import pytest

from hotlap.errors import ConfigError


def test_sim(hotlap):
    arguments = ("--num-envs", 16, "--threads", 1, "--observation", "road", "--seconds", 0.2, "--json")
    answer = hotlap("bench", "sim", *arguments)
    figures = answer.figures
    assert set(figures) == {
        "steps_per_sec", "num_envs", "threads", "device", "track", "observation", "seconds",
        "single_env_steps_per_sec", "step_usec", "reset_usec", "cars_per_race",
    }  # fmt: skip
    assert figures["cars_per_race"] is None
    assert (figures["num_envs"], figures["threads"], figures["device"]) == (16, 1, "cpu")
    assert (figures["track"], figures["observation"], figures["seconds"]) == ("track-01", "road", 0.2)
    assert figures["steps_per_sec"] > 0.0
    answer = hotlap("bench", "sim", "--num-envs", 4, "--threads", 1, "--seconds", 0.1)
    assert answer.out.startswith("4 cars, 1 thread, cpu, rays: ")
    assert "one RacerEnv:" in answer.out


def test_sim_of_races(hotlap):
    arguments = ("--num-envs", 16, "--threads", 1, "--num-cars", 8, "--seconds", 0.1)
    figures = hotlap("bench", "sim", *arguments, "--json").figures
    assert (figures["num_envs"], figures["cars_per_race"], figures["observation"]) == (16, 8, "race")
    assert figures["steps_per_sec"] > 0.0
    out = hotlap("bench", "sim", *arguments).out
    assert re.fullmatch(r"16 cars in races of 8, 1 thread, cpu, race: [\d,]+ steps/s\n", out)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--num-cars", 8, "--observation", "road"), "cars of a race see 'race', got 'road'"),
        (("--observation", "race"), "Give --num-cars, too"),
        (("--num-cars", 33), "num_cars must be from 1 to 32, got 33"),
        (("--num-cars", 3, "--num-envs", 16), "num_envs must be a multiple of num_cars, 3, got 16"),
    ],
)
def test_races_that_cannot_be_are_refused_in_one_line(refused, arguments, words):
    assert words in refused("bench", "sim", *arguments)


def test_train(hotlap):
    answer = hotlap("bench", "train", "--num-envs", 4, "--rollouts", 1, "--json")
    figures = answer.figures
    assert (answer.code, figures["num_envs"], figures["track"], figures["device"]) == (0, 4, "track-01", "cpu")
    assert figures["ratio"] == pytest.approx(figures["decisions_per_sec"] / figures["stock_decisions_per_sec"])
    assert figures["samples_per_sec"] == pytest.approx(figures["ppo"]["n_epochs"] * figures["decisions_per_sec"])
    ours, stock = hotlap("bench", "train", "--num-envs", 4, "--rollouts", 1).out.splitlines()
    assert re.match(r"4 cars: [\d,]+ decisions/s, learning included", ours)
    assert re.fullmatch(r"stable-baselines3's PPO: [\d,]+ decisions/s; ours is [\d.]+ times as fast", stock)


@pytest.mark.filterwarnings("default")
def test_a_librarys_warning_is_one_line(hotlap, monkeypatch):
    def warn(*_):
        warnings.warn("first line\nsecond line", stacklevel=2)
        raise ConfigError("stop here")

    monkeypatch.setattr("hotlap.bench.training.measure_training", warn)
    assert hotlap("bench", "train").err.splitlines() == ["hotlap: first line second line", "hotlap: stop here"]


def test_peers(hotlap, monkeypatch):
    from hotlap.bench import peers as module

    missing = Mock(side_effect=ImportError("No module named 'nothing'"))
    fakes = (module.Peer("installed", "a note", lambda seconds: 100.0), module.Peer("absent", "another", missing))
    monkeypatch.setattr(module, "_PEERS", fakes)
    answer = hotlap("bench", "peers", "--num-envs", 8, "--seconds", 0.1, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "num_envs", "threads", "hotlap_one_thread_steps_per_sec", "hotlap_all_threads_steps_per_sec",
        "hotlap_single_env_steps_per_sec", "peers",
    }  # fmt: skip
    installed, absent = answer.figures["peers"]
    ours = answer.figures["hotlap_one_thread_steps_per_sec"]
    assert installed["hotlap_one_thread_times"] == pytest.approx(ours / 100.0)
    assert (absent["steps_per_sec"], absent["absent"]) == (None, "No module named 'nothing'")
    lines = hotlap("bench", "peers", "--num-envs", 8, "--seconds", 0.1).out.splitlines()
    assert [line.split()[0] for line in lines] == ["hotlap,", "hotlap,", "installed", "absent"]
    assert "No module named 'nothing'" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sim", "--seconds", "0"], "seconds must be from 0.1 to 3600, got 0"),
        (["sim", "--seconds", "soon"], "'--seconds'"),
        (["sim", "--device", "tpu"], "device must be 'cpu'"),
        (["sim", "--num-envs", "0"], "'--num-envs'"),
        (["sim", "--num-envs", "9" * 23], "num_envs must be from 1 to"),
        (["sim", "--threads", "0"], "'--threads'"),
        (["sim", "--threads", "100000"], "threads must be from 1 to this machine's"),
        (["sim", "--track", "nowhere"], "track 'nowhere' is not known"),
        (["train", "--rollouts", "0"], "rollouts must be from 1 to"),
        (["train", "--device", "abacus"], "device"),
        (["train", "--num-envs", "0"], "'--num-envs'"),
        (["train", "--num-envs", "9" * 23], "num_envs must be from 1 to"),
        (["train", "--track", "nowhere"], "track 'nowhere' is not known"),
    ],
)
def test_bad_input_is_a_one_line_error(refused, arguments, words):
    assert words in refused("bench", *arguments)
