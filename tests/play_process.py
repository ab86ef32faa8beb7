"""`hotlap play` in its own process and folder, started as a user would start it, and a plain HTTP client for it."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

STARTING_S = 110.0
STOPPING_S = 30.0


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The text of a refusal, which is one line."""
        text = self.json["error"]
        assert "\n" not in text
        assert text.isprintable()
        return text


class PlayProcess:
    """`python -m hotlap play` on a free port, in `folder`, with its home there too."""

    def __init__(self, folder: Path, *arguments: str, **environ: str) -> None:
        self.folder, self.log_path, self.home = folder, folder / "play.log", folder / "home"
        own = {key: value for key, value in os.environ.items() if key != "HOTLAP_PLAY_TOKEN"}
        options = ["--no-open", *([] if "--port" in arguments else ["--port", "0"]), *arguments]
        with self.log_path.open("ab") as log:
            begins = log.tell()
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hotlap", "play", *options],
                stdout=log,
                stderr=log,
                cwd=folder,
                env={**own, "HOTLAP_HOME": str(self.home), **environ},
            )
        self.url = self._wait_for_url(begins)
        self.port = int(self.url.rpartition(":")[2])

    def _wait_for_url(self, begins: int) -> str:
        deadline_s = time.monotonic() + STARTING_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            if found := re.search(r"\[play\] listening on (http://\S+)\n", self.log[begins:]):
                return found[1]
            time.sleep(0.05)
        self.stop()
        raise RuntimeError(f"the server did not start: {self.log}")

    @property
    def log(self) -> str:
        """Its output so far."""
        return self.log_path.read_text(encoding="utf-8")

    def ask(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60.0)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """GET a path."""
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """POST JSON; again after a moment where there were too many requests."""
        content = json.dumps({} if body is None else body).encode()
        while True:
            answer = self.ask("POST", path, content, {"Content-Type": "application/json", **headers})
            if answer.status != 429:
                return answer
            time.sleep(0.5)

    def wait_for(self, path: str, is_reached: Any, timeout_s: float = 50.0) -> Any:
        """GET a path until its JSON is as it should be."""
        deadline_s = time.monotonic() + timeout_s
        while not is_reached(value := self.get(path).json):
            assert time.monotonic() < deadline_s, f"{path} is still {value!r:.2000}"
            time.sleep(0.25)
        return value

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

    def __enter__(self) -> "PlayProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
