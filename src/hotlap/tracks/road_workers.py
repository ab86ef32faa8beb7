"""The processes that make a stream's roads beside the training."""

import os
import struct
import subprocess
import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import IO, cast

import numpy as np

from hotlap.errors import RoadStreamError
from hotlap.python_processes import python_command
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, TRACK_DTYPE, Ribbons
from hotlap.tracks.road_maker import HEADER

END_WAIT_S = 5.0


class RoadWorkers:
    """Makes the roads that are asked for, in any order; `take` waits for one of them.

    Which process makes a road does not matter: it is a function of the run's seed and its number.
    """

    def __init__(self, run_seed: int, num_workers: int) -> None:
        self._ready = threading.Condition()
        self._roads: dict[int, Ribbons] = {}
        self._asked: set[int] = set()
        self._problem: str | None = None
        self._is_closed = False
        self._workers = [self._start(run_seed) for _ in range(num_workers)]

    @property
    def process_ids(self) -> list[int]:
        """Of the workers."""
        return [worker.pid for worker in self._workers]

    def ask(self, numbers: Iterable[int]) -> None:
        """Have these roads made; those that were asked for before are made once."""
        for number in numbers:
            if number in self._asked:
                continue
            self._asked.add(number)
            worker = self._workers[number % len(self._workers)]
            with suppress(OSError):  # it has died; its reader says so
                stdin = cast(IO[bytes], worker.stdin)
                stdin.write(b"%d\n" % number)
                stdin.flush()

    def take(self, number: int) -> Ribbons:
        """A road that was asked for; waits until it is made. It is forgotten here."""
        with self._ready:
            self._ready.wait_for(lambda: number in self._roads or self._problem is not None)
            if number not in self._roads:
                raise RoadStreamError(self._problem)
            self._asked.discard(number)
            return self._roads.pop(number)

    def close(self) -> None:
        """End the processes."""
        self._is_closed = True
        for worker in self._workers:
            with suppress(OSError):
                cast(IO[bytes], worker.stdin).close()
        for worker in self._workers:
            try:
                worker.wait(END_WAIT_S)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    def _start(self, run_seed: int) -> "subprocess.Popen[bytes]":
        # One core each: the libraries' own threads would take those of the training.
        threads = dict.fromkeys(
            ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
        )
        worker = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
            python_command("hotlap.tracks.road_maker", str(run_seed)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads},
            start_new_session=True,  # Ctrl-C is for the training, which saves first
        )
        threading.Thread(target=self._read, args=(worker,), name=f"roads of {worker.pid}", daemon=True).start()
        return worker

    def _read(self, worker: "subprocess.Popen[bytes]") -> None:
        """Take the roads of a worker until it ends."""
        with cast(IO[bytes], worker.stdout) as roads:
            while header := roads.read(HEADER.size):
                try:
                    self._add(header, roads)
                except (ValueError, struct.error):  # it was killed while it wrote
                    break
        if not self._is_closed:
            self._fail(f"the process {worker.pid} that makes roads {_end_of(worker)}")

    def _add(self, header: bytes, roads: IO[bytes]) -> None:
        number, num_nodes, size = HEADER.unpack(header)
        if not num_nodes:
            self._fail(roads.read(size).decode())
            return
        kinds = (TRACK_DTYPE, 1), (NODE_DTYPE, num_nodes), (PORTAL_DTYPE, size)
        road = Ribbons(*(np.frombuffer(roads.read(count * kind.itemsize), kind, count) for kind, count in kinds))
        with self._ready:
            self._roads[number] = road
            self._ready.notify_all()

    def _fail(self, problem: str) -> None:
        with self._ready:
            self._problem = self._problem or problem.rstrip(".")
            self._ready.notify_all()


def _end_of(worker: "subprocess.Popen[bytes]") -> str:
    status = worker.wait()
    return f"was killed by signal {-status}" if status < 0 else f"exited with code {status}"
