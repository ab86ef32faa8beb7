"""A journal: lines added to a file by the thousand, and out of the process within a second."""

import os
import threading
from collections import deque
from pathlib import Path

from hotlap.errors import InputFileError, ModelError, OutputFileError

FLUSH_INTERVAL_S = 1.0


class Journal:
    """Lines for a file, gathered in memory and written by a thread of its own: adding one costs next to nothing.

    The thread writes even while the caller is busy elsewhere for minutes, as in a long update of a policy. What it
    could not write is raised at the next call.
    """

    def __init__(self, path: Path, keep_bytes: int = 0, flush_interval_s: float = FLUSH_INTERVAL_S) -> None:
        """Go on after the file's first `keep_bytes` bytes; what lies behind them is dropped."""
        self.path = path
        self._lines: deque[bytes] = deque()  # its ends may be used from two threads without a lock
        self._failure: OSError | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        try:
            self._file = path.open("ab")
            self._file.truncate(keep_bytes)
        except (OSError, ValueError) as error:
            raise self._refusal(error) from None
        self._interval_s = flush_interval_s
        self._thread = threading.Thread(target=self._keep_flushing, name=f"journal {path.name}", daemon=True)
        self._thread.start()

    def add(self, line: bytes) -> None:
        """Take in one line, given without its end."""
        if self._failure is not None:
            raise self._refusal(self._failure)
        if self._closing.is_set():
            raise self._refusal(ValueError("the journal was closed"))
        self._lines.append(line + b"\n")

    def flush(self, *, to_disk: bool = False) -> None:
        """Write what was gathered, and wait for the disk if asked to."""
        if self._closing.is_set():
            return
        self._write()
        if self._failure is None and to_disk:
            try:
                os.fsync(self._file.fileno())
            except OSError as error:
                self._failure = error
        if self._failure is not None:
            raise self._refusal(self._failure)

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
            self._failure = self._failure or error
        if self._failure is not None:
            raise self._refusal(self._failure)

    def _keep_flushing(self) -> None:
        while not self._closing.wait(self._interval_s):
            self._write()

    def _write(self) -> None:
        with self._lock:
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if not lines or self._failure is not None:
                return
            try:
                self._file.write(b"".join(lines))
                self._file.flush()
            except OSError as error:
                self._failure = error

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
