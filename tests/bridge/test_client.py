"""The client: replies as they were sent, clear errors when something goes wrong, never the reply to another request."""

import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import websocket

from hotlap.bridge import client as client_module
from hotlap.bridge.binary import read_step as read_binary_step
from hotlap.bridge.binary import write_actions
from hotlap.bridge.client import (
    BridgeClient,
    connect_to_racer,
    default_url,
    read_batch_reset,
    read_close,
    read_hello,
    read_reset,
    read_step,
)
from hotlap.bridge.protocol import Close, Hello, Reset, Step
from hotlap.errors import BridgeConnectionError, BridgeError, BridgeTimeoutError, UnknownTrackError

GAS = Step((0.0, 1.0, 0.0))


@pytest.fixture
def client(bridge_server) -> Iterator[BridgeClient]:
    with BridgeClient(bridge_server.url) as client:
        yield client


@contextmanager
def fake_server(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on a thread that does what `behave` says with its one connection."""
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
    """A server's half of the opening handshake, and the first request read away."""
    asked = connection.recv(4096).decode()
    key = asked.split("Sec-WebSocket-Key: ")[1].split("\r\n")[0]
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    accept = base64.b64encode(digest).decode()
    connection.sendall(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode()
    )
    connection.recv(4096)


def text_frame(text: str) -> bytes:
    return bytes([0x81, len(text)]) + text.encode()


# --- a conversation ---


def test_requests_and_replies(client):
    hello = client.ask(Hello(), read_hello)
    assert (hello.protocol, hello.binary) == (1, False)
    assert len(client.ask(Reset(seed=1), read_reset).observation) == 14
    assert client.ask(GAS, read_step).info["tick"] == 1
    client.ask(Close(), read_close)
    assert len(client.ask(Reset(num_envs=3), read_batch_reset).observation) == 3


def test_binary_steps(client):
    client.ask(Hello(binary=True), read_hello)
    client.ask(Reset(num_envs=2), read_batch_reset)
    step = read_binary_step(client.step_binary(write_actions(np.zeros((2, 3), np.float32))))
    assert step.infos["tick"].tolist() == [1, 1]


def test_what_the_bridge_refuses_is_raised_and_the_connection_lives(client):
    with pytest.raises(BridgeError, match=r"ws://.* refused: step: there is no world yet"):
        client.ask(GAS, read_step)
    with pytest.raises(BridgeError, match="refused: request: binary frames must be asked for"):
        client.step_binary(bytes(12))
    assert client.ask(Reset(), read_reset).info["tick"] == 0


def test_without_a_url_it_is_this_machines_bridge(bridge_server, monkeypatch):
    assert default_url() == bridge_server.url
    with BridgeClient() as client:
        assert client.url == bridge_server.url
    monkeypatch.delenv("BRIDGE_PORT")
    assert default_url() == "ws://127.0.0.1:9876"


# --- nobody there ---


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"ws://127.0.0.1:{taken.getsockname()[1]}"
    with pytest.raises(BridgeConnectionError, match=r"no bridge there .* Start one with `hotlap bridge`\."):
        BridgeClient(url)


@pytest.mark.parametrize("url", ["127.0.0.1:9876", "http://127.0.0.1:9876", "ws://", "ws://127.0.0.1:port", "wss//x"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(BridgeConnectionError, match="no WebSocket address"):
        BridgeClient(url)


def test_someone_else_there():
    with (
        fake_server(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")) as url,
        pytest.raises(BridgeConnectionError, match="no bridge there"),
    ):
        BridgeClient(url, connect_timeout_s=2.0)


def test_someone_who_does_not_answer_is_not_waited_for():
    with (
        fake_server(lambda connection: threading.Event().wait(0.5)) as url,
        pytest.raises(BridgeTimeoutError, match="no answer in time"),
    ):
        BridgeClient(url, connect_timeout_s=0.1)


def test_a_token_is_sent_and_a_missing_one_said(monkeypatch):
    asked: list[bytes] = []

    def refuse(connection: socket.socket) -> None:
        asked.append(connection.recv(4096))
        connection.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 10\r\n\r\nno entry!!")

    monkeypatch.setenv("HOTLAP_BRIDGE_TOKEN", "from-outside")
    for token, sent in (("given", b"Bearer given"), (None, b"Bearer from-outside")):
        with (
            fake_server(refuse) as url,
            pytest.raises(BridgeConnectionError, match=r"not let in \(401, no entry!!\)\. Set HOTLAP_BRIDGE_TOKEN\."),
        ):
            BridgeClient(url, token=token)
        assert b"Authorization: " + sent in asked.pop()


# --- lost on the way ---


def test_a_late_reply_is_not_waited_for_and_not_taken_for_another():
    def dawdle(connection: socket.socket) -> None:
        shake_hands(connection)
        threading.Event().wait(0.3)
        connection.sendall(text_frame('{"type":"close_result"}'))

    with fake_server(dawdle) as url:
        client = BridgeClient(url, request_timeout_s=0.1)
        with pytest.raises(BridgeTimeoutError, match=r"no reply within 0\.1 s"):
            client.ask(Close(), read_close)
        with pytest.raises(BridgeConnectionError, match="this connection is closed"):
            client.ask(Close(), read_close)


def test_an_interrupted_request_closes_the_connection(client, monkeypatch):
    client.ask(Reset(), read_reset)

    def interrupt(self: websocket.WebSocket) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(websocket.WebSocket, "recv_data", interrupt)
        with pytest.raises(KeyboardInterrupt):
            client.ask(GAS, read_step)
    with pytest.raises(BridgeConnectionError, match="closed"):
        client.ask(GAS, read_step)


def test_a_dropped_connection_is_said():
    with fake_server(shake_hands) as url:
        client = BridgeClient(url)
        with pytest.raises(BridgeConnectionError, match="the connection broke"):
            client.ask(Close(), read_close)


def test_a_goodbye_is_said_with_its_reason():
    def leave(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(bytes([0x88, 6]) + (1001).to_bytes(2, "big") + b"stop")

    with fake_server(leave) as url:
        client = BridgeClient(url)
        with pytest.raises(BridgeConnectionError, match=r"hung up \(code 1001, stop\)"):
            client.ask(Close(), read_close)


@pytest.mark.parametrize("text", ["hello", "{}", '{"type":"step_result"}', "[" * 100])
def test_a_reply_that_is_none_is_refused(text):
    def babble(connection: socket.socket) -> None:
        shake_hands(connection)
        connection.sendall(text_frame(text))
        connection.recv(100)

    with (
        fake_server(babble) as url,
        BridgeClient(url) as client,
        pytest.raises(BridgeError, match="not a bridge's reply"),
    ):
        client.ask(Close(), read_close)


def test_after_close_nothing_is_asked_and_closing_again_is_fine(bridge_server):
    client = BridgeClient(bridge_server.url)
    client.close()
    client.close()
    with pytest.raises(BridgeConnectionError, match=r"this connection is closed\. Make a new one"):
        client.ask(Reset(), read_reset)


# --- the racer behind it ---


def test_a_bridge_of_other_physics_or_protocol_is_refused(bridge_server, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(client_module, "PHYSICS_VERSION", "0-other")
        with pytest.raises(BridgeError, match=r"has physics .*, we have 0-other\. Update the older one"):
            connect_to_racer(bridge_server.url, [])
    monkeypatch.setattr(client_module, "PROTOCOL", 2)
    with pytest.raises(BridgeError, match="speaks protocol 1, this client 2"):
        connect_to_racer(bridge_server.url, [])


def test_a_track_the_bridge_does_not_know_is_refused(bridge_server):
    with pytest.raises(UnknownTrackError, match=r"track 'nowhere' is not known to the bridge at ws://"):
        connect_to_racer(bridge_server.url, ["track-01", "nowhere"])
