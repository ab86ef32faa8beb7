"""Bad behaviour of a connected client."""

import socket
import struct
import time

from websocket import ABNF

from bridge.json_clients import JsonClient


def drop_connection(client: JsonClient) -> None:
    """Reset the connection while a request is pending, without a close frame."""
    client.socket.send('{"type":"step","action":[0,1,0]}')
    client.socket.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.socket.sock.close()


def send_half_a_frame(client: JsonClient) -> None:
    """Begin a frame and never finish it."""
    client.socket.sock.sendall(b"\x81\xfe\x10\x00abcd" + b"x" * 100)


def send_half_a_handshake(client: JsonClient) -> None:
    """Open a second connection and never finish its handshake."""
    client.second = socket.create_connection(client.socket.sock.getpeername())
    client.second.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")


def ignore_replies(client: JsonClient) -> None:
    """Send requests without reading replies, until the bridge has stopped reading for 0.2 s."""
    client.socket.sock.setblocking(False)
    requests = ABNF.create_frame('{"type":"step","action":[0,1,0]}', ABNF.OPCODE_TEXT).format() * 100
    left, last_sent_s = requests, time.monotonic()
    while time.monotonic() < last_sent_s + 0.2:
        try:
            left = left[client.socket.sock.send(left) :] or requests
            last_sent_s = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
