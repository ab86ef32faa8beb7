"""Threads that are kept between calls, for work that takes less time than starting a thread."""

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[int], None]  # called with the number of a part

# How long to wait for a part before looking again whether it has ended. Only a guard: its end wakes the waiting thread.
_LOOK_AGAIN_S = 1.0


class _Part:
    """One part of a job, done by a thread of the team."""

    def __init__(self, work: Work, number: int) -> None:
        self._work, self._number = work, number
        self._lock = threading.Lock()
        self._lock.acquire()
        self._has_ended = False
        self.error: BaseException | None = None

    def do(self) -> None:
        """Do the part; what it raises is kept."""
        try:
            self._work(self._number)
        except BaseException as error:  # raised again in the thread that asked for the work
            self.error = error
        self._has_ended = True
        self._lock.release()

    def wait(self) -> None:
        """Wait until it has ended; an interrupt is raised only then, so that nobody writes into arrays afterwards."""
        interrupt: KeyboardInterrupt | None = None
        while not self._has_ended:
            try:
                self._lock.acquire(timeout=_LOOK_AGAIN_S)
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt


class ThreadTeam:
    """Threads that wait for work; there are as many as were needed at once, and none before the first call.

    They do not exist in a forked child, which starts its own. They do not keep the interpreter from exiting.
    """

    def __init__(self) -> None:
        self.num_threads = 0
        self._forget_threads()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget_threads)

    def _forget_threads(self) -> None:
        self.num_threads = 0
        self._growing = threading.Lock()  # a thread that no longer exists may have held the old one
        self._parts: SimpleQueue[_Part] = SimpleQueue()

    def run(self, work: Work, num_parts: int) -> None:
        """Call `work` with the numbers from 0 up to `num_parts`, at once; the first in the calling thread.

        Returns when all have ended, and raises what one of them raised.
        """
        if num_parts == 1 or not self._has_threads(num_parts - 1):
            for number in range(num_parts):
                work(number)
            return
        parts = [_Part(work, number) for number in range(1, num_parts)]
        for part in parts:
            self._parts.put(part)
        try:
            work(0)
        finally:
            for part in parts:
                part.wait()
        for part in parts:
            if part.error is not None:
                raise part.error

    def _has_threads(self, num_threads: int) -> bool:
        """Start threads until there are as many; False where the interpreter is exiting and starts no more."""
        if sys.is_finalizing():
            return False
        if self.num_threads >= num_threads:
            return True
        with self._growing:
            while self.num_threads < num_threads:
                thread = threading.Thread(target=_serve, args=(self._parts,), name="hotlap-team", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # the interpreter is exiting, or the system has no more threads
                    return False
                self.num_threads += 1
        return True


def _serve(parts: "SimpleQueue[_Part]") -> None:
    while True:
        parts.get().do()
