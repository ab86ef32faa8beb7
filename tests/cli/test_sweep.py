"""`hotlap sweep`: one small sweep from the file to the recipe, and its errors."""

import json
import signal
import subprocess
import sys
import time

import pytest

from forked_python import Popen
from hotlap.runs.recipe import resolve_config
from sweeps.killed_sweeps import start, wait_until
from sweeps.tiny_sweeps import write_file


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("place")


@pytest.fixture(autouse=True)
def in_place(place, monkeypatch):
    monkeypatch.chdir(place)


@pytest.mark.timeout(180)
def test_a_sweep_from_file_to_recipe_and_page(place, hotlap, refused, monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", Popen)  # its worker is forked
    write_file(place / "rates.sweep.toml", seeds=[1, 2, 3], steps=64, evaluation={"interval": 32, "final_episodes": 1})
    answer = hotlap("sweep", "rates.sweep.toml", "--workers", 1, "--json")
    assert answer.code == 0, answer.err
    assert "trial 1, seed 3: finished, final_reward_mean" in answer.err
    folder = place / "results" / "sweeps" / "rates"
    assert (folder / "sweep.toml").read_bytes() == (place / "rates.sweep.toml").read_bytes()
    assert (folder / "study.journal").is_file()
    assert len(list((folder / "trials").iterdir())) == 6

    status = hotlap("sweep", "status", "rates", "--json").figures
    assert status == answer.figures
    assert set(status) >= {"name", "finished", "trials", "best"}
    assert (status["name"], status["finished"]) == ("rates", True)
    assert [set(trial) >= {"number", "state", "params", "seeds", "value", "runs"} for trial in status["trials"]]
    for trial in status["trials"]:
        values = []
        for seed, run in zip(trial["seeds"], trial["runs"], strict=True):
            results = json.loads((place / run / f"ppo_seed{seed}_results.json").read_text())["experiment_results"]
            values.append(results["metrics"]["final_reward_mean"])
        assert trial["value"] == sorted(values)[1]
    assert status["best"]["value"] == max(trial["value"] for trial in status["trials"])

    best = hotlap("sweep", "best", "rates", "--json").figures
    assert best["number"] == status["best"]["number"]
    config = resolve_config(best["recipe"], {})
    assert config.ppo.learning_rate == status["best"]["params"]["ppo.learning_rate"]
    assert (config.env, config.steps, config.policy.net_arch) == ("CartPole-v1", 64, (8,))

    assert "6 runs" not in hotlap("sweep", "resume", "rates").err  # it is finished
    assert "exists already" in refused("sweep", "rates.sweep.toml")
    report = hotlap("sweep", "report", "rates", "--json").figures
    assert "trial 0" in (place / report["page"]).read_text()
    assert report["sweeps"][0]["interval"] is not None
    both = hotlap("sweep", "report", "rates", "results/sweeps/rates/", "--out", "both").out
    assert "Sweeps compared" in (place / both.removeprefix("page: ").strip()).read_text()
    assert "needs a folder" in refused("sweep", "report", "rates", "rates")
    assert "trial 9: rates has trials 0 to 1" in refused("sweep", "best", "rates", "--trial", 9)
    table = hotlap("sweep", "status", "rates").out
    assert "2 complete, 0 running, 0 pruned, 0 failed of 2 trials; finished" in table


def test_bad_input_is_one_line_and_leaves_no_folder(place, refused):
    write_file(place / "bad.toml", space={"ppo.gamma": {"low": 1.0, "high": 0.0}})
    assert "range is empty" in refused("sweep", "bad.toml")
    write_file(place / "lost.toml", env="Nowhere-v0")
    assert "Nowhere-v0" in refused("sweep", "lost.toml")
    assert "no such settings file" in refused("sweep", "missing.toml")
    assert "no sweep there" in refused("sweep", "resume", "nothing")
    assert "no sweep there" in refused("sweep", "status", "../nothing")
    write_file(place / "good.toml")
    assert "not a name for a sweep" in refused("sweep", "good.toml", "--name", "a b")
    assert "'' is not a name for a sweep" in refused("sweep", "good.toml", "--name", "")
    assert "'': no sweep there" in refused("sweep", "resume", "")
    pytest.importorskip("ray")
    assert "cannot connect" in refused("sweep", "good.toml", "--ray", "127.0.0.1:9")
    names = {path.name for path in (place / "results").glob("sweeps/*")}
    assert names & {"bad", "lost", "missing", "a b", "good"} == set()


def test_without_optuna_one_line_says_what_to_install(place, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    write_file(place / "good.toml")
    assert "pip install 'hotlap[sweeps]'" in refused("sweep", "good.toml")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ctrl_c_saves_the_runs_and_resume_finishes_them(place, hotlap):
    write_file(place / "long.toml", space=None, seeds=[1], steps=6000, checkpoint={"interval": 0})
    process = start("long.toml", "--workers", 1, cwd=place)
    run = place / "results" / "sweeps" / "long" / "trials" / "0000-seed1"
    wait_until(lambda: any(run.glob("tensorboard/*")), 120)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert len(list(run.glob("checkpoint_*.zip"))) == 1
    answer = hotlap("sweep", "resume", "long", "--json")
    assert (answer.code, answer.figures["finished"]) == (0, True)
