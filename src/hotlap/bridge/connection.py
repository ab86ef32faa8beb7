"""One client's socket: puts frames together, answers them in turn, and lets the other clients have theirs."""

import asyncio
import logging
from collections import deque

from picows import WSCloseCode, WSFrame, WSListener, WSMsgType, WSTransport

from hotlap.bridge.protocol import MAX_REQUEST_BYTES, Frame, error_frame
from hotlap.bridge.session import Session, too_large

logger = logging.getLogger(__name__)

# A request over the protocol's limit is read to its end and refused; one over this closes the connection.
MAX_FRAME_BYTES = 1 << 20

# Looking a member up in its enumeration takes longer than reading a frame.
_TEXT, _BINARY, _CONTINUATION, _CLOSE = WSMsgType.TEXT, WSMsgType.BINARY, WSMsgType.CONTINUATION, WSMsgType.CLOSE
_DATA = (_TEXT, _BINARY, _CONTINUATION)


class Connection(WSListener):
    """A client, its session and what is still to be answered; it is in `crowd` while it is connected."""

    transport: WSTransport

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop, crowd: "set[Connection]") -> None:
        self._session = session
        self._loop = loop
        self._crowd = crowd
        self._waiting: deque[tuple[Frame, int]] = deque()  # messages, and the bytes they had before they were cut
        self._parts: bytearray | None = None  # of a message in several frames
        self._num_bytes = 0
        self._is_binary = False
        self._is_unread = False  # the client leaves its replies unread
        self.num_quiet_sweeps = 0

    def on_ws_connected(self, transport: WSTransport) -> None:
        """The client is in."""
        self.transport = transport
        self._crowd.add(self)
        logger.info("connected: %s", transport.underlying_transport.get_extra_info("peername"))

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """The client is gone, and its world with it."""
        self._crowd.discard(self)
        self._waiting.clear()
        logger.info("disconnected: %s", transport.underlying_transport.get_extra_info("peername"))

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """A frame came in; its memory is picows' own and is gone when this returns."""
        self.num_quiet_sweeps = 0
        kind = frame.msg_type
        if kind == _CLOSE:
            code = frame.get_close_code()
            self.leave(WSCloseCode.OK if code == WSCloseCode.NO_INFO else code)
        elif kind in _DATA and not transport.is_close_frame_sent:
            self._gather(frame, kind)

    def _gather(self, frame: WSFrame, kind: WSMsgType) -> None:
        """Put a message together; what breaks the WebSocket protocol ends the connection."""
        is_first = kind != _CONTINUATION
        if is_first != (self._parts is None) or frame.rsv1 or frame.rsv2 or frame.rsv3:
            self.leave(WSCloseCode.PROTOCOL_ERROR, "a frame out of order, or of an extension nobody asked for")
            return
        if self._parts is None:
            self._is_binary = kind == _BINARY
            self._num_bytes = frame.payload_size
            if frame.fin and self._num_bytes <= MAX_REQUEST_BYTES:  # the usual case by far
                self._take(Frame(frame.get_payload_as_bytes(), self._is_binary), frame.last_in_buffer)
                return
            self._parts = bytearray()
        else:
            self._num_bytes += frame.payload_size
        if self._num_bytes > MAX_FRAME_BYTES:
            self.leave(WSCloseCode.MESSAGE_TOO_BIG, f"a request is at most {MAX_REQUEST_BYTES} bytes")
            return
        if self._num_bytes <= MAX_REQUEST_BYTES:
            self._parts += frame.get_payload_as_bytes()
        if frame.fin:
            message, self._parts = Frame(bytes(self._parts), self._is_binary), None
            self._take(message, frame.last_in_buffer)

    def _take(self, message: Frame, is_last: bool) -> None:
        """Answer at once if this is all there is, else in turn with the other clients: one request a round."""
        if is_last and not self._waiting and not self._is_unread:
            self._answer(message, self._num_bytes)
            return
        self._waiting.append((message, self._num_bytes))
        if len(self._waiting) == 1:
            self._hold()
            self._loop.call_soon(self._answer_next)

    def _answer(self, message: Frame, num_bytes: int) -> None:
        if num_bytes > MAX_REQUEST_BYTES:
            reply = error_frame(str(too_large(num_bytes)))
        else:
            reply = self._session.answer(message.data, message.is_binary)
        self.transport.send(_BINARY if reply.is_binary else _TEXT, reply.data)

    def _answer_next(self) -> None:
        if not self._waiting or self._is_unread:
            return
        self._answer(*self._waiting.popleft())
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting:
            self._loop.call_soon(self._answer_next)
        elif not self._is_unread and not self._is_leaving():
            self.transport.underlying_transport.resume_reading()

    def _hold(self) -> None:
        if not self._is_leaving():
            self.transport.underlying_transport.pause_reading()

    def _is_leaving(self) -> bool:
        return self.transport.is_disconnected or self.transport.underlying_transport.is_closing()

    def pause_writing(self) -> None:
        """The client does not read its replies: read no more of its requests."""
        self._is_unread = True
        self._hold()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._is_unread = False
        self._go_on()

    def ping(self) -> None:
        """Make the system find out whether the peer is still there."""
        if not self._is_unread:
            self.transport.send_ping()

    def say_goodbye(self, code: WSCloseCode, reason: str = "") -> None:
        """Send the close frame, and wait for the client's."""
        self._waiting.clear()
        self.transport.send_close(code, reason)

    def leave(self, code: WSCloseCode, reason: str = "") -> None:
        """Send the close frame and hang up."""
        self.say_goodbye(code, reason)
        self.transport.disconnect()
