"""Checkpoints on disk: written whole or not at all, counted, thinned out, and the newest whole one found again."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotlap.errors import ArchiveError, ConfigError, InputFileError, OutputFileError
from hotlap.models.archive import Archive, read_about, read_archive, write_archive

if TYPE_CHECKING:
    from hotlap.training.state.snapshot import Snapshot

STATE_DOCUMENT = "state"
# A replay buffer is large and only the newest checkpoint's is ever used; the one before is the spare.
REPLAYS_KEPT = 2
_NAME = re.compile(r"checkpoint_(0|[1-9]\d{0,14})\.zip", re.ASCII)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointConfig:
    """How often a run is saved, and how much of that is kept."""

    interval: int = 10_000  # steps; 0: never
    keep: int = 0  # the last so many; 0: all

    def __post_init__(self) -> None:
        for name in ("interval", "keep"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be zero or more, got {getattr(self, name)}.")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint as it lies on disk: read and whole."""

    path: Path
    step: int  # when it was written
    card: Mapping[str, Any]
    snapshot: "Snapshot"


class CheckpointManager:
    """The checkpoints of one run's folder."""

    def __init__(self, folder: Path, config: CheckpointConfig | None = None) -> None:
        self.folder = folder
        self.config = config or CheckpointConfig()

    def path_of(self, step: int) -> Path:
        """Where the checkpoint of a step lies."""
        return self.folder / f"checkpoint_{step}.zip"

    def save(self, snapshot: "Snapshot", card: Mapping[str, Any], step: int) -> Path:
        """Write a checkpoint and thin out the older ones; an OutputFileError leaves those as they were."""
        path = self.path_of(step)
        save_snapshot(path, snapshot, card, step)
        self._thin_out(step)
        return path

    def steps(self) -> list[int]:
        """The steps there are checkpoints of, whole or not, in order."""
        if not self.folder.is_dir():
            return []
        found = (_NAME.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match.group(1)) for match in found if match)

    def names(self) -> list[str]:
        """The checkpoints' file names, in order."""
        return [self.path_of(step).name for step in self.steps()]

    def find_newest(self) -> Checkpoint | None:
        """The newest checkpoint that is whole; damaged ones are passed over with a word."""
        for step in reversed(self.steps()):
            try:
                return load_checkpoint(self.path_of(step))
            except (ArchiveError, InputFileError) as error:
                _log.warning("%s It is passed over.", error)
        return None

    def _thin_out(self, newest: int) -> None:
        # A later one was passed over as damaged when the run went on from before it: it counts for nothing.
        steps = [step for step in self.steps() if step <= newest]
        keep = self.config.keep or len(steps)
        for step in steps[:-keep]:
            try:
                self.path_of(step).unlink(missing_ok=True)
            except OSError as error:
                _log.warning("%s: cannot be removed (%s).", self.path_of(step), error.strerror)
        # Those before it lost theirs when it was their turn.
        for step in steps[-keep:][-REPLAYS_KEPT - 1 : -REPLAYS_KEPT]:
            _drop_replay(self.path_of(step))


def save_snapshot(path: Path, snapshot: "Snapshot", card: Mapping[str, Any], step: int) -> None:
    """Write a run's state, with the card of the model in it."""
    about = {"card": dict(card), "step": step, "resumes_from": snapshot.step}
    groups = {name: dict(group) for name, group in snapshot.groups.items()}
    write_archive(path, Archive(about, {STATE_DOCUMENT: dict(snapshot.plain)}, groups))


def load_checkpoint(path: Path) -> Checkpoint:
    """A checkpoint, verified to the last bit."""
    from hotlap.training.state.snapshot import Snapshot

    archive = read_archive(path)
    try:
        snapshot = Snapshot(archive.documents[STATE_DOCUMENT], archive.tensors)
        checkpoint = Checkpoint(path, int(archive.about["step"]), dict(archive.about["card"]), snapshot)
        is_whole = archive.about["resumes_from"] == snapshot.step
    except (KeyError, TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise ArchiveError(f"{path}: is no checkpoint of a run. Take another file.")
    return checkpoint


def _drop_replay(path: Path) -> None:
    """Rewrite an older checkpoint without its replay buffer; what cannot be rewritten stays as it is."""
    from hotlap.training.state.snapshot import REPLAY_GROUP

    try:
        card = read_about(path).get("card")
        if not isinstance(card, Mapping) or card.get("algorithm") != "sac":
            return
        archive = read_archive(path)
        tensors = {name: group for name, group in archive.tensors.items() if name != REPLAY_GROUP}
        write_archive(path, Archive(archive.about, archive.documents, tensors))
    except (ArchiveError, InputFileError, OutputFileError) as error:
        _log.warning("%s", error)
