"""TensorBoard's event files, written such that neither a crash nor a full disk spoils them or ends the run."""

import os
import platform
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.logger import KVWriter
from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

from hotlap.errors import OutputFileError
from hotlap.training.journal import Journal

FILE_VERSION = "brain.Event:2"


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
