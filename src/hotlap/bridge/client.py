"""A synchronous client of the bridge: one reply per request, each with a time limit."""

from collections.abc import Callable, Iterable
from http import HTTPStatus
from types import TracebackType
from typing import TypeVar

import msgspec
import websocket
from websocket import ABNF

from hotlap.bridge.protocol import (
    DECODE_ERRORS,
    LOOPBACK_HOST,
    MAX_ERROR_CHARS,
    PROTOCOL,
    TOKEN_VARIABLE,
    BatchResetResult,
    BatchStepResult,
    CloseResult,
    ErrorResult,
    Frame,
    GetStateResult,
    Hello,
    HelloResult,
    Request,
    ResetResult,
    SetStateResult,
    StepResult,
    default_port,
    default_token,
    encode,
    printable,
)
from hotlap.errors import BridgeConnectionError, BridgeError, BridgeTimeoutError, ConfigError, UnknownTrackError
from hotlap.sim.version import PHYSICS_VERSION

CONNECT_TIMEOUT_S = 5.0
REQUEST_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 0.5

R = TypeVar("R")

read_hello = msgspec.json.Decoder(HelloResult | ErrorResult).decode
read_reset = msgspec.json.Decoder(ResetResult | ErrorResult).decode
read_batch_reset = msgspec.json.Decoder(BatchResetResult | ErrorResult).decode
read_step = msgspec.json.Decoder(StepResult | ErrorResult).decode
read_batch_step = msgspec.json.Decoder(BatchStepResult | ErrorResult).decode
read_get_state = msgspec.json.Decoder(GetStateResult | ErrorResult).decode
read_set_state = msgspec.json.Decoder(SetStateResult | ErrorResult).decode
read_close = msgspec.json.Decoder(CloseResult | ErrorResult).decode
_read_error = msgspec.json.Decoder(ErrorResult).decode


def default_url() -> str:
    """The URL of this machine's bridge, on BRIDGE_PORT or 9876."""
    return f"ws://{LOOPBACK_HOST}:{default_port()}"


class BridgeClient:
    """A connection to a bridge. After a lost connection or a timeout it stays closed: make a new client.

    The token is HOTLAP_BRIDGE_TOKEN's unless given. It goes to `url` and nowhere else, so `url` must come from the
    user, never from a file; redirects are refused. Not thread-safe.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self.url = default_url() if url is None else url
        self._place = _without_secrets(self.url)
        token = token or default_token()
        if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
            raise ConfigError(f"{TOKEN_VARIABLE}: a token has only visible ASCII characters. Choose another.")
        try:
            self._socket: websocket.WebSocket | None = websocket.create_connection(
                self.url,
                timeout=connect_timeout_s,
                header=[f"Authorization: Bearer {token}"] if token else [],
                suppress_origin=True,
                redirect_limit=0,  # a redirect would take the token to an address that the user did not give
                enable_multithread=False,
                skip_utf8_validation=True,  # the JSON decoder validates every byte anyway
            )
        except (OSError, ValueError, websocket.WebSocketException) as error:
            raise _unreachable(self._place, error) from None
        if self._socket.getstatus() != HTTPStatus.SWITCHING_PROTOCOLS:  # older versions return a redirect as a success
            self._drop()
            raise _unreachable(self._place, websocket.WebSocketException("redirect"))
        self._socket.settimeout(request_timeout_s)
        self._timeout_s = request_timeout_s

    def exchange(self, message: Frame) -> Frame:
        """Send a message and wait for its reply, which may be an error."""
        self.send(message)
        return self.receive()

    def send(self, message: Frame) -> None:
        """Send a message; `receive` its reply before the next one is sent."""
        try:
            self._open_socket().send(message.data, ABNF.OPCODE_BINARY if message.is_binary else ABNF.OPCODE_TEXT)
        except BaseException as error:
            raise self._dropped(error) from None

    def receive(self) -> Frame:
        """Wait for the reply to a message, which may be an error."""
        try:
            kind, data = self._open_socket().recv_data()
        except BaseException as error:
            raise self._dropped(error) from None
        if kind == ABNF.OPCODE_CLOSE:
            self._drop()
            code, reason = int.from_bytes(data[:2], "big"), printable(data[2:].decode("utf-8", "replace"))
            raise BridgeConnectionError(
                f"{self._place}: the bridge closed the connection (code {code}, {reason or 'no reason given'})."
            )
        return Frame(data, kind == ABNF.OPCODE_BINARY)

    def _open_socket(self) -> websocket.WebSocket:
        if self._socket is None:
            raise BridgeConnectionError(f"{self._place}: this connection is closed. Make a new client.")
        return self._socket

    def _dropped(self, error: BaseException) -> BaseException:
        """Close the connection after an error, which is returned as the one to raise.

        Where it was interrupted, the reply still to come must not be read as the reply to the next request.
        """
        self._drop()
        if isinstance(error, websocket.WebSocketTimeoutException):
            return BridgeTimeoutError(f"{self._place}: no reply within {self._timeout_s:g} s. Make a new client.")
        if isinstance(error, OSError | websocket.WebSocketException) and not isinstance(error, BridgeError):
            return BridgeConnectionError(f"{self._place}: the connection broke ({error}). Make a new client.")
        return error

    def ask(self, request: Request | bytes, read: Callable[[bytes], R | ErrorResult]) -> R:
        """Send a JSON request and decode its reply with one of this module's `read_*`; raises an error reply."""
        self.send(Frame(request if isinstance(request, bytes) else encode(request)))
        return self.receive_json(read)

    def receive_json(self, read: Callable[[bytes], R | ErrorResult]) -> R:
        """Wait for the reply to a JSON request and decode it; raises an error reply."""
        reply = self.receive()
        try:
            result = read(reply.data)
        except DECODE_ERRORS as error:
            raise BridgeError(f"{self._place}: this is not a reply of a bridge ({error}).") from None
        if isinstance(result, ErrorResult):
            raise BridgeError(f"{self._place} refused: {printable(result.message)}")
        return result

    def step_binary(self, actions: bytes) -> bytes:
        """Send a binary step (see `hotlap.bridge.binary`) and return its binary reply; raises an error reply."""
        self.send(Frame(actions, is_binary=True))
        return self.receive_binary()

    def receive_binary(self) -> bytes:
        """Wait for the reply to a binary step; raises an error reply."""
        reply = self.receive()
        if reply.is_binary:
            return reply.data
        try:
            message = _read_error(reply.data).message
        except DECODE_ERRORS as error:
            raise BridgeError(f"{self._place}: this is not a reply of a bridge ({error}).") from None
        raise BridgeError(f"{self._place} refused: {printable(message)}")

    def close(self) -> None:
        """Close the connection; closing it twice is fine."""
        if self._socket is None:
            return
        socket, self._socket = self._socket, None
        try:
            socket.close(timeout=CLOSE_TIMEOUT_S)
        except (OSError, websocket.WebSocketException):
            socket.shutdown()  # type: ignore[no-untyped-call]

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.shutdown()  # type: ignore[no-untyped-call]
            self._socket = None

    def __enter__(self) -> "BridgeClient":
        """The client itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()


def _without_secrets(url: str) -> str:
    """The URL for messages: without the token that its query may hold, and without a user's password."""
    scheme, colon, rest = url.partition("://")
    place = rest.partition("?")[0].partition("#")[0]
    host, slash, path = place.partition("/")
    return printable(f"{scheme}{colon}{host.rpartition('@')[2]}{slash}{path}") or "''"


