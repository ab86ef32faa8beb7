"""The server: starting, access, output, idle connections and shutdown."""

import asyncio
import contextlib
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import websocket
from websocket import ABNF

from bridge.json_clients import FULL_THROTTLE, JsonClient
from bridge_process import BridgeProcess
from hotlap.bridge.server import Bridge, BridgeSettings, listen
from hotlap.errors import BridgeError


@contextlib.contextmanager
def serving(settings: BridgeSettings) -> Iterator[Bridge]:
    """A bridge on a thread of this process."""
    ready, done = threading.Event(), threading.Event()
    made: list[Bridge] = []

    async def serve() -> None:
        bridge = Bridge(settings)
        await bridge.start()
        made.append(bridge)
        ready.set()
        while not done.is_set():
            await asyncio.sleep(0.01)
        await bridge.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(5.0)
    try:
        yield made[0]
    finally:
        done.set()
        thread.join(5.0)


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 5.0
    while not is_true() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    assert is_true()


@pytest.fixture(scope="module")
def guarded_server(bridge_server, tmp_path_factory) -> Iterator[BridgeProcess]:
    """A bridge with `--verbose` that needs a token."""
    path = tmp_path_factory.mktemp("guarded") / "log"
    with BridgeProcess(path, "--verbose", HOTLAP_BRIDGE_TOKEN="sesame") as server:
        yield server


# --- starting ---


def test_it_prints_where_it_listens_and_nothing_else(bridge_server):
    assert re.fullmatch(r"\[bridge\] listening on ws://127\.0\.0\.1:\d+\n", bridge_server.log)
    with JsonClient(bridge_server.url) as client:
        client(type="reset")
        client(type="nonsense")
    with bridge_server.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        plain.recv(1000)
    with bridge_server.connect() as plain:
        plain.sendall(b"\x16\x03\x01\x02\x00" * 100)
    assert bridge_server.log.count("\n") == 1


def test_verbose_logs_connections_and_refused_requests(guarded_server):
    with JsonClient(f"{guarded_server.url}/?token=sesame") as client:
        client(type="jump")
    for words in ("connected: ('127.0.0.1'", "refused: request: Invalid value 'jump'", "disconnected:"):
        wait_until(lambda words=words: words in guarded_server.log)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "999.1.1.1", "a" * 70, "x..y"])
def test_an_unknown_host_is_refused(host):
    with pytest.raises(BridgeError, match="no such address"):
        listen(host, 0)


def test_an_address_or_port_that_cannot_be_used_is_refused(bridge_server):
    with pytest.raises(BridgeError, match=r"cannot be used \(.+\)\. Choose another"):
        listen("192.0.2.1", 0)  # of another machine
    with pytest.raises(BridgeError, match=rf"port {bridge_server.port} of 127.0.0.1 is in use. .* --port"):
        listen("127.0.0.1", bridge_server.port)
    for port in (-1, 65_536):
        with pytest.raises(BridgeError, match="from 0 to 65535"):
            BridgeSettings(port=port)


@pytest.mark.parametrize(("host", "url"), [("localhost", "ws://localhost:"), ("::1", "ws://[::1]:")])
def test_localhost_and_ipv6_are_served(host, url):
    try:
        listen(host, 0).close()
    except BridgeError:
        pytest.skip(f"{host} is not available on this machine")
    with serving(BridgeSettings(host, 0)) as bridge, JsonClient(bridge.url) as client:
        assert bridge.url.startswith(url)
        assert client(type="hello")["protocol"] == 1


# --- access ---


def refusal(url: str, **options) -> int:
    """The HTTP status that refuses a client."""
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        JsonClient(url, **options)
    return caught.value.status_code


def test_own_pages_and_clients_without_an_origin_may_connect_but_foreign_pages_may_not(bridge_server):
    offer = ["Sec-WebSocket-Extensions: permessage-deflate"]
    for options in ({}, {"suppress_origin": True}, {"origin": f"http://localhost:{bridge_server.port}"}):
        with JsonClient(bridge_server.url, header=offer, **options) as client:
            assert client(type="hello")["protocol"] == 1
            assert "sec-websocket-extensions" not in client.socket.getheaders()
    for origin in ("http://example.org", "null", "http://127.0.0.1:1"):
        assert refusal(bridge_server.url, origin=origin) == 403


def test_a_bridge_with_a_token_requires_it_and_never_logs_it(guarded_server):
    url = guarded_server.url
    for options in ({}, {"header": ["Authorization: Bearer wrong"]}):
        assert refusal(url, **options) == 401
    for place, options in ((url, {"header": ["Authorization: Bearer sesame"]}), (url + "/?token=sesame", {})):
        with JsonClient(place, **options) as client:
            assert client(type="reset")["type"] == "reset_result"
    assert "sesame" not in guarded_server.log


# --- idle connections ---


def test_an_idle_connection_is_pinged_and_kept():
    with serving(BridgeSettings(port=0, ping_after_s=0.05)) as bridge, JsonClient(bridge.url) as client:
        client(type="reset")
        for _ in range(3):
            assert client.socket.recv_data(control_frame=True) == (ABNF.OPCODE_PING, b"")
        assert client(type="step", action=FULL_THROTTLE)["info"]["tick"] == 1


def test_a_connection_that_answers_pings_is_kept_and_one_that_does_not_is_closed_in_the_end():
    settings = BridgeSettings(port=0, ping_after_s=0.02, close_after_s=0.2)
    with serving(settings) as bridge, JsonClient(bridge.url) as client:
        end_s = time.monotonic() + 0.6
        while time.monotonic() < end_s:
            client.socket.recv_data_frame(control_frame=True)  # answers the ping
        assert len(bridge.connections) == 1
        wait_until(lambda: not bridge.connections)
        with pytest.raises((OSError, websocket.WebSocketException)):
            client.send_text("[" * 1000)


def test_clients_over_the_limit_are_refused(monkeypatch):
    monkeypatch.setattr("hotlap.bridge.server.MAX_CONNECTIONS", 2)
    with serving(BridgeSettings(port=0)) as bridge, JsonClient(bridge.url) as one, JsonClient(bridge.url) as two:
        assert one(type="hello") == two(type="hello")
        assert refusal(bridge.url) == 503


# --- shutdown ---


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send these signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_shuts_it_down_gracefully(tmp_path, monkeypatch, number):
    if number == signal.SIGINT:  # whose default an interpreter sets up when it starts
        monkeypatch.setattr(BridgeProcess, "popen", subprocess.Popen)
    with BridgeProcess(tmp_path / "log") as server:
        active, idle = JsonClient(server.url), JsonClient(server.url)
        active(type="reset")
        assert server.interrupt(number) == 0
        for client in (active, idle):
            opcode, data = client.socket.recv_data()
            assert opcode == ABNF.OPCODE_CLOSE
            assert struct.unpack("!H", data[:2]) == (1001,)
        assert server.log.count("\n") == 1
        with pytest.raises(OSError, match="refused"):
            server.connect()


def test_small_messages_are_sent_without_delay_and_the_port_can_be_used_again_at_once():
    with serving(BridgeSettings(port=0)) as bridge:
        client = JsonClient(bridge.url)
        client(type="hello")
        [connection] = bridge.connections
        own = connection.transport.underlying_transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    listen("127.0.0.1", int(bridge.url.rpartition(":")[2])).close()
    client.socket.shutdown()
