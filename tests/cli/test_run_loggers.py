"""`--log` of `hotlap train` and `hotlap resume`."""

import sys

import pytest

from cli.trained_runs import DEFAULT, recipe

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture(autouse=True)
def kept_environment(monkeypatch):
    """What a logger sets in the environment ends with its test."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def test_a_csv_log_is_written_and_continued(hotlap, unevaluated):
    assert hotlap("train", "--recipe", recipe(), "--log", "csv", "-q").code == 0
    log = DEFAULT / "ppo_seed42_log.csv"
    first = log.read_text()
    assert first.startswith("step,source,name,value\n32,train,")
    assert hotlap("resume", DEFAULT, "--steps", 130, "--log", "csv", "-q").code == 0
    longer = log.read_text()
    points = [tuple(line.split(",")[:3]) for line in longer.splitlines()[1:]]
    assert len(set(points)) == len(points)
    steps = [int(step) for step, _, _ in points]
    assert steps == sorted(steps)
    assert {32, 64, 96, 128, 130} <= set(steps)


def test_errors_come_before_a_run_is_made(refused, monkeypatch):
    assert "--log 'excel' is not known" in refused("train", "--recipe", recipe(), "--log", "excel")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert refused("train", "--recipe", recipe(), "--log", "mlflow").endswith('pip install "hotlap[log]".')
    assert not DEFAULT.exists()
