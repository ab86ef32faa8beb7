"""What a bad client does to a bridge once it is connected."""

import socket
import struct
import time

from websocket import ABNF

from bridge.conversation import Phone


def vanish(phone: Phone) -> None:
    """Drop the connection with a request under way, without a goodbye."""
    phone.socket.send('{"type":"step","action":[0,1,0]}')
    phone.socket.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    phone.socket.sock.close()


def half_a_frame(phone: Phone) -> None:
    """Begin a frame and never end it."""
    phone.socket.sock.sendall(b"\x81\xfe\x10\x00abcd" + b"x" * 100)


def half_a_handshake(phone: Phone) -> None:
    """Begin a further connection and never finish asking."""
    phone.further = socket.create_connection(phone.socket.sock.getpeername())
    phone.further.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")


def never_read(phone: Phone) -> None:
    """Ask and ask, and read nothing, until the bridge has taken no more for a while."""
    phone.socket.sock.setblocking(False)
    requests = ABNF.create_frame('{"type":"step","action":[0,1,0]}', ABNF.OPCODE_TEXT).format() * 100
    left, taken_s = requests, time.monotonic()
    while time.monotonic() < taken_s + 0.2:
        try:
            left = left[phone.socket.sock.send(left) :] or requests
            taken_s = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
