"""Frames: put together, answered in turn, and refused where they break the WebSocket protocol."""

import struct
from dataclasses import dataclass, field

import pytest
import websocket
from picows import WSCloseCode, WSMsgType
from websocket import ABNF

from bridge.conversation import GAS, Phone, strict_json
from hotlap.bridge.connection import MAX_FRAME_BYTES, Connection
from hotlap.bridge.protocol import MAX_REQUEST_BYTES, Frame


@pytest.fixture
def phone(bridge_server):
    with Phone(bridge_server.url) as phone:
        yield phone


def send_raw(phone: Phone, opcode: int, data: bytes, *, fin: int = 1, rsv1: int = 0, mask: int = 1) -> None:
    """A frame with every bit as asked for."""
    phone.socket.send_frame(ABNF(fin, rsv1, 0, 0, opcode, mask, data))


def close_code(phone: Phone) -> int:
    opcode, data = phone.socket.recv_data()
    assert opcode == ABNF.OPCODE_CLOSE
    return struct.unpack("!H", data[:2])[0]


def test_a_message_in_pieces_is_one_message(phone):
    pieces = [b'{"type":', b"", b'"reset","se', b'ed":3}']
    for number, piece in enumerate(pieces):
        send_raw(phone, ABNF.OPCODE_TEXT if number == 0 else ABNF.OPCODE_CONT, piece, fin=int(number == 3))
    assert strict_json(phone.socket.recv()) == phone(type="reset", seed=3)


def test_a_ping_is_answered_even_between_the_pieces(phone):
    send_raw(phone, ABNF.OPCODE_TEXT, b'{"type":', fin=0)
    send_raw(phone, ABNF.OPCODE_PING, b"are you there")
    assert phone.socket.recv_data(control_frame=True) == (ABNF.OPCODE_PONG, b"are you there")
    send_raw(phone, ABNF.OPCODE_CONT, b'"reset"}')
    assert strict_json(phone.socket.recv())["type"] == "reset_result"


@pytest.mark.parametrize("num_bytes", [MAX_REQUEST_BYTES + 1, 200_000, MAX_FRAME_BYTES])
def test_too_large_a_request_is_refused_and_the_connection_lives(phone, num_bytes):
    phone(type="reset")
    assert phone.say("x" * num_bytes) == {
        "type": "error",
        "message": f"request: at most 65536 bytes, got {num_bytes}.",
    }
    assert phone(type="step", action=GAS)["info"]["tick"] == 1


def test_too_large_a_request_in_pieces_is_refused_too(phone):
    for number in range(10):
        send_raw(phone, ABNF.OPCODE_TEXT if number == 0 else ABNF.OPCODE_CONT, b" " * 9000, fin=int(number == 9))
    assert strict_json(phone.socket.recv())["message"] == "request: at most 65536 bytes, got 90000."
    assert phone(type="reset")["type"] == "reset_result"


def test_a_request_of_the_largest_size_is_served(phone):
    text = '{"type":"reset"}'
    assert phone.say(text + " " * (MAX_REQUEST_BYTES - len(text)))["type"] == "reset_result"


@pytest.mark.parametrize("in_pieces", [False, True])
def test_a_flood_ends_the_connection(bridge_server, phone, in_pieces):
    try:
        for number in range(40 if in_pieces else 1):
            data = b" " * (50_000 if in_pieces else MAX_FRAME_BYTES + 1)
            send_raw(phone, ABNF.OPCODE_CONT if number else ABNF.OPCODE_TEXT, data, fin=int(not in_pieces))
        assert close_code(phone) == 1009
    except (OSError, websocket.WebSocketException):
        pass  # the bridge hung up while we were still sending, and its close frame was lost on the way
    with pytest.raises((OSError, websocket.WebSocketException)):
        phone(type="reset")
    with Phone(bridge_server.url) as other:
        assert other(type="reset")["type"] == "reset_result"


@pytest.mark.parametrize(
    ("opcode", "options"),
    [
        (ABNF.OPCODE_CONT, {}),
        (ABNF.OPCODE_TEXT, {"rsv1": 1}),
        (ABNF.OPCODE_TEXT, {"mask": 0}),
        (ABNF.OPCODE_PING, {"fin": 0}),
    ],
)
def test_what_breaks_the_websocket_protocol_ends_the_connection(phone, opcode, options):
    send_raw(phone, opcode, b'{"type":"reset"}', **options)
    assert close_code(phone) == 1002


