"""Further logs of a run beside TensorBoard's: a CSV file, Weights & Biases, MLflow.

They get the figures that TensorBoard gets, and nothing comes back from them: a run has the same bits with and without.
Only the CSV file can lose what came after a checkpoint; the two services keep it, and have those points twice.
"""

import csv
import importlib
import io
import json
import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from hotlap.atomic_files import write_atomically
from hotlap.config import as_plain, flatten_tables
from hotlap.errors import ConfigError, OutputFileError, TrainingError, closest, did_you_mean, explain_missing, one_line
from hotlap.runs.journal import Journal, read_lines
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder

LOGGER_NAMES = ("csv", "wandb", "mlflow")
PROJECT = "hotlap"  # of Weights & Biases, and the experiment of MLflow, unless the environment names another
_HEAD = ("step", "source", "name", "value")
_EVALUATION_KEYS = ("eval/", "racer/")
_RUN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_MAX_PARAMETER_CHARS = 500  # of MLflow

_log = logging.getLogger(__name__)


class RunLogger(Protocol):
    """Takes the figures of a run, step by step."""

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Log the figures of a step."""

    def close(self) -> None:
        """Write what is left."""


def check_loggers(names: Sequence[str]) -> tuple[str, ...]:
    """The names, each once; an error for an unknown one, or where its library is not installed."""
    for name in names:
        if name not in LOGGER_NAMES:
            hint = did_you_mean(closest(name, LOGGER_NAMES), f"Known: {', '.join(LOGGER_NAMES)}.")
            raise ConfigError(f"--log {name!r:.40} is not known. {hint}")
        if name != "csv":
            _import_library(name)
    return tuple(dict.fromkeys(names))


def open_loggers(
    names: Sequence[str], config: RunConfig, folder: RunFolder, keeps: Callable[[int, bool], bool] | None
) -> list[RunLogger]:
    """The loggers of a run; `keeps` says of a step, and whether it is an evaluation's, if a resumed run has it already.

    None means a new run.
    """
    makers = {"csv": _open_csv, "wandb": _open_wandb, "mlflow": _open_mlflow}
    loggers: list[RunLogger] = []
    for name in names:
        try:
            loggers.append(makers[name](config, folder, keeps))
        except (TrainingError, OutputFileError):
            raise
        except Exception as error:  # a library may raise anything
            raise TrainingError(f"--log {name}: cannot start ({one_line(error)}). {_ADVICE[name]}") from None
    return loggers


_ADVICE = {
    "csv": "Check the folder.",
    "wandb": "Run `wandb login`, or set WANDB_MODE=offline.",
    "mlflow": "Check MLFLOW_TRACKING_URI, or unset it for files in ./mlruns.",
}


class _ServiceLogger:
    """Logs to a service, until its first error: a lost connection must not end a training."""

    def __init__(self, name: str, send: Callable[[dict[str, float], int], object], end: Callable[[], object]) -> None:
        self._name, self._send, self._end, self._has_failed = name, send, end, False

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Log the figures of a step, unless it failed before."""
        self._try(lambda: self._send({name: float(value) for name, value in sorted(figures.items())}, step))

    def close(self) -> None:
        """Send what is left, unless it failed before."""
        self._try(self._end)

    def _try(self, action: Callable[[], object]) -> None:
        if self._has_failed:
            return
        try:
            action()
        except Exception as error:  # whatever the library raises
            self._has_failed = True
            _log.warning("--log %s: stopped logging there (%s). Training goes on.", self._name, one_line(error))


class _CsvLogger:
    """Appends a line for each figure: step, train or evaluation, name, value."""

    def __init__(self, path: Path, kept: bytes) -> None:
        self._journal = Journal(path, keep_bytes=len(kept))
        if not kept:
            self._journal.add_record(_csv_line(_HEAD))

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Add the figures of a step."""
        source = "evaluation" if all(name.startswith(_EVALUATION_KEYS) for name in figures) else "train"
        lines = [_csv_line((step, source, name, repr(float(value)))) for name, value in sorted(figures.items())]
        self._journal.add_record(b"".join(lines))

    def close(self) -> None:
        """Write the remaining lines."""
        self._journal.close()


def _csv_line(values: Sequence[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode()


def _open_csv(_: RunConfig, folder: RunFolder, keeps: Callable[[int, bool], bool] | None) -> RunLogger:
    path = folder.csv_log
    kept = b""
    if keeps is not None and path.exists():
        lines = [line for line in read_lines(path) if _is_kept(line, keeps)]
        kept = b"".join(line + b"\n" for line in lines)
        write_atomically(path, kept)
    return _CsvLogger(path, kept)


def _is_kept(line: bytes, keeps: Callable[[int, bool], bool]) -> bool:
    step, source, *_ = [*line.decode("utf-8", "replace").split(","), ""]
    if step == _HEAD[0]:
        return True
    return step.isdecimal() and keeps(int(step), source == "evaluation")


def _open_wandb(config: RunConfig, folder: RunFolder, keeps: object) -> RunLogger:
    wandb = _import_library("wandb")
    run = wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        dir=os.environ.get("WANDB_DIR", str(folder.path)),
        name=os.environ.get("WANDB_NAME", folder.path.name),
        id=_run_id(folder, "wandb", keeps is not None, lambda: uuid.uuid4().hex[:8]),
        resume="allow",
        config=as_plain(config),
        settings=wandb.Settings(silent=True, console="off", save_code=False, x_disable_stats=True),
    )
    run.define_metric("*", step_metric="step")  # the axis, so that a resumed run may go back
    return _ServiceLogger("wandb", lambda figures, step: run.log({**figures, "step": step}), run.finish)


def _open_mlflow(config: RunConfig, folder: RunFolder, keeps: object) -> RunLogger:
    mlflow = _import_library("mlflow")
    if "MLFLOW_TRACKING_URI" not in os.environ:
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # MLflow refuses plain files unless asked
    client = mlflow.MlflowClient(tracking_uri=os.environ.get("MLFLOW_TRACKING_URI", Path("mlruns").absolute().as_uri()))
    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)

    def create() -> str:
        known = client.get_experiment_by_name(name)
        experiment_id = known.experiment_id if known else client.create_experiment(name)
        run_id: str = client.create_run(experiment_id, run_name=folder.path.name).info.run_id
        values = flatten_tables(as_plain(config))
        texts = [mlflow.entities.Param(key, str(value)[:_MAX_PARAMETER_CHARS]) for key, value in values.items()]
        client.log_batch(run_id, params=texts)
        return run_id

    run_id = _run_id(folder, "mlflow", keeps is not None, create)
    client.update_run(run_id, status="RUNNING")

    def send(figures: dict[str, float], step: int) -> None:
        now_ms = int(1000 * time.time())
        metrics = [mlflow.entities.Metric(name, value, now_ms, step) for name, value in figures.items()]
        client.log_batch(run_id, metrics=metrics)

    return _ServiceLogger("mlflow", send, lambda: client.set_terminated(run_id))


def _run_id(folder: RunFolder, logger: str, is_resumed: bool, make: Callable[[], str]) -> str:
    """The id under which a logger knows this run: the one it had before it was resumed, else a new one."""
    path, known = folder.logger_ids, {}
    if is_resumed:
        with suppress(OSError, ValueError):
            known = dict(json.loads(path.read_bytes()))
    run_id = known.get(logger)
    if not isinstance(run_id, str) or not _RUN_ID.fullmatch(run_id):
        run_id = make()
        write_atomically(path, json.dumps({**known, logger: run_id}).encode())
    return run_id


def _import_library(name: str) -> Any:
    """The library of a logger, told to report nothing about itself."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None
