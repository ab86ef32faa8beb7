"""Logs beside TensorBoard's: they have its figures, change no bit, and never end a training."""

import csv
import json
import logging
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hotlap.errors import ConfigError, MissingLibraryError, TrainingError
from hotlap.runs.run_folder import RunFolder, create_run
from hotlap.training import loggers as logger_module
from hotlap.training.loggers import check_loggers
from hotlap.training.trainer import Trainer
from tiny_runs import StopAt, assert_same_run, folder_at, read_events, skip_evaluation, tiny_config, train

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def kept_environment(monkeypatch):
    """What a logger sets in the environment ends with its test."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def missing(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(name) is None, reason=f'{name} is missing: pip install "hotlap[log]"')


def train_logged(config, path, *names, stop_at=None, resume=False):
    stop = StopAt(stop_at or 10**9)
    stop.trainer = Trainer(config, folder_at(path, config), observers=(stop,), loggers=names)
    return stop.trainer.run(stop.trainer.checkpoints.find_newest() if resume else None)


def read_csv(path):
    """The series of a CSV log that do not depend on the clock."""
    found = {}
    with RunFolder(path, "ppo_seed42").csv_log.open(newline="") as file:
        for row in csv.DictReader(file):
            if not row["name"].startswith("time/"):
                found.setdefault(row["name"], []).append((int(row["step"]), float(row["value"])))
    return found


def rounded(series):
    return {name: [(step, pytest.approx(value, rel=1e-6)) for step, value in points] for name, points in series.items()}


@pytest.mark.parametrize("env", ["hotlap/Racer-v0", "CartPole-v1"])
def test_csv_has_what_tensorboard_has_and_changes_no_bit(tmp_path, monkeypatch, env):
    skip_evaluation(monkeypatch)
    config = tiny_config(env=env, evaluation={"interval": 50, "episodes": 1})
    train_logged(config, tmp_path / "logged", "csv")
    train(config, tmp_path / "plain")
    assert_same_run(tmp_path / "logged", tmp_path / "plain", config)
    assert read_csv(tmp_path / "logged") == rounded(read_events(tmp_path / "logged"))
    assert not RunFolder(tmp_path / "plain", config.experiment_id).csv_log.exists()


def test_a_resumed_csv_is_that_of_an_uninterrupted_run(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config(checkpoint={"interval": 32}, evaluation={"interval": 32, "episodes": 1})
    train_logged(config, tmp_path / "whole", "csv")
    train_logged(config, tmp_path / "parts", "csv", stop_at=50)
    with RunFolder(tmp_path / "parts", config.experiment_id).csv_log.open("a") as file:
        file.write("96,train,train/loss,1.5\n64,eval")  # of a process that was killed later
    train_logged(config, tmp_path / "parts", "csv", resume=True)
    assert read_csv(tmp_path / "parts") == read_csv(tmp_path / "whole")


def test_an_overwritten_run_begins_a_new_log(tmp_path, monkeypatch):
    skip_evaluation(monkeypatch)
    config = tiny_config()
    train_logged(config, tmp_path / "run", "csv")
    create_run(config, str(tmp_path / "run"), overwrite=True)
    assert not RunFolder(tmp_path / "run", config.experiment_id).csv_log.exists()


def test_a_logger_that_fails_warns_once_and_training_goes_on(tmp_path, monkeypatch, caplog):
    def fail(*_):
        raise ConnectionError("the line\nis cut")

    skip_evaluation(monkeypatch)
    monkeypatch.setattr(logger_module, "_open_wandb", lambda *_: logger_module._ServiceLogger("wandb", fail, fail))
    config = tiny_config()
    with caplog.at_level(logging.WARNING):
        assert train_logged(config, tmp_path, "wandb").results is not None
    assert [record.getMessage() for record in caplog.records] == [
        "--log wandb: stopped logging there (the line is cut). Training goes on."
    ]


def test_a_logger_that_cannot_start_is_one_error(tmp_path, monkeypatch):
    def refuse(*_):
        raise RuntimeError("no API key")

    monkeypatch.setattr(logger_module, "_open_wandb", refuse)
    with pytest.raises(TrainingError, match=r"--log wandb: cannot start \(no API key\). Run `wandb login`, or set"):
        train_logged(tiny_config(), tmp_path, "wandb")


def test_unknown_and_missing_loggers_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match=r"--log 'cvs' is not known. Did you mean 'csv'\?"):
        check_loggers(["cvs"])
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingLibraryError, match=r'this needs wandb. Install it: pip install "hotlap\[log\]".'):
        check_loggers(["wandb"])
    assert check_loggers(["csv", "csv"]) == ("csv",)
    assert check_loggers([]) == ()


# The libraries take seconds to import, and start processes and threads: each in a process of its own.
PROGRAM = """
import sys
from pathlib import Path
import pytest
from tiny_runs import skip_evaluation, tiny_config
from training.test_loggers import train_logged
skip_evaluation(pytest.MonkeyPatch())
config, path = tiny_config(), Path("run")
train_logged(config, path, sys.argv[1], stop_at=50)
train_logged(config, path, sys.argv[1], resume=True)
"""


def train_in_process(folder, name, **environ):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, name]
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "tools"), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, "PYTHONPATH": paths, **environ}
    answer = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=110)
    assert answer.returncode == 0, answer.stderr


@missing("mlflow")
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_mlflow_has_the_figures_in_its_files_and_the_run_its_bits(tmp_path, monkeypatch):
    train_in_process(tmp_path, "mlflow")
    skip_evaluation(monkeypatch)
    config = tiny_config()
    train(config, tmp_path / "plain")
    assert_same_run(tmp_path / "run", tmp_path / "plain", config)
    [run_id] = json.loads(RunFolder(tmp_path / "run", config.experiment_id).logger_ids.read_text()).values()
    [run] = (tmp_path / "mlruns").glob(f"*/{run_id}")
    assert (run / "params" / "policy.net_arch").read_text() == "[8]"
    points = [line.split() for line in (run / "metrics" / "rollout" / "ep_rew_mean").read_text().splitlines()]
    wanted = dict(read_events(tmp_path / "run")["rollout/ep_rew_mean"])
    assert {int(step): pytest.approx(float(value), rel=1e-6) for _, value, step in points} == wanted


@missing("wandb")
@pytest.mark.slow
@pytest.mark.timeout(120)
def test_wandb_offline_has_the_figures_and_the_run_its_bits(tmp_path, monkeypatch):
    train_in_process(tmp_path, "wandb", WANDB_MODE="offline")
    skip_evaluation(monkeypatch)
    config = tiny_config()
    train(config, tmp_path / "plain")
    assert_same_run(tmp_path / "run", tmp_path / "plain", config)
    [run_id] = json.loads(RunFolder(tmp_path / "run", config.experiment_id).logger_ids.read_text()).values()
    files = sorted((tmp_path / "run" / "wandb").glob(f"offline-run-*/run-{run_id}.wandb"))
    assert len(files) == 2  # before and after it was stopped
    assert b"rollout/ep_rew_mean" in files[1].read_bytes()
