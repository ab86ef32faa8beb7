"""TensorBoard's event files: not damaged by a crash or a full disk, and truncated to the checkpoint on resume."""

import os
import platform
import re
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from hotlap.atomic_files import refuse_not_plain, write_atomically
from hotlap.errors import OutputFileError
from hotlap.runs.journal import Journal

FILE_VERSION = "brain.Event:2"
# A record: content length (8 bytes), its checksum (4), the content, its checksum (4).
_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4
_EVALUATION_KEYS = ("eval/", "racer/")
_FILE_NUMBER = re.compile(r"events\.out\.tfevents\.(\d{10})\.", re.ASCII)


class EventWriter:
    """Writes numbers to a new event file.

    Hand-made because TensorBoard's own writer raises on a full disk and leaves half a record behind; TensorBoard then
    ignores the rest of the file.
    """

    def __init__(self, folder: Path) -> None:
        began_s = time.time()
        # TensorBoard reads files in the order of their names: a clock that was set back must not put this one first.
        number = max(int(began_s), 1 + _newest_number(folder))
        name = f"events.out.tfevents.{number:010d}.{platform.node()}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFileError(
                f"{folder}: cannot be created ({error.strerror}). Choose another --run-name."
            ) from None
        self._journal = Journal(folder / name)
        self._records = RecordWriter(_JournalFile(self._journal))
        self._add(Event(wall_time=began_s, file_version=FILE_VERSION))

    def write(self, figures: Mapping[str, float], step: int) -> None:
        """Add the figures of a step."""
        summary = Summary()
        for name, value in sorted(figures.items()):
            summary.value.add(tag=name, simple_value=float(value))
        self._add(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self, *, to_disk: bool = False) -> None:
        """Write the collected events now; `to_disk` waits until they are on the disk."""
        self._journal.flush(to_disk=to_disk)

    def close(self) -> None:
        """Write the remaining events and close the file."""
        self._journal.close()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())


def _newest_number(folder: Path) -> int:
    """The largest time in the names of the event files, in seconds since 1970; -1 without any."""
    found = (_FILE_NUMBER.match(path.name) for path in folder.glob("events.out.tfevents.*"))
    return max((int(match[1]) for match in found if match), default=-1)


class _JournalFile:
    """The file object that TensorBoard's `RecordWriter` writes to, one record per call."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def write(self, record: bytes) -> None:
        self._journal.add_record(record)


def drop_events_after(folder: Path, step: int, *, with_evaluation: bool = True) -> None:
    """Remove the events after `step`, and incomplete records left by a crash.

    Without `with_evaluation`, also that of an evaluation at `step` itself.
    """
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("events.out.tfevents.*")):
        try:
            refuse_not_plain(path)
            content = path.read_bytes()
        except OSError as error:
            raise OutputFileError(
                f"{path}: cannot be truncated to step {step} ({error.strerror or error}). Check the folder."
            ) from None
        kept = b"".join(_records_until(content, step, with_evaluation))
        if kept != content:
            write_atomically(path, kept)


def _records_until(content: bytes, step: int, with_evaluation: bool) -> Iterator[bytes]:
    """The complete records of a file up to `step`, in order."""
    for record in _records(content):
        with suppress(DecodeError):  # a damaged record is dropped
            event = Event.FromString(record[_HEAD.size : -_TAIL_BYTES])
            if event.step < step or (event.step == step and (with_evaluation or not _is_evaluation(event))):
                yield record


def _is_evaluation(event: Any) -> bool:
    """Whether an event was logged by an evaluation: what training logs always has other keys, too."""
    names = [value.tag for value in event.summary.value]
    return bool(names) and all(name.startswith(_EVALUATION_KEYS) for name in names)


def _records(content: bytes) -> Iterator[bytes]:
    place = 0
    while place + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, place)
        end = place + _HEAD.size + length + _TAIL_BYTES
        # No event is empty; a power cut can leave zeros where content was expected.
        if length == 0 or end > len(content):
            return
        yield content[place:end]
        place = end
