"""A bridge in its own process, started as a user would start it."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

STARTING_S = 55.0
STOPPING_S = 30.0


class BridgeProcess:
    """`python -m hotlap bridge` on a free port; its output goes to `log_path`."""

    def __init__(self, log_path: Path, *arguments: str, **environ: str) -> None:
        self.log_path = log_path
        own = {key: value for key, value in os.environ.items() if key not in ("BRIDGE_PORT", "HOTLAP_BRIDGE_TOKEN")}
        with log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hotlap", "bridge", "--port", "0", *arguments],
                stdout=log,
                stderr=log,
                env={**own, **environ},
            )
        self.url = self._wait_for_url()
        self.port = int(self.url.rpartition(":")[2])

    def _wait_for_url(self) -> str:
        deadline_s = time.monotonic() + STARTING_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            if found := re.search(r"\[bridge\] listening on (ws://\S+)\n", self.log):
                return found[1]
            time.sleep(0.02)
        self.stop()
        raise RuntimeError(f"the bridge did not start: {self.log}")

    @property
    def log(self) -> str:
        """Its output so far."""
        return self.log_path.read_text(encoding="utf-8")

    def connect(self, timeout_s: float = 5.0) -> socket.socket:
        """Open a TCP connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout_s)

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

    def __enter__(self) -> "BridgeProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
