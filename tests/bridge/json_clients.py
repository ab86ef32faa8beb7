"""Clients that use plain JSON instead of Hotlap's client: over a session without sockets, or over websocket-client."""

import json
from typing import Any

import numpy as np
import websocket

from hotlap.bridge.session import Session

SHORT = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25}}
SHORT_RANDOM = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25, "start": "random"}}
FULL_THROTTLE = [0.0, 1.0, 0.0]


def strict_json(data: bytes | str) -> Any:
    """Parse standard JSON, which has no NaN and no infinities."""

    def refuse(word: str) -> None:
        raise AssertionError(f"not JSON: {word}")

    return json.loads(data, parse_constant=refuse)


class JsonSession:
    """Sends requests to a session, without sockets."""

    def __init__(self) -> None:
        self.session = Session(np.random.default_rng())

    def __call__(self, **message: Any) -> Any:
        return strict_json(self.session.answer(json.dumps(message).encode()).data)


class JsonClient:
    """Sends requests over a WebSocket, as any program with the websocket-client package would."""

    def __init__(self, url: str, **options: Any) -> None:
        self.socket = websocket.create_connection(url, timeout=options.pop("timeout", 20.0), **options)

    def __call__(self, **message: Any) -> Any:
        return self.send_text(json.dumps(message))

    def send_text(self, text: str | bytes) -> Any:
        """Send a text message as it is and return the parsed reply."""
        self.socket.send(text)
        return strict_json(self.socket.recv())

    def __enter__(self) -> "JsonClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close(timeout=1)
