"""`hotlap play` in its own process and folder, started as a user would start it, and a plain HTTP client for it."""

import http.client
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server_process import ServerProcess

STARTING_S = 110.0
BOARD = "board.sqlite3"


def enter_drivers(folder: Path) -> bytes:
    """The content of a new board with the drivers that ship, entered as the server does it."""
    from hotlap.tracks.registry import list_tracks, load_track
    from hotlap.web.leaderboard import Leaderboard
    from hotlap.web.services import PageServices

    services = PageServices(Leaderboard(folder / BOARD))
    for entry in list_tracks():
        if entry.source == "built-in":
            services.enter_known_drivers(load_track(entry.track_id))
    services.close()
    return (folder / BOARD).read_bytes()


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


class PlayProcess(ServerProcess):
    """`python -m hotlap play` on a free port, in `folder`, with its home there too.

    With the content of a `board` it need not enter the drivers that ship, which takes seconds of processor time.
    """

    def __init__(self, folder: Path, *arguments: str, board: bytes | None = None, **environ: str) -> None:
        self.folder, self.home = folder, folder / "home"
        if board is not None:
            self.home.mkdir(exist_ok=True)
            (self.home / BOARD).write_bytes(board)
        own = {key: value for key, value in os.environ.items() if key != "HOTLAP_PLAY_TOKEN"}
        options = ["--no-open", *([] if "--port" in arguments else ["--port", "0"]), *arguments]
        env = {**own, "HOTLAP_HOME": str(self.home), **environ}
        super().__init__(folder / "play.log", ["play", *options], "http", STARTING_S, cwd=folder, env=env)

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
