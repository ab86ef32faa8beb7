"""Talking to a bridge without Hotlap's client: plain JSON through a session, or through websocket-client."""

import json
from typing import Any

import numpy as np
import websocket

from hotlap.bridge.session import Session

SHORT = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25}}
SHORT_RANDOM = {"episode": {"maxSteps": 70, "stillnessTimeoutTicks": 25, "start": "random"}}
GAS = [0.0, 1.0, 0.0]


def strict_json(data: bytes | str) -> Any:
    """JSON as its standard has it: no NaN, no infinities."""

    def refuse(word: str) -> None:
        raise AssertionError(f"not JSON: {word}")

    return json.loads(data, parse_constant=refuse)


class Talk:
    """A session spoken to in JSON, without sockets."""

    def __init__(self) -> None:
        self.session = Session(np.random.default_rng())

    def __call__(self, **message: Any) -> Any:
        return strict_json(self.session.answer(json.dumps(message).encode()).data)


class Phone:
    """A WebSocket connection spoken to in JSON, as any program would with the plain websocket-client package."""

    def __init__(self, url: str, **options: Any) -> None:
        self.socket = websocket.create_connection(url, timeout=options.pop("timeout", 20.0), **options)

    def __call__(self, **message: Any) -> Any:
        self.socket.send(json.dumps(message))
        return strict_json(self.socket.recv())

    def say(self, text: str | bytes) -> Any:
        """Send a message as it is."""
        self.socket.send(text)
        return strict_json(self.socket.recv())

    def __enter__(self) -> "Phone":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close(timeout=1)
