"""One run of a sweep, as any process can execute it: train from the newest checkpoint, to a rung or to the end."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from hotlap.config import build, snake_case
from hotlap.envs.gym_registry import import_allowed
from hotlap.errors import HotlapError, TrainingError, one_line
from hotlap.runs.run_config import RunConfig, load_config
from hotlap.runs.run_folder import RunFolder
from hotlap.runs.run_lock import RunLock
from hotlap.sweeps.objectives import Objective
from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.training.checkpoint import Checkpoint
from hotlap.training.results import ExperimentResults
from hotlap.training.run_writer import RunWriter
from hotlap.training.trainer import Trainer

LOCK_WAIT_S = 60.0  # a killed sweep's processes end soon, but not at once
LOCK_RETRY_S = 0.1
MAX_ERROR = 500  # characters of an error that are kept


class _RungWriter(RunWriter):
    """A run's writer that asks for a stop once an evaluation at or after the rung is logged."""

    def __init__(self, config: RunConfig, folder: RunFolder, rung: int | None) -> None:
        super().__init__(config, folder)
        self._rung = rung
        self.on_rung: Callable[[], object] = lambda: None

    def log_evaluation(self, figures: Mapping[str, float], step: int) -> None:
        """Log the figures, then stop where they are the rung's."""
        super().log_evaluation(figures, step)
        if self._rung is not None and step >= self._rung:
            self.on_rung()


def execute(task: RunTask, on_trainer: Callable[[Trainer], object] = lambda _: None) -> RunReport:
    """Do a task; every error becomes a report. `on_trainer` is called before training, so that it can be stopped."""
    began_s = time.monotonic()
    try:
        import_allowed(task.allow_import)
        report = _execute(task, on_trainer)
    except HotlapError as error:
        report = RunReport("failed", error=" ".join(str(error).split())[:MAX_ERROR])
    except MemoryError:
        report = RunReport("failed", error="out of memory. Use fewer workers or smaller runs.")
    # An environment or a library may raise anything; the sweep goes on with its other trials.
    except Exception as error:
        report = RunReport("failed", error=f"{type(error).__name__}: {one_line(error)}"[:MAX_ERROR])
    return msgspec.structs.replace(report, elapsed_s=time.monotonic() - began_s)


def _execute(task: RunTask, on_trainer: Callable[[Trainer], object]) -> RunReport:
    config = build(RunConfig, task.config, f"trial {task.trial}", snake_case)
    folder = RunFolder(Path(task.folder), config.experiment_id)
    objectives = [Objective(*pair) for pair in task.objectives]
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.refuse_links()
    writer = _RungWriter(config, folder, task.rung)
    trainer = Trainer(config, folder, writer=writer)
    writer.on_rung = trainer.stop
    with _acquired(trainer.lock):
        _write_or_check_config(folder, config)
        checkpoint = None if folder.is_finished else trainer.checkpoints.find_newest()
        if folder.is_finished or _has_passed(task, folder, objectives, checkpoint):
            return _report(task, folder, objectives)
        on_trainer(trainer)
        outcome = trainer.run(checkpoint)
        if outcome.results is None and not outcome.is_saved:
            raise TrainingError(f"{folder.path}: its checkpoint could not be written. Free some disk space.")
    return _report(task, folder, objectives, outcome.step)


def _acquired(lock: RunLock) -> RunLock:
    """The lock, waiting for a process of a killed sweep to end."""
    ends_s = time.monotonic() + LOCK_WAIT_S
    while time.monotonic() < ends_s:
        with suppress(TrainingError):
            lock.acquire()
            return lock
        time.sleep(LOCK_RETRY_S)
    lock.acquire()
    return lock


def _write_or_check_config(folder: RunFolder, config: RunConfig) -> None:
    if not folder.config.is_file():
        folder.write_config(config)
    elif load_config(folder.config) != config:
        raise TrainingError(
            f"{folder.path}: its {folder.config.name} is not this trial's. Restore it, or delete the folder."
        )


def _has_passed(
    task: RunTask, folder: RunFolder, objectives: Sequence[Objective], checkpoint: Checkpoint | None
) -> bool:
    """Whether an earlier process paused at the rung, but was killed before the sweep noted it."""
    if task.rung is None or checkpoint is None:
        return False
    found = objectives[0].at_rung(folder.tensorboard, task.rung)
    return found is not None and found[0] <= checkpoint.snapshot.step


def _report(task: RunTask, folder: RunFolder, objectives: Sequence[Objective], step: int = 0) -> RunReport:
    found = objectives[0].at_rung(folder.tensorboard, task.rung) if task.rung is not None else None
    rung_value = found[1] if found else None
    if folder.is_finished:
        results = ExperimentResults.load(folder.results)
        values = tuple(objective.of_results(results) for objective in objectives)
        step = results.metadata.total_timesteps
        return RunReport("finished", values, rung_value, task.rung is not None, step)
    if found is not None:
        return RunReport("paused", (), rung_value, True, found[0])
    return RunReport("stopped", step=step)
