"""A process of the local pool: reads tasks from stdin and writes reports to stdout, one JSON object per line.

`python -m hotlap.sweeps.worker`. It ends when stdin closes, at whatever point its run is: when the sweep is killed, so
are its workers, and a run's files survive that.
"""

import os
import queue
import sys
import threading
from typing import TYPE_CHECKING

import msgspec

from hotlap.sweeps.run_messages import RunTask

if TYPE_CHECKING:
    from hotlap.training.trainer import Trainer

STOP = b"stop"
READY = b"ready"


class _Inbox:
    """Reads stdin in a thread: tasks go to the queue, a stop goes to the run in training."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._trainer: Trainer | None = None
        self._is_stopping = False
        threading.Thread(target=self._read, name="tasks", daemon=True).start()

    def set_trainer(self, trainer: "Trainer") -> None:
        """The run that a stop is for; one that came before stops it at once."""
        with self._lock:
            self._trainer = trainer
            if self._is_stopping:
                trainer.stop()

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            if line.strip() != STOP:
                self.tasks.put(line)
                continue
            with self._lock:
                self._is_stopping = True
                if self._trainer is not None:
                    self._trainer.stop()
        # The sweep has ended or was killed. Not sys.exit: the main thread may be in a long call.
        os._exit(0)


def main() -> None:
    """Do tasks until stdin closes."""
    # Reports get a descriptor of their own: what libraries and environments print goes to stderr, the worker's log.
    reports = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    inbox = _Inbox()
    from hotlap.sweeps.run_task import execute  # takes seconds; a closed stdin ends the process meanwhile
    from hotlap.training.optimizer_start import skip_compiler_import

    skip_compiler_import()
    decode = msgspec.json.Decoder(RunTask).decode
    reports.write(READY + b"\n")
    while True:
        report = execute(decode(inbox.tasks.get()), inbox.set_trainer)
        reports.write(msgspec.json.encode(report) + b"\n")


if __name__ == "__main__":
    main()
