"""Connections: frames assembled, answered in order and fairly; breaches of the WebSocket protocol refused."""

import struct
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import websocket
from picows import WSCloseCode, WSMsgType
from websocket import ABNF

from bridge.json_clients import FULL_THROTTLE, JsonClient, strict_json
from hotlap.bridge.connection import MAX_FRAME_BYTES, Connection
from hotlap.bridge.protocol import MAX_REQUEST_BYTES, Frame


def send_raw(client: JsonClient, opcode: int, data: bytes, *, fin: int = 1, rsv1: int = 0, mask: int = 1) -> None:
    """Send a frame with exactly these bits."""
    client.socket.send_frame(ABNF(fin, rsv1, 0, 0, opcode, mask, data))


def close_code(client: JsonClient) -> int:
    opcode, data = client.socket.recv_data()
    assert opcode == ABNF.OPCODE_CLOSE
    return struct.unpack("!H", data[:2])[0]


def test_a_fragmented_message_is_one_message(client):
    pieces = [b'{"type":', b"", b'"reset","se', b'ed":3}']
    for number, piece in enumerate(pieces):
        send_raw(client, ABNF.OPCODE_CONT if number else ABNF.OPCODE_TEXT, piece, fin=int(number == 3))
        if number == 1:
            send_raw(client, ABNF.OPCODE_PING, b"are you there")
            assert client.socket.recv_data(control_frame=True) == (ABNF.OPCODE_PONG, b"are you there")
    assert strict_json(client.socket.recv()) == client(type="reset", seed=3)


def test_a_request_over_the_limit_is_refused_and_the_connection_stays_open(client):
    assert client.send_text('{"type":"reset"}'.ljust(MAX_REQUEST_BYTES))["type"] == "reset_result"
    for num_bytes in (MAX_REQUEST_BYTES + 1, 200_000, MAX_FRAME_BYTES):
        refused = {"type": "error", "message": f"request: at most 65536 bytes, got {num_bytes}."}
        assert client.send_text("x" * num_bytes) == refused
    for number in range(10):
        send_raw(client, ABNF.OPCODE_CONT if number else ABNF.OPCODE_TEXT, b" " * 9000, fin=int(number == 9))
    assert strict_json(client.socket.recv())["message"] == "request: at most 65536 bytes, got 90000."
    assert client(type="step", action=FULL_THROTTLE)["info"]["tick"] == 1


@pytest.mark.parametrize("is_fragmented", [False, True])
def test_a_message_over_the_frame_limit_closes_the_connection(bridge_server, client, is_fragmented):
    try:
        for number in range(40 if is_fragmented else 1):
            data = b" " * (50_000 if is_fragmented else MAX_FRAME_BYTES + 1)
            send_raw(client, ABNF.OPCODE_CONT if number else ABNF.OPCODE_TEXT, data, fin=int(not is_fragmented))
        assert close_code(client) == 1009
    except (OSError, websocket.WebSocketException):
        pass  # the bridge disconnected while we were still sending, and its close frame was lost
    with pytest.raises((OSError, websocket.WebSocketException)):
        client(type="reset")
    with JsonClient(bridge_server.url) as other:
        assert other(type="reset")["type"] == "reset_result"


@pytest.mark.parametrize(
    ("opcode", "options"),
    [
        (ABNF.OPCODE_CONT, {}),
        (ABNF.OPCODE_TEXT, {"rsv1": 1}),
        (ABNF.OPCODE_TEXT, {"mask": 0}),
        (ABNF.OPCODE_TEXT, {"fin": 0}),  # a second message inside the first
        (ABNF.OPCODE_PING, {"fin": 0}),
    ],
)
def test_a_breach_of_the_websocket_protocol_closes_the_connection(client, opcode, options):
    for _ in range(2 if opcode == ABNF.OPCODE_TEXT and "fin" in options else 1):
        send_raw(client, opcode, b'{"type":"reset"}', **options)
    assert close_code(client) == 1002


@pytest.mark.parametrize(("sent", "answered"), [(1000, 1000), (1001, 1001), (4321, 4321), (None, 1000)])
def test_a_close_frame_is_answered(client, sent, answered):
    send_raw(client, ABNF.OPCODE_CLOSE, b"" if sent is None else struct.pack("!H", sent))
    assert close_code(client) == answered


def test_many_requests_at_once_are_answered_in_order(client):
    client(type="reset", seed=1)
    for number in range(300):
        client.socket.send('{"type":"step","action":[0,1,0]}' if number % 3 else '{"type":"hello"}')
    replies = [strict_json(client.socket.recv()) for _ in range(300)]
    assert [reply["type"] for reply in replies] == ["hello_result", "step_result", "step_result"] * 100
    assert [reply["info"]["tick"] for reply in replies if "info" in reply] == list(range(1, 201))


# --- fairness, without sockets ---


def text_frame(data: bytes, last_in_buffer: bool = True) -> SimpleNamespace:
    """Stands in for picows' frame."""
    bits = {"fin": True, "rsv1": False, "rsv2": False, "rsv3": False, "last_in_buffer": last_in_buffer}
    payload = {"payload_size": len(data), "get_payload_as_bytes": lambda: data}
    return SimpleNamespace(msg_type=WSMsgType.TEXT, **bits, **payload)


