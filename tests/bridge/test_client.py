"""The client: replies, clear errors, and never the reply to another request."""

import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import Mock

import numpy as np
import pytest
import websocket

from hotlap.bridge import client as client_module
from hotlap.bridge.binary import read_step as read_binary_step
from hotlap.bridge.binary import write_actions
from hotlap.bridge.client import BridgeClient, connect_to_racer, read_close, read_hello, read_reset, read_step
from hotlap.bridge.protocol import Close, Hello, Reset, Step
from hotlap.errors import BridgeConnectionError, BridgeError, BridgeTimeoutError, UnknownTrackError

FULL_THROTTLE = Step((0.0, 1.0, 0.0))


@pytest.fixture
def client(bridge_server) -> Iterator[BridgeClient]:
    with BridgeClient(bridge_server.url) as client:
        yield client


@contextmanager
def fake_server(behave: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server on a thread that calls `behave` with its one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                behave(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(5.0)


def shake_hands(connection: socket.socket) -> None:
    """Answer the opening handshake and read the first request."""
    asked = connection.recv(4096).decode()
    key = asked.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    accept = base64.b64encode(digest).decode()
    connection.sendall(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
    )
    connection.recv(4096)


@contextmanager
def answering(frame: bytes, after_s: float = 0.0, **options) -> Iterator[BridgeClient]:
    """A client of a server that answers the first request with this frame and then disconnects."""

    def answer(connection: socket.socket) -> None:
        shake_hands(connection)
        threading.Event().wait(after_s)
        connection.sendall(frame)

    with fake_server(answer) as url, BridgeClient(url, **options) as client:
        yield client


def text_frame(text: str) -> bytes:
    return bytes([0x81, len(text)]) + text.encode()


# --- requests ---


def test_requests_and_replies(client):
    hello = client.ask(Hello(), read_hello)
    assert (hello.protocol, hello.binary) == (1, False)
    assert len(client.ask(Reset(seed=1), read_reset).observation) == 14
    assert client.ask(FULL_THROTTLE, read_step).info["tick"] == 1
    client.ask(Close(), read_close)
    client.ask(Hello(binary=True), read_hello)
    assert len(client.ask(Reset(num_envs=2), client_module.read_batch_reset).observation) == 2
    step = read_binary_step(client.step_binary(write_actions(np.zeros((2, 3), np.float32))))
    assert step.infos["tick"].tolist() == [1, 1]


def test_an_error_reply_is_raised_and_the_connection_stays_open(client):
    with pytest.raises(BridgeError, match=r"ws://.* refused: step: no episode has begun"):
        client.ask(FULL_THROTTLE, read_step)
    with pytest.raises(BridgeError, match="refused: request: binary frames are not enabled"):
        client.step_binary(bytes(12))
    assert client.ask(Reset(), read_reset).info["tick"] == 0


def test_the_default_url_is_this_machines_bridge(bridge_server, monkeypatch):
    with BridgeClient() as client:
        assert client.url == bridge_server.url
    monkeypatch.delenv("BRIDGE_PORT")
    assert client_module.default_url() == "ws://127.0.0.1:9876"


# --- connecting ---


def test_an_unused_port_or_a_bad_url_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(BridgeConnectionError, match=r"no bridge there .* Start one with `hotlap bridge`\."):
        BridgeClient(url)
    for url in ("", "127.0.0.1:9876", "http://127.0.0.1:9876", "ws://", "ws://127.0.0.1:port", "wss//x"):
        with pytest.raises(BridgeConnectionError, match="not a WebSocket address"):
            BridgeClient(url)


@pytest.mark.parametrize(
    ("behave", "kind", "words"),
    [
        (lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"), BridgeConnectionError, "no bridge there"),
        (lambda connection: threading.Event().wait(1.0), BridgeTimeoutError, "no answer in time"),
    ],
)
def test_a_server_that_is_no_bridge_or_does_not_answer_is_refused(behave, kind, words):
    with fake_server(behave) as url, pytest.raises(kind, match=words):
        BridgeClient(url, connect_timeout_s=0.5)


def test_the_token_is_sent_and_a_refusal_names_its_variable(monkeypatch):
    asked: list[bytes] = []

    def refuse(connection: socket.socket) -> None:
        asked.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 10\r\n\r\nno entry!!")

    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "from-outside")
    for token, sent in (("given", b"Bearer given"), (None, b"Bearer from-outside")):
        words = r"connection refused \(401, no entry!!\)\. Set HOTLAP_BRIDGE_TOKEN\."
        with fake_server(refuse) as url, pytest.raises(BridgeConnectionError, match=words):
            BridgeClient(url, token=token)
        assert b"Authorization: " + sent in asked.pop()


# --- lost connections ---


def test_a_request_times_out_and_its_late_reply_is_never_read():
    with answering(text_frame('{"type":"close_result"}'), after_s=0.3, request_timeout_s=0.1) as client:
        with pytest.raises(BridgeTimeoutError, match=r"no reply within 0\.1 s"):
            client.ask(Close(), read_close)
        with pytest.raises(BridgeConnectionError, match="this connection is closed"):
            client.ask(Close(), read_close)


def test_an_interrupted_request_closes_the_connection(client, monkeypatch):
    client.ask(Reset(), read_reset)
    with monkeypatch.context() as patch:
        patch.setattr(websocket.WebSocket, "recv_data", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            client.ask(FULL_THROTTLE, read_step)
    with pytest.raises(BridgeConnectionError, match="closed"):
        client.ask(FULL_THROTTLE, read_step)


@pytest.mark.parametrize(
    ("frame", "kind", "words"),
    [
        (b"", BridgeConnectionError, "the connection broke"),
        (b"\x88\x06\x03\xe9stop", BridgeConnectionError, r"closed the connection \(code 1001, stop\)"),
        *[
            (text_frame(text), BridgeError, "not a reply of a bridge")
            for text in ("hello", "{}", '{"type":"step_result"}', "[" * 100)
        ],
    ],
)
def test_a_lost_connection_or_an_invalid_reply_is_an_error(frame, kind, words):
    with answering(frame) as client, pytest.raises(kind, match=words):
        client.ask(Close(), read_close)


def test_a_closed_client_refuses_requests_and_may_be_closed_again(client):
    client.close()
    client.close()
    with pytest.raises(BridgeConnectionError, match=r"this connection is closed\. Make a new client"):
        client.ask(Reset(), read_reset)


# --- the bridge's physics and tracks ---


def test_a_bridge_of_other_physics_or_protocol_or_without_the_track_is_refused(bridge_server, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(client_module, "PHYSICS_VERSION", "0-other")
        with pytest.raises(BridgeError, match=r"the bridge has physics .*, this client 0-other\. Update the older one"):
            connect_to_racer(bridge_server.url, [])
    monkeypatch.setattr(client_module, "PROTOCOL", 2)
    with pytest.raises(BridgeError, match="the bridge has protocol 1, this client 2"):
        connect_to_racer(bridge_server.url, [])
    monkeypatch.undo()
    with pytest.raises(UnknownTrackError, match=r"track 'nowhere' is not known to the bridge at ws://"):
        connect_to_racer(bridge_server.url, ["track-01", "nowhere"])
