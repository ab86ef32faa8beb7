"""TensorBoard's event files: written so that neither a crash nor a full disk damages them, and cut back on resume."""

import os
import platform
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from stable_baselines3.common.logger import KVWriter
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from hotlap.errors import OutputFileError
from hotlap.training.run_files.journal import Journal

FILE_VERSION = "brain.Event:2"
# A record is its length (8 bytes), a checksum of that (4), the content, and a checksum of the content (4).
_HEAD = struct.Struct("<QI")
_TAIL_BYTES = 4


class EventWriter(KVWriter):
    """The figures of a run, for stable-baselines3's logger, in an event file of their own.

    The library's own writer raises on a full disk and leaves half a record behind, after which TensorBoard reads
    nothing more of the file.
    """

    def __init__(self, folder: Path) -> None:
        began_s = time.time()
        name = f"events.out.tfevents.{int(began_s):010d}.{platform.node()}.{os.getpid()}.{time.monotonic_ns()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputFileError(f"{folder}: cannot be made ({error.strerror}). Choose another --run-name.") from None
        self._journal = Journal(folder / name)
        self._records = RecordWriter(_Sink(self._journal))
        self._add(Event(wall_time=began_s, file_version=FILE_VERSION))

    def write(
        self, key_values: dict[str, Any], key_excluded: Mapping[str, tuple[str, ...] | None], step: int = 0
    ) -> None:
        """Take in the numbers among the figures of a step; others have no place in these files."""
        summary = Summary()
        for name, value in sorted(key_values.items()):
            is_number = isinstance(value, int | float | np.number)
            if is_number and "tensorboard" not in (key_excluded.get(name) or ()):
                summary.value.add(tag=name, simple_value=float(value))
        self._add(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self, *, to_disk: bool = False) -> None:
        """Write what was taken in, and wait for the disk if asked to."""
        self._journal.flush(to_disk=to_disk)

    def close(self) -> None:
        """Write what is left and let the file go."""
        self._journal.close()

    def _add(self, event: Any) -> None:
        self._records.write(event.SerializeToString())


class _Sink:
    """What TensorBoard's framing writes into: a record a call."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def write(self, record: bytes) -> None:
        self._journal.add_record(record)


def drop_events_after(folder: Path, step: int) -> None:
    """Remove what was logged past `step`; a record torn by a crash goes with it."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("events.out.tfevents.*")):
        draft = path.with_name(f".{path.name}.partial")
        try:
            content = path.read_bytes()
            kept = b"".join(_records_until(content, step))
            if kept != content:
                draft.write_bytes(kept)
                draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            raise OutputFileError(
                f"{path}: cannot be cut back to step {step} ({error.strerror}). Check the folder and the room left."
            ) from None


def _records_until(content: bytes, step: int) -> Iterator[bytes]:
    """The whole records of a file, in order, whose step is not past `step`."""
    for record in _records(content):
        with suppress(DecodeError):  # damaged: dropped, whatever its step was
            if Event.FromString(record[_HEAD.size : -_TAIL_BYTES]).step <= step:
                yield record


def _records(content: bytes) -> Iterator[bytes]:
    place = 0
    while place + _HEAD.size <= len(content):
        length, _ = _HEAD.unpack_from(content, place)
        end = place + _HEAD.size + length + _TAIL_BYTES
        # No event is empty: zeros are what a power cut leaves where content was to come.
        if length == 0 or end > len(content):
            return
        yield content[place:end]
        place = end
