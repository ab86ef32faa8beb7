"""Send requests as an attacker would, over a socket or straight into the application, and note opened files."""

import os
import socket
import sys
from typing import Any
from urllib.parse import unquote

from web.hostile_requests import HostileRequest


class RawClient:
    """Sends requests as they are, on a connection that is opened again when the server closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, request: HostileRequest) -> tuple[int, bytes]:
        """The status and body of the answer; status 0 if the server only closed the connection."""
        head = {"Host": "127.0.0.1:{port}", "Content-Length": str(len(request.body)), **request.headers}
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value.replace('{port}', str(self._port))}" for name, value in head.items()]
        content = "\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape") + request.body
        for _ in range(2):  # a connection may have been closed since the last answer
            try:
                if self._socket is None:
                    self._socket = socket.create_connection(("127.0.0.1", self._port), 60.0)
                self._socket.sendall(content)
                answer = self._receive(request.method == "HEAD")
            except (ConnectionError, BrokenPipeError):
                answer = None
            if answer is not None:
                return answer
            self.close()
        return 0, b""

    def _receive(self, is_head: bool) -> tuple[int, bytes] | None:
        data = b""
        while b"\r\n\r\n" not in data:
            if not (part := self._socket.recv(65_536)):
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:])
        length = 0 if is_head else int(headers.get("content-length", 0))
        while len(body) < length and (part := self._socket.recv(65_536)):
            body += part
        if headers.get("connection") == "close" or headers.get("transfer-encoding") or "content-length" not in headers:
            self.close()
        return int(lines[0].split()[1]), body

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


async def ask_app(app: Any, request: HostileRequest, port: int) -> tuple[int, bytes]:
    """One request straight into the application, as the HTTP library would hand it over."""
    path, _, query = request.target.partition("?")
    head = {"Host": f"127.0.0.1:{port}", "Content-Length": str(len(request.body)), **request.headers}
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": request.method, "scheme": "http",
        "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(), "root_path": "",
        "headers": [
            (name.lower().encode(), value.replace("{port}", str(port)).encode("latin-1", "replace"))
            for name, value in head.items()
        ],
        "server": ("127.0.0.1", port), "client": ("127.0.0.1", 1),
    }  # fmt: skip
    messages = [{"type": "http.request", "body": request.body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


class OpenedFiles:
    """The paths of all files that this process opens inside the `with` block."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._is_on = False
        sys.addaudithook(self._hear)  # stays for the life of the process, so it must be cheap when off

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._is_on and event == "open" and isinstance(arguments[0], str | bytes):
            # Not resolved: a link that is opened must show.
            self.paths.append(os.path.abspath(os.fsdecode(arguments[0])))  # noqa: PTH100

    def __enter__(self) -> "OpenedFiles":
        self._is_on = True
        return self

    def __exit__(self, *_: object) -> None:
        self._is_on = False
