"""A journal: lines added to a file by the thousand, and out of the process within a second."""

import logging
import os
import threading
from collections import deque
from pathlib import Path

from hotlap.errors import InputFileError, ModelError, OutputFileError

FLUSH_INTERVAL_S = 1.0
# Written at once: what a full disk has kept waiting may be much.
LINES_A_WRITE = 10_000
_log = logging.getLogger(__name__)


class Journal:
    """Lines for a file, gathered in memory and written by a thread of its own: adding one costs next to nothing.

    The thread writes even while the caller is busy elsewhere for minutes, as in a long update of a policy. What cannot
    be written, as on a full disk, is warned about once, waits in memory and is tried again; the file ends with a whole
    line all the while.
    """

    def __init__(self, path: Path, keep_bytes: int = 0, flush_interval_s: float = FLUSH_INTERVAL_S) -> None:
        """Go on after the file's first `keep_bytes` bytes; what lies behind them is dropped."""
        self.path = path
        self._lines: deque[bytes] = deque()  # its ends may be used from two threads without a lock
        self._is_failing = False
        self._has_warned = False
        self._lock = threading.Lock()
        self._closing = threading.Event()
        try:
            self._file = path.open("ab", buffering=0)
            self._file.truncate(keep_bytes)
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None
        self._good_bytes = keep_bytes
        self._interval_s = flush_interval_s
        self._thread = threading.Thread(target=self._keep_flushing, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Take in one line, given without its end."""
        self.add_record(line + b"\n")

    def add_record(self, record: bytes) -> None:
        """Take in bytes as they are; all of them get into the file, or none."""
        if self._closing.is_set():
            raise self._refusal(ValueError("the journal was closed"))
        self._lines.append(record)

    def flush(self, *, to_disk: bool = False) -> None:
        """Write what was gathered, and wait for the disk if asked to."""
        if self._closing.is_set():
            return
        self._write()
        if to_disk and not self._is_failing:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                self._note_failure(error)

    def close(self) -> None:
        """Write what was gathered and let the file go."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._thread.join()
        self._write()
        try:
            self._file.close()
        except OSError as error:
            self._note_failure(error)
        if self._lines:
            _log.warning("%s: %d lines at its end were never written.", self.path, len(self._lines))

    def _keep_flushing(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._write()

    def _write(self) -> None:
        with self._lock:
            while self._lines:
                lines = [self._lines.popleft() for _ in range(min(len(self._lines), LINES_A_WRITE))]
                try:
                    self._append(b"".join(lines))
                except OSError as error:
                    self._lines.extendleft(reversed(lines))
                    self._note_failure(error)
                    return
                self._is_failing = False

    def _append(self, content: bytes) -> None:
        """Write `content`; if not all of it finds room, the file is left as it was."""
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
            _log.warning("%s Its lines wait in memory.", self._refusal(error))

    def _refusal(self, error: Exception) -> OutputFileError:
        reason = getattr(error, "strerror", None) or error
        return OutputFileError(f"{self.path}: cannot be written ({reason}). Check the folder and the room left.")


def read_lines(path: Path) -> list[bytes]:
    """A journal's whole lines; a last one that a crash left without its end is left out."""
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such journal. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}). Check its permissions.") from None
