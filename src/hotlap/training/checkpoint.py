"""A run's checkpoints on disk: saves them, removes old ones, and finds the newest intact one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotlap.errors import ArchiveError, InputFileError, OutputFileError
from hotlap.models.archive import Archive, archive_size, read_about, read_archive, write_archive
from hotlap.runs.checkpoints import CheckpointConfig, checkpoint_path, checkpoint_steps
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot

__all__ = ["Checkpoint", "CheckpointConfig", "CheckpointManager", "load_checkpoint", "save_snapshot", "snapshot_size"]

STATE_DOCUMENT = "state"
# A replay buffer is large, and only the newest checkpoint's is used; the one before is a reserve.
NUM_REPLAY_BUFFERS = 2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint read from disk and verified."""

    path: Path
    step: int  # at which it was written; the snapshot's may be earlier
    card: Mapping[str, Any]
    snapshot: Snapshot


class CheckpointManager:
    """The checkpoints of one run's folder."""

    def __init__(self, folder: Path, config: CheckpointConfig | None = None) -> None:
        self.folder = folder
        self.config = config or CheckpointConfig()

    def path_of(self, step: int) -> Path:
        """The path of the checkpoint of a step."""
        return checkpoint_path(self.folder, step)

    def save(self, snapshot: Snapshot, card: Mapping[str, Any], step: int) -> Path:
        """Write a checkpoint and remove old ones; where that raises OutputFileError, those are unchanged."""
        path = self.path_of(step)
        save_snapshot(path, snapshot, card, step)
        self._remove_old(step)
        return path

    def steps(self) -> list[int]:
        """The steps of all checkpoints, damaged ones too, in order."""
        return checkpoint_steps(self.folder)

    def names(self) -> list[str]:
        """The checkpoints' file names, in order."""
        return [self.path_of(step).name for step in self.steps()]

    def find_newest(self) -> Checkpoint | None:
        """The newest intact checkpoint; damaged ones are skipped with a warning."""
        for step in reversed(self.steps()):
            try:
                return load_checkpoint(self.path_of(step))
            except (ArchiveError, InputFileError) as error:
                _log.warning("%s It is skipped.", error)
        return None

    def drop_after(self, step: int) -> list[str]:
        """Remove the checkpoints after a step; returns their names."""
        dropped = [self.path_of(found) for found in self.steps() if found > step]
        for path in dropped:
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise OutputFileError(f"{path}: cannot be removed ({error.strerror}). Check its permissions.") from None
        return [path.name for path in dropped]

    def _remove_old(self, newest: int) -> None:
        # A later one was damaged, and skipped when the run resumed from before it: it does not count.
        steps = [step for step in self.steps() if step <= newest]
        keep = self.config.keep or len(steps)
        for step in steps[:-keep]:
            try:
                self.path_of(step).unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s: cannot be removed (%s).", self.path_of(step), error.strerror)
        # Only one: those before it lost their replay buffer at earlier saves.
        for step in steps[-keep:][-NUM_REPLAY_BUFFERS - 1 : -NUM_REPLAY_BUFFERS]:
            _drop_replay(self.path_of(step))


def save_snapshot(path: Path, snapshot: Snapshot, card: Mapping[str, Any], step: int) -> None:
    """Write a run's state, with the card of the model in it."""
    write_archive(path, _archive_of(snapshot, card, step))


def snapshot_size(snapshot: Snapshot, card: Mapping[str, Any]) -> int:
    """The size of a state's file in bytes; ArchiveError where it is beyond a limit."""
    return archive_size(_archive_of(snapshot, card, snapshot.step))


def _archive_of(snapshot: Snapshot, card: Mapping[str, Any], step: int) -> Archive:
    about = {"card": dict(card), "step": step, "resumes_from": snapshot.step}
    about["has_replay_buffer"] = REPLAY_GROUP in snapshot.groups
    groups = {name: dict(group) for name, group in snapshot.groups.items()}
    return Archive(about, {STATE_DOCUMENT: dict(snapshot.plain)}, groups)


def load_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, with the digest of every part verified."""
    archive = read_archive(path)
    try:
        snapshot = Snapshot(archive.documents[STATE_DOCUMENT], archive.tensors)
        checkpoint = Checkpoint(path, int(archive.about["step"]), dict(archive.about["card"]), snapshot)
        is_valid = archive.about["resumes_from"] == snapshot.step
    except (KeyError, TypeError, ValueError):
        is_valid = False
    if not is_valid:
        raise ArchiveError(f"{path}: is not a checkpoint of a run. Use another file.")
    return checkpoint


def _drop_replay(path: Path) -> None:
    """Rewrite a checkpoint without its replay buffer; one that cannot be rewritten stays as it is."""
    try:
        if not read_about(path).get("has_replay_buffer"):
            return
        archive = read_archive(path)
        tensors = {name: group for name, group in archive.tensors.items() if name != REPLAY_GROUP}
        write_archive(path, Archive({**archive.about, "has_replay_buffer": False}, archive.documents, tensors))
    except (ArchiveError, InputFileError, OutputFileError) as error:
        _log.warning("%s", error)
