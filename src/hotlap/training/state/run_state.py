"""Captures and restores a whole run: learner, environments, metrics, the callbacks' bookkeeping and the time spent."""

import logging
import time
from typing import Any, Protocol

import numpy as np

from hotlap.errors import ModelError, StateError
from hotlap.models.model_file import card_of, refuse_foreign
from hotlap.runs.run_config import RunConfig
from hotlap.runs.snapshot import Snapshot
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from hotlap.training.algorithms.step_budget import Learner
from hotlap.training.callbacks.racer_metrics import RacerMetricsCallback
from hotlap.training.checkpoint import Checkpoint
from hotlap.training.run_writer import RunWriter
from hotlap.training.state.divided_cars import join_cars, take_cars
from hotlap.training.state.learner_state import capture, restore, restore_generators
from hotlap.training.vec_envs.factory import TrainingEnvs

_log = logging.getLogger(__name__)


class Stateful(Protocol):
    """Has a state of plain data."""

    def get_state(self) -> dict[str, Any]:
        """The state."""

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned."""


class RunState:
    """The parts of a run that together are its state; the checkpointing callback comes with each call."""

    def __init__(
        self,
        config: RunConfig,
        learner: Learner,
        envs: TrainingEnvs,
        racer_metrics: RacerMetricsCallback,
        writer: RunWriter,
    ) -> None:
        self._config, self._learner, self._envs = config, learner, envs
        self._racer_metrics, self._writer = racer_metrics, writer
        self.started_s = time.time()  # since 1970; of the run's first process
        self._resumed_at_s = time.monotonic()
        self._trained_before_s = 0.0

    @property
    def trained_s(self) -> float:
        """Seconds of training so far, over all resumes."""
        return self._trained_before_s + time.monotonic() - self._resumed_at_s

    def capture(self, checkpointing: Stateful, *, with_replay: bool = True) -> Snapshot:
        """The state between two rollouts, of all processes; each of them must capture it."""
        self._learner.store_state()
        bookkeeping = {
            # Not flushed: most captured states are never written.
            "metrics": self._writer.collector.get_state(flush=False),
            "racer_metrics": self._racer_metrics.get_state(),
            "checkpointing": checkpointing.get_state(),
            "trained_s": self.trained_s,
            "started_s": self.started_s,
        }
        processes = self._learner.processes
        if not processes.is_alone:
            bookkeeping["num_processes"] = processes.size
        own = capture(self._learner, self._envs.capture(), bookkeeping, with_replay=with_replay)
        return join_cars(own, processes)

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
            snapshot = take_cars(checkpoint.snapshot, processes)
            envs, bookkeeping = restore(self._learner, snapshot)
            checkpointing.set_state(bookkeeping["checkpointing"])
            self._trained_before_s = float(bookkeeping["trained_s"])
            self.started_s = float(bookkeeping["started_s"])
            if self._envs.restore(envs):
                self._racer_metrics.set_state(bookkeeping["racer_metrics"])
            elif processes.is_alone:
                self._restart_episodes(snapshot.step)
            else:
                raise StateError("state: its cars do not fit this run. Resume it in one process.")
            restore_generators(self._learner, snapshot)
            num_before = int(bookkeeping.get("num_processes", 1))
        except (StateError, KeyError) as error:
            raise StateError(f"{path}: cannot resume from this checkpoint: {error}") from None
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
        road = track_digest(load_track(track).nodes)
        if road != saved:
            raise ModelError(
                f"{checkpoint.path}: was trained on another road of the name {track!r:.60} (digest {saved!a:.40}, now "
                f"{road}). Import the old road under that id again, or start a new run."
            )

    def _restart_episodes(self, step: int) -> None:
        """Reset all environments, with other seeds than at the start of the run."""
        env: Any = self._learner.env
        env.seed(self._config.seed + step)
        self._learner._last_obs = env.reset()
        self._learner._last_episode_starts = np.ones(env.num_envs, np.bool_)
        normalizer = self._learner.get_vec_normalize_env()
        if normalizer is not None:
            self._learner._last_original_obs = normalizer.get_original_obs()
