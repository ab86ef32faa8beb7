"""Everything a run writes into its folder: checkpoints, models, metrics, TensorBoard events and results."""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from gymnasium import Space

from hotlap.atomic_files import write_atomically
from hotlap.errors import ArchiveError
from hotlap.models.archive import read_about, tensors_digest
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP, ModelCard, ModelFile, write_model
from hotlap.runs.metrics_journal import JournalEnd, encode_journal
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import TENSORBOARD_NAME, RunFolder
from hotlap.runs.snapshot import Snapshot
from hotlap.runs.tensorboard_files import EventWriter, drop_events_after
from hotlap.training.checkpoint import (
    NUM_REPLAY_BUFFERS,
    Checkpoint,
    CheckpointManager,
    save_snapshot,
    snapshot_size,
)
from hotlap.training.loggers import open_loggers
from hotlap.training.metrics_collector import MetricsCollector, TrainingMetrics
from hotlap.training.model_card import make_card
from hotlap.training.results import ExperimentResults
from hotlap.training.run_log import LogOutput

Spaces = tuple[Space[Any], Space[Any]]  # of observations and actions

_log = logging.getLogger(__name__)


class RunWriter:
    """Writes a run's files. Making one writes nothing; a file that cannot be written raises `OutputFileError`."""

    is_silent = False
    collector: MetricsCollector  # there after `open`

    def __init__(self, config: RunConfig, folder: RunFolder, loggers: Sequence[str] = ()) -> None:
        """`loggers` are names of `hotlap.training.loggers`."""
        self.folder = folder
        self._config, self._loggers = config, tuple(loggers)
        self._checkpoints = CheckpointManager(folder.path, config.checkpoint)
        self._open_files = ExitStack()
        self.log_outputs: list[LogOutput] = []

    def open(self, spaces: Spaces, checkpoint: Checkpoint | None) -> None:
        """Start the metrics and the log, or continue those of a checkpoint; `spaces` are those that the policy sees.

        Removes what a killed process logged after the checkpoint, and its unfinished files.
        """
        self._spaces = spaces
        self.folder.refuse_links()
        self.collector = self._open_collector(checkpoint)
        self._open_files.callback(self.collector.close)
        last = -1 if checkpoint is None else checkpoint.snapshot.step
        is_evaluated = checkpoint is None or _is_evaluated(checkpoint)
        drop_events_after(self.folder.tensorboard, last, with_evaluation=is_evaluated)
        for pattern in (".*.partial", f"{TENSORBOARD_NAME}/.events.*.partial"):
            for draft in self.folder.path.glob(pattern):
                draft.unlink(missing_ok=True)
        self._events = EventWriter(self.folder.tensorboard)
        self._open_files.callback(self._events.close)
        self.log_outputs += [
            self._events.write,
            lambda figures, step: self.collector.note_racer(step, figures),
        ]
        for logger in open_loggers(self._loggers, self._config, self.folder, _kept_steps(checkpoint)):
            self._open_files.callback(logger.close)
            self.log_outputs.append(logger.write)

    @property
    def has_best(self) -> bool:
        """Whether there is a best model."""
        return self.folder.best.is_file()

    def check_sizes(self, snapshot: Snapshot, replay_bytes: int) -> None:
        """Warn where checkpoints of such states, with a full replay buffer, would be too large for file or disk."""
        try:
            size = snapshot_size(snapshot, self._make_card(snapshot).as_plain()) + replay_bytes
        except ArchiveError as error:
            _log.warning(
                "%s: checkpoints cannot be written, so this run cannot be resumed: %s", self.folder.path, error
            )
            return
        # The new one is written before an old one goes, and two keep their replay buffer.
        needed = size * (1 + NUM_REPLAY_BUFFERS if replay_bytes else 2)
        free = shutil.disk_usage(self.folder.path).free
        if needed > free:
            _log.warning(
                "%s: a checkpoint takes up to %d MB, and %d MB are free on this disk. Free some space, or turn "
                "checkpoints off with --checkpoint-interval 0.",
                self.folder.path,
                size >> 20,
                free >> 20,
            )

    def drop_after(self, checkpoint: Checkpoint) -> list[str]:
        """Remove the later checkpoints, and a best model from after this one; returns their names.

        The later points and events are dropped by `open`.
        """
        dropped = self._checkpoints.drop_after(checkpoint.step)
        if self.has_best and int(read_about(self.folder.best).get("step", 0)) > checkpoint.snapshot.step:
            self.folder.best.unlink(missing_ok=True)
            dropped.append(self.folder.best.name)
        return dropped

    def save_checkpoint(self, snapshot: Snapshot, step: int) -> None:
        """Write a state captured at or before `step`, where the run is now.

        The metrics and events so far go to disk first: a resumed run does not make them again.
        """
        self.collector.flush(to_disk=True)
        self._events.flush(to_disk=True)
        self._checkpoints.save(snapshot, self._make_card(snapshot).as_plain(), step)

    def save_best(self, snapshot: Snapshot) -> None:
        """Write the best model so far."""
        self._save_model(self.folder.best, snapshot)

    def save_final(self, snapshot: Snapshot) -> ModelCard:
        """Write the final model and the metrics; returns the model's card."""
        card = self._save_model(self.folder.model, snapshot)
        self.collector.metrics().save(self.folder.metrics)
        return card

    def save_results(self, results: ExperimentResults) -> None:
        """Write the results. They mark a run as finished, so they come last; then the journal has served."""
        results.save(self.folder.results)
        with suppress(OSError):
            self.folder.journal.unlink(missing_ok=True)

    def log_evaluation(self, figures: Mapping[str, float], step: int) -> None:
        """Log the figures of an evaluation at once: the logger's next dump has a later step."""
        for output in self.log_outputs:
            output(figures, step)

    def close(self) -> None:
        """Write what is left in memory and close the files."""
        self._open_files.close()

    def _open_collector(self, checkpoint: Checkpoint | None) -> MetricsCollector:
        journal, document = self.folder.journal, self.folder.metrics
        if checkpoint is None:
            return _new_collector(self._config, journal)
        saved = _saved_metrics(checkpoint)
        # A finished run has no journal: where it is extended, the points come from its metrics document.
        if not journal.exists() and document.exists():
            end = JournalEnd(int(saved["timestep"]), int(saved["num_points"]), int(saved.get("num_racer_points", 0)))
            write_atomically(journal, encode_journal(TrainingMetrics.load(document), end))
        return MetricsCollector.resume(journal, saved)

    def _make_card(self, snapshot: Snapshot) -> ModelCard:
        return make_card(self._config, self._spaces, snapshot.step, tensors_digest(snapshot.groups[POLICY_GROUP]))

    def _save_model(self, path: Path, snapshot: Snapshot) -> ModelCard:
        card = self._make_card(snapshot)
        try:
            save_snapshot(path, snapshot, card.as_plain(), snapshot.step)
        except ArchiveError as error:  # a state beyond the limits; the model itself is small
            _log.info("%s Only the model is written.", error)
            groups = snapshot.groups
            write_model(path, ModelFile(path, card, dict(groups[POLICY_GROUP]), dict(groups.get(NORMALIZER_GROUP, {}))))
        return card