@dataclass
class FakeTransport:
    """Stands in for picows' transport and its underlying transport."""

    sent: list[bytes] = field(default_factory=list)
    is_reading: bool = True
    is_disconnected: bool = False
    is_close_frame_sent: bool = False

    @property
    def underlying_transport(self) -> "FakeTransport":
        return self

    def get_extra_info(self, name: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.is_disconnected

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True

    def send(self, kind: WSMsgType, data: bytes) -> None:
        self.sent.append(data)

    def send_ping(self) -> None:
        self.sent.append(b"ping")

    def send_close(self, code: WSCloseCode, reason: str) -> None:
        self.is_close_frame_sent = True

    def disconnect(self) -> None:
        self.is_disconnected = True


class FakeLoop:
    def __init__(self) -> None:
        self.soon: list = []

    def call_soon(self, callback) -> None:
        self.soon.append(callback)

    def run_once(self) -> None:
        now, self.soon = self.soon, []
        for callback in now:
            callback()


@pytest.fixture
def fakes():
    """A connection, its transport and its loop."""
    loop, transport, connections = FakeLoop(), FakeTransport(), set()
    connection = Connection(SimpleNamespace(begin=Frame), loop, connections, None)  # a session that echoes
    connection.on_ws_connected(transport)
    assert connections == {connection}
    return connection, transport, loop


def test_one_request_is_answered_at_once_but_queued_ones_one_per_loop_turn(fakes):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, text_frame(b"a"))
    assert (transport.sent, transport.is_reading, loop.soon) == ([b"a"], True, [])
    transport.sent.clear()
    for number in range(4):
        connection.on_ws_frame(transport, text_frame(b"%d" % number, last_in_buffer=number == 3))
    assert transport.sent == []
    for number in range(4):
        assert not transport.is_reading
        loop.run_once()
        assert transport.sent == [b"%d" % one for one in range(number + 1)]
    assert transport.is_reading
    loop.run_once()
    assert len(transport.sent) == 4


def test_a_client_that_does_not_read_replies_is_not_read_from(fakes):
    connection, transport, loop = fakes
    connection.pause_writing()
    assert not transport.is_reading
    connection.resume_writing()
    assert transport.is_reading
    connection.on_ws_frame(transport, text_frame(b"a", last_in_buffer=False))
    connection.on_ws_frame(transport, text_frame(b"b"))
    connection.pause_writing()
    connection.on_ws_frame(transport, text_frame(b"c"))
    loop.run_once()
    connection.ping()
    assert (transport.sent, transport.is_reading) == ([], False)
    connection.resume_writing()
    for _ in range(3):
        loop.run_once()
    assert (transport.sent, transport.is_reading) == ([b"a", b"b", b"c"], True)


@pytest.mark.parametrize("is_disconnected", [False, True])
def test_after_a_close_frame_or_a_disconnection_nothing_is_answered(fakes, is_disconnected):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, text_frame(b"a", last_in_buffer=False))
    if is_disconnected:
        transport.is_disconnected = True
        connection.on_ws_disconnected(transport)
        assert connection._connections == set()
    else:
        connection.send_close(WSCloseCode.GOING_AWAY)
        connection.on_ws_frame(transport, text_frame(b"b"))
    loop.run_once()
    assert transport.sent == []


# --- a simulation that is built meanwhile ---


@pytest.fixture
def building(fakes):
    """A connection whose client waits for a simulation, its transport and loop, and what ends the building."""
    connection, transport, loop = fakes
    ends = []
    connection._builder = SimpleNamespace(submit=lambda building, on_done: ends.append(on_done))
    begin = connection._session.begin
    connection._session.begin = lambda data, is_binary: (
        SimpleNamespace(is_cancelled=False) if data == b"reset" else begin(data, is_binary)
    )
    connection._session.finish = lambda building: Frame(b"built")
    connection.on_ws_frame(transport, text_frame(b"reset"))
    assert (transport.sent, transport.is_reading) == ([], False)
    return connection, transport, loop, ends.pop()


def test_requests_after_a_reset_that_builds_are_answered_after_it_in_order(building):
    connection, transport, loop, end = building
    for data in (b"a", b"b"):
        connection.on_ws_frame(transport, text_frame(data))
    connection.pause_writing()
    connection.resume_writing()
    loop.run_once()
    assert (transport.sent, transport.is_reading) == ([], False)
    end()
    for _ in range(3):
        loop.run_once()
    assert (transport.sent, transport.is_reading) == ([b"built", b"a", b"b"], True)


@pytest.mark.parametrize("is_disconnected", [False, True])
def test_a_client_that_leaves_while_its_simulation_is_built_gets_no_reply(building, is_disconnected):
    connection, transport, loop, end = building
    if is_disconnected:
        transport.is_disconnected = True
        connection.on_ws_disconnected(transport)
        assert connection._building.is_cancelled
    else:
        connection.send_close(WSCloseCode.GOING_AWAY)
    end()
    loop.run_once()
    assert transport.sent == []
