"""An append-only file of records: adding one is cheap, and it is written to the file within a second."""

import logging
import os
import threading
from collections import deque
from pathlib import Path

from hotlap.atomic_files import open_plain
from hotlap.errors import InputFileError, ModelError, OutputFileError

FLUSH_INTERVAL_S = 1.0
# Bounds the memory of one write: after a full disk, many records may be waiting.
RECORDS_PER_WRITE = 10_000
_log = logging.getLogger(__name__)


class Journal:
    """Collects records in memory and writes them to a file from a background thread.

    The thread writes even while the caller is busy for minutes, as in a long policy update. If a write fails, as on a
    full disk, the records stay in memory, one warning is logged, and the write is retried; the file always ends with a
    complete record.
    """

    def __init__(self, path: Path, keep_bytes: int = 0, flush_interval_s: float = FLUSH_INTERVAL_S) -> None:
        """Continue after the file's first `keep_bytes` bytes; the rest of the file is dropped."""
        self.path = path
        self._records: deque[bytes] = deque()  # safe to append to and pop from in two threads without a lock
        self._is_failing = False
        self._has_warned = False
        self._lock = threading.Lock()
        self._closing = threading.Event()
        try:
            # Without following a link: what it points to would be emptied.
            descriptor = open_plain(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            self._file = os.fdopen(descriptor, "ab", buffering=0)
            self._file.truncate(keep_bytes)
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None
        self._good_bytes = keep_bytes
        self._interval_s = flush_interval_s
        self._thread = threading.Thread(target=self._keep_flushing, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Add one line, given without its line end."""
        self.add_record(line + b"\n")

    def add_record(self, record: bytes) -> None:
        """Add bytes as they are; either all of them are written to the file, or none."""
        if self._closing.is_set():
            raise self._refusal(ValueError("the journal was closed"))
        self._records.append(record)

    def flush(self, *, to_disk: bool = False) -> None:
        """Write the collected records now; `to_disk` waits until they are on the disk."""
        if self._closing.is_set():
            return
        self._write()
        if to_disk and not self._is_failing:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                self._note_failure(error)

    def close(self) -> None:
        """Write the collected records and close the file."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self._write()
        try:
            self._file.close()
        except OSError as error:
            self._note_failure(error)
        if self._records:
            _log.warning("%s: the last %d records could not be written and are lost.", self.path, len(self._records))

    def _keep_flushing(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._write()

    def _write(self) -> None:
        with self._lock:
            while self._records:
                records = [self._records.popleft() for _ in range(min(len(self._records), RECORDS_PER_WRITE))]
                try:
                    self._append(b"".join(records))
                except OSError as error:
                    self._records.extendleft(reversed(records))
                    self._note_failure(error)
                    return
                self._is_failing = False

    def _append(self, content: bytes) -> None:
        """Write `content`; if not all of it can be written, the file is left unchanged."""
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._file.truncate(self._good_bytes)
            raise
        self._good_bytes += len(content)

    def _note_failure(self, error: OSError) -> None:
        self._is_failing = True
        if not self._has_warned:
            self._has_warned = True
            _log.warning("%s Records stay in memory until it can be written.", self._refusal(error))

    def _refusal(self, error: Exception) -> OutputFileError:
        reason = getattr(error, "strerror", None) or error
        return OutputFileError(f"{self.path}: cannot be written ({reason}). Check the folder and the free disk space.")


def read_lines(path: Path) -> list[bytes]:
    """The complete lines of a journal; a last line without its line end, as after a crash, is left out."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such journal. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}). Check its permissions.") from None
