"""`hotlap bench`: the figures' names, quickly; whether they are good is for `make bench`."""

import pytest


def test_sim_names_its_figures_and_settings(hotlap):
    answer = hotlap("bench", "sim", "--num-envs", 16, "--threads", 1, "--seconds", 0.2, "--json")
    assert answer.code == 0
    figures = answer.figures
    assert set(figures) == {
        "steps_per_sec", "num_envs", "threads", "device", "track", "seconds", "single_env_steps_per_sec", "step_usec",
        "reset_usec",
    }  # fmt: skip
    assert (figures["num_envs"], figures["threads"], figures["device"]) == (16, 1, "cpu")
    assert (figures["track"], figures["seconds"]) == ("track-01", 0.2)
    assert figures["steps_per_sec"] > 0.0


def test_sim_for_people(hotlap):
    answer = hotlap("bench", "sim", "--num-envs", 4, "--threads", 1, "--seconds", 0.1)
    assert answer.out.startswith("4 cars, 1 thread(s), cpu: ")
    assert "one RacerEnv:" in answer.out


@pytest.fixture
def learning(monkeypatch):
    """Rollouts that take as long as they are said to, so that none is waited for."""
    from hotlap.bench import training as speed

    monkeypatch.setattr(speed, "_batched_rollout_s", lambda config, rollouts: 0.5)
    monkeypatch.setattr(speed, "_single_rollout_s", lambda track, settings, rollouts: 4.0)


def test_train_names_its_figures_and_settings(hotlap, learning):
    answer = hotlap("bench", "train", "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "decisions_per_sec", "single_decisions_per_sec", "ratio", "peak_memory_mb", "num_envs", "rollouts",
        "single_rollouts", "track", "net_arch", "torch_threads", "ppo", "single_ppo",
    }  # fmt: skip
    assert (answer.figures["decisions_per_sec"], answer.figures["ratio"]) == (65_536.0, 128.0)
    assert (answer.figures["num_envs"], answer.figures["track"]) == (512, "track-01")


def test_train_for_people(hotlap, learning):
    lines = hotlap("bench", "train", "--num-envs", 256).out.splitlines()
    assert lines[0].startswith("256 cars: 32,768 decisions/s, learning included")
    assert lines[1] == "one car: 512 decisions/s; with many it is 64.0 times as fast"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rollouts", "0"], "rollouts must be from 1 to"),
        (["--single-rollouts", "-1"], "single_rollouts must be from 1 to"),
        (["--num-envs", "0"], "'--num-envs'"),
        (["--num-envs", "9" * 23], "num_envs must be from 1 to"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
    ],
)
def test_train_refuses_bad_input_in_one_line(refused, arguments, words):
    assert words in refused("bench", "train", *arguments)


@pytest.fixture
def peers(monkeypatch):
    """One peer that is here and one that is not, so that no real one is waited for."""
    from hotlap.bench import peers as module

    def missing(seconds):
        raise ImportError("No module named 'nothing'")

    fakes = (module.Peer("here", "a note", lambda seconds: 100.0), module.Peer("gone", "another", missing))
    monkeypatch.setattr(module, "_PEERS", fakes)


def test_peers_names_its_figures(hotlap, peers):
    answer = hotlap("bench", "peers", "--num-envs", 8, "--seconds", 0.1, "--json")
    assert answer.code == 0
    assert set(answer.figures) == {
        "num_envs", "threads", "hotlap_one_thread_steps_per_sec", "hotlap_all_threads_steps_per_sec",
        "hotlap_single_env_steps_per_sec", "peers",
    }  # fmt: skip
    here, gone = answer.figures["peers"]
    assert here["hotlap_one_thread_times"] == pytest.approx(answer.figures["hotlap_one_thread_steps_per_sec"] / 100.0)
    assert (gone["steps_per_sec"], gone["absent"]) == (None, "No module named 'nothing'")


def test_peers_for_people(hotlap, peers):
    lines = hotlap("bench", "peers", "--num-envs", 8, "--seconds", 0.1).out.splitlines()
    assert [line.split()[0] for line in lines] == ["hotlap,", "hotlap,", "here", "gone"]
    assert "absent" in lines[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--seconds", "0"], "seconds must be from 0.1 to 3600, got 0"),
        (["--seconds", "nan"], "seconds must be from 0.1"),
        (["--seconds", "soon"], "'--seconds'"),
        (["--device", "tpu"], "device must be 'cpu', got 'tpu'"),
        (["--num-envs", "0"], "'--num-envs'"),
        (["--num-envs", "9" * 23], "num_envs must be a whole number from 1 to"),
        (["--threads", "0"], "'--threads'"),
        (["--threads", "100000"], "threads must be from 1 to this machine's"),
        (["--track", "nowhere"], "track 'nowhere' is not known"),
    ],
)
def test_bad_input_is_refused_in_one_line(refused, arguments, words):
    assert words in refused("bench", "sim", *arguments)