def test_a_new_message_inside_another_ends_the_connection(phone):
    for _ in range(2):
        send_raw(phone, ABNF.OPCODE_TEXT, b'{"type":', fin=0)
    assert close_code(phone) == 1002


@pytest.mark.parametrize(("sent", "answered"), [(1000, 1000), (1001, 1001), (4321, 4321), (None, 1000)])
def test_a_goodbye_is_answered(phone, sent, answered):
    send_raw(phone, ABNF.OPCODE_CLOSE, b"" if sent is None else struct.pack("!H", sent))
    assert close_code(phone) == answered


def test_many_requests_at_once_are_answered_in_order(phone):
    phone(type="reset", seed=1)
    for number in range(300):
        phone.socket.send('{"type":"step","action":[0,1,0]}' if number % 3 else '{"type":"hello"}')
    replies = [strict_json(phone.socket.recv()) for _ in range(300)]
    assert [reply["type"] for reply in replies] == ["hello_result", "step_result", "step_result"] * 100
    ticks = [reply["info"]["tick"] for reply in replies if reply["type"] == "step_result"]
    assert ticks == list(range(1, 201))


# --- fairness, without sockets ---


@dataclass
class FakeFrame:
    data: bytes
    last_in_buffer: bool = True
    msg_type: WSMsgType = WSMsgType.TEXT
    fin: bool = True
    rsv1: bool = False
    rsv2: bool = False
    rsv3: bool = False

    @property
    def payload_size(self) -> int:
        return len(self.data)

    def get_payload_as_bytes(self) -> bytes:
        return self.data


@dataclass
class FakeTransport:
    """Stands for picows' transport and the one below it."""

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


class Echo:
    def answer(self, data: bytes, is_binary: bool) -> Frame:
        return Frame(data, is_binary)


@pytest.fixture
def fakes():
    """A connection, its transport and its loop."""
    loop, transport, crowd = FakeLoop(), FakeTransport(), set()
    connection = Connection(Echo(), loop, crowd)
    connection.on_ws_connected(transport)
    assert crowd == {connection}
    return connection, transport, loop


def test_a_lone_request_is_answered_at_once(fakes):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, FakeFrame(b"a"))
    assert transport.sent == [b"a"]
    assert loop.soon == []
    assert transport.is_reading


def test_many_requests_get_one_answer_a_round_and_no_more_is_read_meanwhile(fakes):
    connection, transport, loop = fakes
    for number in range(4):
        connection.on_ws_frame(transport, FakeFrame(b"%d" % number, last_in_buffer=number == 3))
    assert transport.sent == []
    for number in range(4):
        assert not transport.is_reading
        loop.run_once()
        assert transport.sent == [b"%d" % one for one in range(number + 1)]
    assert transport.is_reading
    loop.run_once()
    assert len(transport.sent) == 4


def test_a_client_that_does_not_read_is_not_read_from(fakes):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, FakeFrame(b"a", last_in_buffer=False))
    connection.on_ws_frame(transport, FakeFrame(b"b"))
    connection.pause_writing()
    connection.on_ws_frame(transport, FakeFrame(b"c"))
    loop.run_once()
    connection.ping()
    assert transport.sent == []
    assert not transport.is_reading
    connection.resume_writing()
    for _ in range(3):
        loop.run_once()
    assert transport.sent == [b"a", b"b", b"c"]
    assert transport.is_reading


def test_reading_stops_with_the_clients_own_and_goes_on_with_it(fakes):
    connection, transport, _ = fakes
    connection.pause_writing()
    assert not transport.is_reading
    connection.resume_writing()
    assert transport.is_reading


def test_after_goodbye_nothing_is_answered(fakes):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, FakeFrame(b"a", last_in_buffer=False))
    connection.say_goodbye(WSCloseCode.GOING_AWAY)
    connection.on_ws_frame(transport, FakeFrame(b"b"))
    loop.run_once()
    assert transport.sent == []


def test_whoever_is_gone_is_forgotten(fakes):
    connection, transport, loop = fakes
    connection.on_ws_frame(transport, FakeFrame(b"a", last_in_buffer=False))
    transport.is_disconnected = True
    connection.on_ws_disconnected(transport)
    loop.run_once()
    assert transport.sent == []
    assert connection._crowd == set()
