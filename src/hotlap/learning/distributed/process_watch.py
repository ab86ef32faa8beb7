"""Notices that another process of a run is gone while this one waits for a GPU.

NCCL's exchanges within a CUDA graph have no time limit: when a process dies, the GPUs of the others wait for it for
ever, and so does every thread that waits for those GPUs. So each process counts in torch's store, in a thread of its
own, and watches that the others count too.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

BEAT_S = 0.5
# Less than the half minute that `torchrun` leaves the others before it kills them.
SILENT_S = 10.0
NOTICE_S = 5.0  # for this process to notice by itself, before it counts as stuck
_KEY = "hotlap/beats"
_LEFT, _FAILED = b"left", b"failed"


class ProcessWatch:
    """Calls `on_lost` once, in its own thread, when this process is stuck.

    That is when another process has failed, has been silent for SILENT_S or took the store with it, and this one has
    not stopped its watch within NOTICE_S after that.
    """

    def __init__(self, store: Any, rank: int, size: int, on_lost: Callable[[], object]) -> None:
        # A connection of its own: torch's other uses of the store block it until another process answers.
        self._store = store.clone()
        self._rank, self._on_lost = rank, on_lost
        self._beats = {other: b"" for other in range(size) if other != rank}
        self._heard_s = dict.fromkeys(self._beats, time.monotonic())
        self._is_stopped, self._last_beat = threading.Event(), _LEFT
        self._thread = threading.Thread(target=self._run, name="process watch", daemon=True)
        self._thread.start()

    def stop(self, *, in_order: bool) -> None:
        """Watch no more, and let the others know how this process ends: in order, or so that they wait for nothing."""
        self._last_beat = _LEFT if in_order else _FAILED
        self._is_stopped.set()
        self._thread.join(timeout=2.0 * BEAT_S)

    def _run(self) -> None:
        try:
            for beat in range(2**62):
                self._store.set(self._key(self._rank), str(beat))
                if self._is_stopped.wait(BEAT_S):
                    self._store.set(self._key(self._rank), self._last_beat)
                    return
                if self._is_anyone_lost():
                    break
        except RuntimeError:  # the process that held the store is gone
            pass
        if not self._is_stopped.wait(NOTICE_S):
            self._on_lost()

    def _is_anyone_lost(self) -> bool:
        now_s = time.monotonic()
        for other, before in self._beats.items():
            beat = self._store.get(self._key(other)) if self._store.check([self._key(other)]) else b""
            if beat != before or beat == _LEFT:
                self._beats[other], self._heard_s[other] = beat, now_s
        is_silent = any(now_s - heard_s > SILENT_S for heard_s in self._heard_s.values())
        return is_silent or _FAILED in self._beats.values()

    def _key(self, rank: int) -> str:
        return f"{_KEY}/{rank}"
