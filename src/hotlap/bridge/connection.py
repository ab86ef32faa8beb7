"""One client's WebSocket: assembles frames into messages and answers them in order, fairly with other clients."""

import asyncio
import logging
from collections import deque

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from hotlap.bridge.building import Builder, Building
from hotlap.bridge.protocol import MAX_REQUEST_BYTES, Frame, error_frame
from hotlap.bridge.session import Session

logger = logging.getLogger(__name__)

# A request over the protocol's limit gets an error reply; one over this limit closes the connection.
MAX_FRAME_BYTES = 1 << 20

# Bound once: looking a member up in its enumeration takes longer than reading a frame.
_TEXT, _BINARY, _CONTINUATION, _CLOSE = WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION, WSMsgType.CLOSE
_DATA = (_TEXT, _BINARY, _CONTINUATION)


class Connection(WSListener):
    """A client, its session and its unanswered messages. It is in `connections` while connected."""

    transport: WSTransport

    def __init__(
        self, session: Session, loop: asyncio.AbstractEventLoop, connections: "set[Connection]", builder: Builder
    ) -> None:
        self._session = session
        self._loop = loop
        self._builder = builder
        self._building: Building | None = None  # the simulation that the client waits for
        self._connections = connections
        self._waiting: deque[tuple[Frame, int]] = deque()  # messages and their full size in bytes
        self._parts: bytearray | None = None  # of a message that comes in several frames
        self._num_bytes = 0
        self._is_binary = False
        self._is_write_paused = False  # the client does not read its replies
        self.num_idle_sweeps = 0

    def on_ws_connected(self, transport: WSTransport) -> None:
        """Register the new client."""
        self.transport = transport
        self._connections.add(self)
        logger.info("connected: %s", transport.underlying_transport.get_extra_info("peername"))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """Forget the client and its session."""
        self._connections.discard(self)
        self._waiting.clear()
        if self._building is not None:
            self._building.is_cancelled = True
        logger.info("disconnected: %s", transport.underlying_transport.get_extra_info("peername"))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Handle a frame; its memory belongs to picows and is valid only during this call."""
        self.num_idle_sweeps = 0
        kind = frame.msg_type
        if kind == _CLOSE:
            code = frame.get_close_code()
            self.close(WSCloseCode.OK if code == WSCloseCode.NO_INFO else code)
        elif kind in _DATA and not transport.is_close_frame_sent:
            self._assemble(frame, kind)

    def _assemble(self, frame: WSFrame, kind: WSMsgType) -> None:
        """Assemble a message from its frames; a breach of the WebSocket protocol closes the connection."""
        is_first = kind != _CONTINUATION
        if is_first != (self._parts is None) or frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.close(WSCloseCode.PROTOCOL_ERROR, "a frame out of order, or of an extension that was not agreed on")
            return
        if self._parts is None:
            self._is_binary = kind == _BINARY
            self._num_bytes = frame.payload_size
            if frame.fin and self._num_bytes <= MAX_REQUEST_BYTES:  # by far the most common case
                self._receive(Frame(frame.get_payload_as_bytes(), self._is_binary), frame.last_in_buffer)
                return
            self._parts = bytearray()
        else:
            self._num_bytes += frame.payload_size
        if self._num_bytes > MAX_FRAME_BYTES:
            self.close(WSCloseCode.MESSAGE_TOO_BIG, f"a request is at most {MAX_REQUEST_BYTES} bytes")
            return
        if self._num_bytes <= MAX_REQUEST_BYTES:
            self._parts += frame.get_payload_as_bytes()
        if frame.fin:
            message, self._parts = Frame(bytes(self._parts), self._is_binary), None
            self._receive(message, frame.last_in_buffer)

    def _receive(self, message: Frame, is_last: bool) -> None:
        """Answer at once if nothing else is pending, else one request per turn of the event loop, for fairness."""
        if is_last and not self._waiting and not self._is_write_paused and self._building is None:
            self._answer(message, self._num_bytes)
            return
        self._waiting.append((message, self._num_bytes))
        if len(self._waiting) == 1:
            self._pause_reading()
            self._loop.call_soon(self._answer_next)

    def _answer(self, message: Frame, num_bytes: int) -> None:
        reply: Frame | Building
        if num_bytes > MAX_REQUEST_BYTES:
            reply = error_frame(f"request: at most {MAX_REQUEST_BYTES} bytes, got {num_bytes}.")
        else:
            reply = self._session.begin(message.data, message.is_binary)
        if isinstance(reply, Frame):
            self.transport.send(_BINARY if reply.is_binary else _TEXT, reply.data)
            return
        self._building = reply
        self._pause_reading()
        self._builder.submit(reply, self._finish_building)

    def _finish_building(self) -> None:
        """Send the reply to the reset whose simulation is built, unless the client is gone."""
        building, self._building = self._building, None
        if building is None or building.is_cancelled or self.transport.is_close_frame_sent or self._is_closing():
            return
        reply = self._session.finish(building)
        self.transport.send(_TEXT, reply.data)
        self._continue()

    def _answer_next(self) -> None:
        if not self._waiting or self._is_write_paused or self._building is not None:
            return
        self._answer(*self._waiting.popleft())
        self._continue()

    def _continue(self) -> None:
        if self._building is not None:
            return
        if self._waiting:
            self._loop.call_soon(self._answer_next)
        elif not self._is_write_paused and not self._is_closing():
            self.transport.underlying_transport.resume_reading()

    def _pause_reading(self) -> None:
        if not self._is_closing():
            self.transport.underlying_transport.pause_reading()

    def _is_closing(self) -> bool:
        return self.transport.is_disconnected or self.transport.underlying_transport.is_closing()

    def pause_writing(self) -> None:
        """The client does not read its replies: stop reading its requests."""
        self._is_write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        """The client reads its replies again."""
        self._is_write_paused = False
        self._continue()

    def ping(self) -> None:
        """Send a ping, so that the operating system notices a dead peer."""
        if not self._is_write_paused:
            self.transport.send_ping()

    def send_close(self, code: WSCloseCode, reason: str = "") -> None:
        """Send the close frame; the client answers with its own."""
        self._waiting.clear()
        self.transport.send_close(code, reason)

    def close(self, code: WSCloseCode, reason: str = "") -> None:
        """Send the close frame and disconnect."""
        self.send_close(code, reason)
        self.transport.disconnect()
