"""The lock of a run folder: one process at a time trains in it.

The operating system holds the lock and drops it when the process ends, however it ends. The text in the file is only
for the message; where the file system has no locks, the text decides.
"""

import errno
import json
import logging
import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from hotlap.atomic_files import open_plain
from hotlap.errors import OutputFileError, TrainingError

LOCK_NAME = ".run.lock"
MAX_TEXT_BYTES = 4096
TEXT_WAIT_S = 1.0  # the holder writes its text right after it has the lock
NUM_TRIES = 100
_IS_HELD = (errno.EWOULDBLOCK, errno.EACCES, errno.EAGAIN, errno.EDEADLK)
# Windows refuses to read locked bytes, so the byte that is locked lies far behind the text.
_LOCKED_BYTE = 1 << 30
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LockHolder:
    """The process that wrote the lock file."""

    pid: int
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it may still run; of a process on another host nothing is known."""
        if not self.is_here or os.name != "posix":
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:  # another user's process
            return True
        return True

    def __str__(self) -> str:
        return f"PID {self.pid} on {self.host}"


class RunLock:
    """The lock of one run folder. It may be acquired again by its holder, and released twice."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOCK_NAME
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self) -> None:
        """Take the lock; TrainingError names the process that has it. The folder must exist."""
        if self.is_held:
            return
        for _ in range(NUM_TRIES):
            descriptor = self._open()
            try:
                has_os_lock = self._lock(descriptor)
                if not self._is_current(descriptor):  # its last holder has just removed it
                    os.close(descriptor)
                    continue
                self._take_over(descriptor, has_os_lock)
            except BaseException:
                os.close(descriptor)
                raise
            self._descriptor = descriptor
            return
        raise TrainingError(f"{self.path}: other processes keep taking this lock. Try again.")

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if os.name == "posix":  # while it is locked, so that nobody else's file is removed
            with suppress(OSError):
                if self._is_current(descriptor):
                    self.path.unlink()
            os.close(descriptor)
        else:  # Windows removes no open file; where another process has opened it, it stays
            os.close(descriptor)
            with suppress(OSError):
                self.path.unlink()

    def __enter__(self) -> "RunLock":
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _open(self) -> int:
        try:
            return open_plain(self.path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise OutputFileError(
                f"{self.path}: this run cannot be locked ({error.strerror or error}). Check the folder's permissions."
            ) from None

    def _lock(self, descriptor: int) -> bool:
        """Take the system's lock; False where the file system has none."""
        try:
            _lock_file(descriptor)
        except OSError as error:
            if error.errno in _IS_HELD:
                raise self._refusal(self._wait_for_holder(descriptor)) from None
            return False
        return True

    def _is_current(self, descriptor: int) -> bool:
        """Whether the opened file is still the one at the path."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.lstat(self.path))
        except OSError:
            return False

    def _take_over(self, descriptor: int, has_os_lock: bool) -> None:
        before = _read_holder(descriptor)
        if before is not None:
            is_mine = before == LockHolder(os.getpid(), socket.gethostname())
            if not has_os_lock and not is_mine and before.is_alive:
                raise self._refusal(before)
            _log.warning("%s: left by a process that ended early (%s). It is taken over.", self.path, before)
        text = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
        with suppress(OSError):  # a full disk: the lock holds without its text
            os.ftruncate(descriptor, 0)
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, text + b"\n")

    def _wait_for_holder(self, descriptor: int) -> LockHolder | None:
        ends_s = time.monotonic() + TEXT_WAIT_S
        while (holder := _read_holder(descriptor)) is None and time.monotonic() < ends_s:
            time.sleep(0.02)
        return holder

    def _refusal(self, holder: LockHolder | None) -> TrainingError:
        remedy = "Wait for it, stop it, or choose another --run-name."
        if holder is not None and holder.host != socket.gethostname():
            remedy = f"If that machine no longer runs it, delete {self.path}."
        return TrainingError(f"{self.path.parent}: is in use by another process ({holder or 'PID unknown'}). {remedy}")


def find_holder(folder: Path) -> LockHolder | None:
    """The process that seems to train in a folder: it wrote the lock file, and one with its id is alive.

    Only reads; the id may by now be another process's. `is_locked` knows for sure.
    """
    try:
        descriptor = open_plain(folder / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return None
    try:
        holder = _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return holder if holder is not None and holder.is_alive else None


def is_locked(folder: Path) -> bool:
    """Whether a process holds the lock. For a moment the lock is held here, so do not ask often."""
    try:
        descriptor = open_plain(folder / LOCK_NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        _lock_file(descriptor)
    except OSError as error:
        return error.errno in _IS_HELD
    finally:
        os.close(descriptor)
    return False


def _read_holder(descriptor: int) -> LockHolder | None:
    """Who wrote the file; None where it is empty or damaged."""
    try:
        os.lseek(descriptor, 0, os.SEEK_SET)
        found = json.loads(os.read(descriptor, MAX_TEXT_BYTES))
        return LockHolder(int(found["pid"]), str(found["host"])[:255])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


if sys.platform != "win32":
    import fcntl

    def _lock_file(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

else:
    import msvcrt

    def _lock_file(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
