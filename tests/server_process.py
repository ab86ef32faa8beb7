"""A server in its own process, started as a user would start it."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Self

from forked_python import Popen

STOPPING_S = 30.0


class ServerProcess:
    """`python -m hotlap VERB …`, whose output is added to `log_path`; ready when it says its address.

    It is forked; a test about the start of an interpreter sets `popen` to `subprocess.Popen`.
    """

    popen: "type[subprocess.Popen[bytes]]" = Popen

    def __init__(self, log_path: Path, arguments: list[str], scheme: str, starting_s: float, **options: Any) -> None:
        self.log_path = log_path
        with log_path.open("ab") as log:
            self._begins = log.tell()
            command = [sys.executable, "-m", "hotlap", *arguments]
            self.process = self.popen(command, stdout=log, stderr=log, **options)
        self.url = self._wait_for_url(arguments[0], scheme, starting_s)
        self.port = int(self.url.rpartition(":")[2])

    def _wait_for_url(self, verb: str, scheme: str, starting_s: float) -> str:
        deadline_s = time.monotonic() + starting_s
        while time.monotonic() < deadline_s and self.process.poll() is None:
            if found := re.search(rf"\[{verb}\] listening on ({scheme}://\S+)\n", self.log[self._begins :]):
                return found[1]
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"hotlap {verb} did not start: {self.log}")

    @property
    def log(self) -> str:
        """Its output so far."""
        return self.log_path.read_text(encoding="utf-8")

    def interrupt(self, number: signal.Signals) -> int:
        """Send a signal and wait for the process to end; returns its exit code."""
        self.process.send_signal(number)
        return self.process.wait(STOPPING_S)

    def stop(self) -> None:
        """Terminate it, or kill it if that does not help."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOPPING_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