def connect_to_racer(url: str, track_ids: Iterable[str], *, binary: bool = False) -> BridgeClient:
    """Connect to a bridge and check that it has our physics version and these tracks."""
    client = BridgeClient(url)
    url = _without_secrets(url)
    try:
        hello = client.ask(Hello(binary=binary or None), read_hello)
        if hello.protocol != PROTOCOL:
            raise BridgeError(
                f"{url}: the bridge has protocol {hello.protocol}, this client {PROTOCOL}. Update the older one."
            )
        if hello.physics != PHYSICS_VERSION:
            raise BridgeError(
                f"{url}: the bridge has physics {hello.physics}, this client {PHYSICS_VERSION}. Update the older one."
            )
        for track_id in track_ids:
            if track_id not in hello.tracks:
                raise UnknownTrackError(f"track {track_id!r:.80} is not known to the bridge at {url}.")
    except BaseException:
        client.close()
        raise
    return client


def _unreachable(url: str, error: Exception) -> BridgeConnectionError:
    if isinstance(error, websocket.WebSocketBadStatusException):
        body = printable((error.resp_body or b"").decode("utf-8", "replace").strip())[:MAX_ERROR_CHARS]
        hint = f" Set {TOKEN_VARIABLE}." if error.status_code == 401 else ""
        return BridgeConnectionError(
            f"{url}: connection refused ({error.status_code}, {body or 'no reason given'}).{hint}"
        )
    if isinstance(error, websocket.WebSocketTimeoutException | TimeoutError):
        return BridgeTimeoutError(f"{url}: no answer in time. Check that a bridge is running there.")
    if isinstance(error, websocket.WebSocketException) and "redirect" in str(error).lower():
        return BridgeConnectionError(
            f"{url}: the server redirects to another address, which is not followed. Give the bridge's own URL."
        )
    if isinstance(error, ValueError):
        return BridgeConnectionError(f"{url}: not a WebSocket address ({error}). Give one like ws://127.0.0.1:9876.")
    return BridgeConnectionError(f"{url}: no bridge there ({error}). Start one with `hotlap bridge`.")
