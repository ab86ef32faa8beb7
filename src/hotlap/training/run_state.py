"""Captures and restores a whole run: learner, metrics, log, bookkeeping and the time spent."""

import logging
import time
from typing import Any, Protocol

from hotlap.errors import ModelError, StateError, one_line
from hotlap.models.model_file import card_of, refuse_foreign
from hotlap.runs.run_config import RunConfig
from hotlap.runs.snapshot import Snapshot
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track, one_road
from hotlap.training.checkpoint import Checkpoint
from hotlap.training.divided_cars import join_cars, take_cars
from hotlap.training.learners import Learner
from hotlap.training.run_log import RunLog
from hotlap.training.run_writer import RunWriter

_log = logging.getLogger(__name__)


class Stateful(Protocol):
    """Has a state of plain data."""

    def get_state(self) -> dict[str, Any]:
        """The state."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""


class RunState:
    """The parts of a run that together are its state; what decides on checkpoints comes with each call."""

    def __init__(self, config: RunConfig, learner: Learner, log: RunLog, writer: RunWriter) -> None:
        self._config, self._learner, self._run_log, self._writer = config, learner, log, writer
        self.started_s = time.time()  # since 1970; of the run's first process
        self._resumed_at_s = time.monotonic()
        self._trained_before_s = 0.0

    @property
    def trained_s(self) -> float:
        """Seconds of training so far, over all resumes."""
        return self._trained_before_s + time.monotonic() - self._resumed_at_s

    def capture(self, checkpointing: Stateful, *, with_replay: bool = True) -> Snapshot:
        """The state between two rollouts, of all processes; each of them must capture it."""
        bookkeeping = {
            # Not flushed: most captured states are never written.
            "metrics": self._writer.collector.get_state(flush=False),
            "log": self._run_log.get_state(),
            "checkpointing": checkpointing.get_state(),
            "trained_s": self.trained_s,
            "started_s": self.started_s,
            "num_processes": self._learner.processes.size,
        }
        own = Snapshot.of(self._learner.state_dict(with_replay=with_replay) | {"bookkeeping": bookkeeping})
        return join_cars(own, self._learner.processes)

    def restore(self, checkpoint: Checkpoint, checkpointing: Stateful) -> None:
        """Put the run into the state of a checkpoint."""
        path, processes = checkpoint.path, self._learner.processes
        refuse_foreign(card_of({"card": checkpoint.card}, path), path)
        if checkpoint.card["config_digest"] != self._config.digest():
            raise ModelError(
                f"{path}: was written under another configuration than {self._writer.folder.config} has now. Undo the "
                "changes in that file, or start a new run."
            )
        self._refuse_other_road(checkpoint)
        try:
            parts = take_cars(checkpoint.snapshot, processes).parts()
            self._learner.load_state_dict(parts)
            bookkeeping = parts["bookkeeping"]
            checkpointing.set_state(bookkeeping["checkpointing"])
            self._run_log.set_state(bookkeeping["log"])
            self._trained_before_s = float(bookkeeping["trained_s"])
            self.started_s = float(bookkeeping["started_s"])
            num_before = int(bookkeeping["num_processes"])
        except StateError as error:
            raise StateError(f"{path}: cannot resume from this checkpoint: {error}") from None
        except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
            raise StateError(
                f"{path}: cannot resume from this checkpoint: it does not fit this run's learner ({one_line(error)})."
            ) from None
        if num_before != processes.size and processes.is_leader:
            _log.warning(
                "%s: written by %d processes; with %d, the resumed run will not be bit-identical.",
                path,
                num_before,
                processes.size,
            )

    def _refuse_other_road(self, checkpoint: Checkpoint) -> None:
        """Refuse a checkpoint whose track got another road: a track may be imported again under its old id."""
        saved, track = checkpoint.card.get("track_digest"), checkpoint.card.get("track")
        if saved is None or not isinstance(track, str):
            return
        road = track_digest(load_track(one_road(track)).nodes)
        if road != saved:
            raise ModelError(
                f"{checkpoint.path}: was trained on another road of the name {track!r:.60} (digest {saved!a:.40}, now "
                f"{road}). Import the old road under that id again, or start a new run."
            )
