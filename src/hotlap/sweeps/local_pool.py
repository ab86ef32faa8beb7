"""The local pool: processes that train one run at a time, restarted when they die."""

import logging
import os
import queue
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

import msgspec

from hotlap.errors import TrainingError
from hotlap.python_processes import python_command
from hotlap.sim.batch_cpu import default_threads
from hotlap.sweeps.run_messages import Ended, RunReport, RunTask
from hotlap.sweeps.worker import READY, STOP

MAX_FAILED_STARTS = 3  # in a row
END_WAIT_S = 10.0
_log = logging.getLogger(__name__)


class _Worker:
    """One process; `messages` gets (worker, line) for each line it writes, and (worker, None) when it has ended."""

    def __init__(self, environ: dict[str, str], log: Path, messages: "queue.SimpleQueue[tuple[_Worker, bytes | None]]"):
        with log.open("ab") as log_file:
            self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
                python_command("hotlap.sweeps.worker"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log_file,
                env=environ,
                start_new_session=True,  # Ctrl-C is for the sweep, which asks its workers to save
            )
        self._stdin = cast(IO[bytes], self.process.stdin)
        self._stdout = cast(IO[bytes], self.process.stdout)
        self.log = log
        self.task: RunTask | None = None
        self.is_ready = False
        self._messages = messages
        threading.Thread(target=self._read, name=f"reports of {self.process.pid}", daemon=True).start()

    def send(self, line: bytes) -> None:
        with suppress(OSError):  # it has died; its end is reported by `_read`
            self._stdin.write(line + b"\n")
            self._stdin.flush()

    def close_stdin(self) -> None:
        """Tell it to end."""
        with suppress(OSError):
            self._stdin.close()

    def end(self) -> None:
        """Close its stdin, which ends it; kill it if that does not."""
        self.close_stdin()
        try:
            self.process.wait(END_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _read(self) -> None:
        for line in self._stdout:
            self._messages.put((self, line))
        self._messages.put((self, None))


class LocalPool:
    """Runs up to `num_workers` tasks at a time, each in a process with its fraction of the cores."""

    def __init__(self, num_workers: int, log_folder: Path) -> None:
        self.num_slots = num_workers
        self._log_folder = log_folder
        self._environ = _worker_environ(num_workers)
        self._messages: queue.SimpleQueue[tuple[_Worker, bytes | None]] = queue.SimpleQueue()
        self._failed_starts = 0
        log_folder.mkdir(parents=True, exist_ok=True)
        self._workers = [self._new_worker(index) for index in range(num_workers)]

    @property
    def num_running(self) -> int:
        """Tasks that were started and have not ended."""
        return sum(worker.task is not None for worker in self._workers)

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return [worker.process.pid for worker in self._workers]

    def start(self, task: RunTask) -> None:
        """Give a task to a free worker; there must be one."""
        worker = next(worker for worker in self._workers if worker.task is None)
        worker.task = task
        worker.send(msgspec.json.encode(task))

    def wait(self, timeout_s: float) -> list[Ended]:
        """The tasks that have ended, waiting for one up to `timeout_s`."""
        ended: list[Ended] = []
        with suppress(queue.Empty):
            ended += self._handle(*self._messages.get(timeout=timeout_s))
            while True:
                ended += self._handle(*self._messages.get_nowait())
        return ended

    def stop(self) -> None:
        """Ask every run to save and end."""
        for worker in self._workers:
            worker.send(STOP)

    def close(self) -> None:
        """End the workers, whatever they do."""
        for worker in self._workers:
            worker.close_stdin()
        for worker in self._workers:
            worker.end()

    def _handle(self, worker: _Worker, line: bytes | None) -> list[Ended]:
        if line is None:
            return self._replace(worker)
        if line.strip() == READY:
            worker.is_ready = True
            self._failed_starts = 0
            return []
        task, worker.task = worker.task, None
        try:
            report = msgspec.json.decode(line, type=RunReport)
        except msgspec.DecodeError:  # it was killed while it wrote
            report = RunReport("lost", error="its process died while reporting")
        return [(task, report)] if task is not None else []

    def _replace(self, worker: _Worker) -> list[Ended]:
        """A worker has died: start another in its place."""
        worker.end()
        if worker not in self._workers:
            return []
        status = worker.process.returncode
        how = f"was killed by signal {-status}" if status < 0 else f"exited with code {status}"
        if not worker.is_ready:
            self._failed_starts += 1
            if self._failed_starts >= MAX_FAILED_STARTS:
                raise TrainingError(f"the sweep's processes do not start ({how}). Their output is in {worker.log}.")
        index = self._workers.index(worker)
        _log.warning("process %d of the sweep %s. Another is started.", worker.process.pid, how)
        self._workers[index] = self._new_worker(index)
        return [(worker.task, RunReport("lost", error=f"its process {how}"))] if worker.task is not None else []

    def _new_worker(self, index: int) -> _Worker:
        return _Worker(self._environ, self._log_folder / f"worker-{index}.log", self._messages)


def _worker_environ(num_workers: int) -> dict[str, str]:
    """One thread for torch's libraries, and the cores shared out for the simulator."""
    fraction = max(1, default_threads() // num_workers)
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": str(fraction)}
    return {**os.environ, **threads, "PYTHONUNBUFFERED": "1"}


def default_workers(num_runs: int) -> int:
    """One per core, but no more than there are runs."""
    return max(1, min(default_threads(), num_runs))
