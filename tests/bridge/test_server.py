"""The server as a process: how it starts, whom it lets in, what it prints, how it ends."""

import asyncio
import contextlib
import re
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator

import pytest
import websocket
from websocket import ABNF

from bridge.conversation import GAS, Phone
from bridge_process import BridgeProcess
from hotlap.bridge.server import Bridge, BridgeSettings, listen
from hotlap.errors import BridgeError

STARTS_A_PROCESS = pytest.mark.timeout(60)


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


@pytest.fixture(scope="module")
def guarded_server(bridge_server, tmp_path_factory) -> Iterator[BridgeProcess]:
    """A talkative bridge that asks for a token."""
    path = tmp_path_factory.mktemp("guarded") / "log"
    with BridgeProcess(path, "--verbose", HOTLAP_BRIDGE_TOKEN="sesame") as server:
        yield server


# --- starting ---


def test_it_says_where_it_listens_and_nothing_else(bridge_server):
    assert re.fullmatch(r"\[bridge\] listening on ws://127\.0\.0\.1:\d+\n", bridge_server.log)
    with Phone(bridge_server.url) as phone:
        phone(type="reset")
        phone(type="nonsense")
    with bridge_server.connect() as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        plain.recv(1000)
    with bridge_server.connect() as plain:
        plain.sendall(b"\x16\x03\x01\x02\x00" * 100)
    assert bridge_server.log.count("\n") == 1


def test_verbose_says_who_comes_and_what_is_refused(guarded_server):
    with Phone(f"{guarded_server.url}/?token=sesame") as phone:
        phone(type="jump")
    for words in ("connected: ('127.0.0.1'", "refused: request: Invalid value 'jump'", "disconnected:"):
        deadline_s = time.monotonic() + 5.0
        while words not in guarded_server.log and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert words in guarded_server.log


def test_a_port_in_use_is_refused(bridge_server):
    with pytest.raises(BridgeError, match=rf"port {bridge_server.port} of 127.0.0.1 is in use. .* --port"):
        listen("127.0.0.1", bridge_server.port)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "999.1.1.1", "a" * 70, "x..y"])
def test_a_host_that_is_none_is_refused(host):
    with pytest.raises(BridgeError, match="no such address"):
        listen(host, 0)


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(BridgeError, match=r"cannot be used \(.+\)\. Choose another"):
        listen("192.0.2.1", 0)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_is_none_is_refused(port):
    with pytest.raises(BridgeError, match="from 0 to 65535"):
        BridgeSettings(port=port)


def test_localhost_is_this_machine():
    with serving(BridgeSettings("localhost", 0)) as bridge, Phone(bridge.url) as phone:
        assert bridge.url.startswith("ws://localhost:")
        assert phone(type="hello")["protocol"] == 1


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_ipv6_is_spoken():
    try:
        listen("::1", 0).close()
    except BridgeError:
        pytest.skip("no IPv6 here")
    with serving(BridgeSettings("::1", 0)) as bridge, Phone(bridge.url) as phone:
        assert bridge.url.startswith("ws://[::1]:")
        assert phone(type="hello")["protocol"] == 1


def test_small_messages_are_sent_at_once():
    with serving(BridgeSettings(port=0)) as bridge, Phone(bridge.url) as phone:
        phone(type="hello")
        [connection] = bridge.connections
        own = connection.transport.underlying_transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


# --- who may come in ---


def test_a_client_that_names_the_bridge_as_its_origin_comes_in(bridge_server):
    for origin in (None, f"http://127.0.0.1:{bridge_server.port}", f"http://localhost:{bridge_server.port}"):
        with Phone(bridge_server.url, origin=origin) as phone:
            assert phone(type="hello")["protocol"] == 1
    with Phone(bridge_server.url, suppress_origin=True) as phone:
        assert phone(type="hello")["protocol"] == 1


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1:1"])
def test_pages_of_others_are_kept_out(bridge_server, origin):
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Phone(bridge_server.url, origin=origin)
    assert refused.value.status_code == 403


def test_no_extension_is_agreed_to(bridge_server):
    offer = "Sec-WebSocket-Extensions: permessage-deflate"
    with Phone(bridge_server.url, header=[offer]) as phone:
        assert "sec-websocket-extensions" not in phone.socket.getheaders()


def test_where_there_is_a_token_everyone_needs_it(guarded_server):
    url = guarded_server.url
    for refused in ({}, {"header": ["Authorization: Bearer wrong"]}):
        with pytest.raises(websocket.WebSocketBadStatusException) as caught:
            Phone(url, **refused)
        assert caught.value.status_code == 401
    for place, options in ((url, {"header": ["Authorization: Bearer sesame"]}), (url + "/?token=sesame", {})):
        with Phone(place, **options) as phone:
            assert phone(type="reset")["type"] == "reset_result"
    assert "sesame" not in guarded_server.log


# --- staying ---


def test_a_silent_connection_is_pinged_and_kept():
    with serving(BridgeSettings(port=0, ping_after_s=0.05)) as bridge, Phone(bridge.url) as phone:
        phone(type="reset")
        for _ in range(3):
            assert phone.socket.recv_data(control_frame=True) == (ABNF.OPCODE_PING, b"")
        assert phone(type="step", action=GAS)["info"]["tick"] == 1


def test_one_that_answers_no_ping_at_all_is_given_up_in_the_end():
    with serving(BridgeSettings(port=0, ping_after_s=0.02, give_up_after_s=0.2)) as bridge, Phone(bridge.url) as phone:
        phone(type="hello")
        deadline_s = time.monotonic() + 5.0
        while bridge.connections and time.monotonic() < deadline_s:
            time.sleep(0.01)
        assert not bridge.connections
        with pytest.raises((OSError, websocket.WebSocketException)):
            phone.say("[" * 1000)


def test_one_that_answers_pings_stays():
    with serving(BridgeSettings(port=0, ping_after_s=0.02, give_up_after_s=0.2)) as bridge, Phone(bridge.url) as phone:
        end_s = time.monotonic() + 0.6
        while time.monotonic() < end_s:
            phone.socket.recv_data_frame(control_frame=True)  # answers the ping
        assert len(bridge.connections) == 1


def test_too_many_clients_are_turned_away(monkeypatch):
    monkeypatch.setattr("hotlap.bridge.server.MAX_CONNECTIONS", 2)
    with serving(BridgeSettings(port=0)) as bridge, Phone(bridge.url) as one, Phone(bridge.url) as two:
        assert one(type="hello") == two(type="hello")
        with pytest.raises(websocket.WebSocketBadStatusException) as refused:
            Phone(bridge.url)
        assert refused.value.status_code == 503


# --- ending ---


@STARTS_A_PROCESS
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals to send")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_gracefully_on_a_signal(tmp_path, number):
    with BridgeProcess(tmp_path / "log") as server:
        polite, deaf = Phone(server.url), Phone(server.url)
        polite(type="reset")
        assert server.interrupt(number) == 0
        for phone in (polite, deaf):
            opcode, data = phone.socket.recv_data()
            assert opcode == ABNF.OPCODE_CLOSE
            assert struct.unpack("!H", data[:2]) == (1001,)
        assert server.log.count("\n") == 1
        with pytest.raises(OSError, match="refused"):
            server.connect()


def test_its_port_is_free_at_once_after_it_ended():
    with serving(BridgeSettings(port=0)) as bridge:
        phone = Phone(bridge.url)
        phone(type="hello")
    listen("127.0.0.1", int(bridge.url.rpartition(":")[2])).close()
    phone.socket.shutdown()
