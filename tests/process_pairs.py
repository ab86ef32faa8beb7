"""Two processes that train one run together over loopback, without `torchrun`: it only sets these variables."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from forked_python import Popen

HOTLAP = ("-m", "hotlap")
TIMEOUT_S = 100.0  # on a busy machine


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class ProcessPair:
    """The same command as several processes, with ranks from 0; `local_size` of them say they are on one machine."""

    def __init__(self, arguments: Sequence[object], size: int = 2, local_size: int | None = None) -> None:
        port = str(free_port())
        self.processes = [
            Popen(
                [sys.executable, *map(str, arguments)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "LOCAL_RANK": str(rank),
                    "WORLD_SIZE": str(size),
                    "LOCAL_WORLD_SIZE": str(local_size or size),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                },
            )
            for rank in range(size)
        ]

    def end(self) -> list[tuple[int, str, str]]:
        """Exit code, stdout and stderr of each."""
        found = []
        try:
            for process in self.processes:
                out, err = process.communicate(timeout=TIMEOUT_S)
                found.append((process.returncode, out, err))
        finally:
            for process in self.processes:
                process.kill()
        return found

    def send(self, rank: int, number: signal.Signals, once_there: Path) -> None:
        """Send a signal to one of them as soon as a file is there."""
        ends_s = time.monotonic() + TIMEOUT_S
        while not once_there.exists() and time.monotonic() < ends_s:
            assert all(process.poll() is None for process in self.processes), self.end()
            time.sleep(0.01)
        self.processes[rank].send_signal(number)


def run_pair(arguments: Sequence[object], size: int = 2, local_size: int | None = None) -> list[tuple[int, str, str]]:
    """Run a command as several processes to their ends."""
    return ProcessPair(arguments, size, local_size).end()