class SilentRunWriter(RunWriter):
    """Writes nothing, for a process that takes part in a run whose files another process writes.

    It has no log outputs, and such a process writes no final model and no results.
    """

    is_silent = True
    has_best = True

    def check_sizes(self, snapshot: Snapshot, replay_bytes: int) -> None:
        """Do nothing."""

    def open(self, spaces: Spaces, checkpoint: Checkpoint | None) -> None:
        """Start the metrics in memory, or continue those of a checkpoint."""
        self.collector = _new_collector(self._config, journal=None)
        if checkpoint is not None:
            self.collector.set_state(_saved_metrics(checkpoint))

    def save_checkpoint(self, snapshot: Snapshot, step: int) -> None:
        """Do nothing."""

    def save_best(self, snapshot: Snapshot) -> None:
        """Do nothing."""


def _new_collector(config: RunConfig, journal: Path | None) -> MetricsCollector:
    return MetricsCollector(
        config.experiment_id, config.algo, config.env, config.seed, config.recording_interval, journal
    )


def _kept_steps(checkpoint: Checkpoint | None) -> Callable[[int, bool], bool] | None:
    """Whether a run resumed from the checkpoint has a step, or the evaluation of a step, behind it."""
    if checkpoint is None:
        return None
    last = checkpoint.snapshot.step
    has_evaluation = _is_evaluated(checkpoint)
    return lambda step, is_evaluation: step < last or (step == last and (has_evaluation or not is_evaluation))


def _is_evaluated(checkpoint: Checkpoint) -> bool:
    """Whether a checkpoint knows of an evaluation at its step; the one at the end of a run may come after it."""
    saved: Mapping[str, Any] = checkpoint.snapshot.plain["bookkeeping"]["checkpointing"]
    return checkpoint.snapshot.step in (saved["evaluated_at"], saved.get("laps_logged_at"))


def _saved_metrics(checkpoint: Checkpoint) -> Mapping[str, Any]:
    saved: Mapping[str, Any] = checkpoint.snapshot.plain["bookkeeping"]["metrics"]
    return saved
