"""The bridge's server, on one thread: listens, lets clients in, pings the silent ones and ends gracefully."""

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import numpy as np
from picows import (
    WSCloseCode,
    WSListener,
    WSUpgradeRequest,
    WSUpgradeResponse,
    WSUpgradeResponseWithListener,
    ws_create_server,
)

from hotlap.bridge.access import AccessRules, Refusal, check_exposure
from hotlap.bridge.connection import MAX_FRAME_BYTES, Connection
from hotlap.bridge.protocol import DEFAULT_PORT, LOOPBACK_HOST
from hotlap.bridge.session import Session
from hotlap.errors import BridgeError
from hotlap.sim.batch_cpu import warm_up

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
# picows doubles its buffer whenever one read fills it: what the system holds for a client bounds that.
SOCKET_BUFFER_BYTES = 1 << 18
FAREWELL_S = 1.0


@dataclass(frozen=True)
class BridgeSettings:
    """Where the bridge listens, whom it lets in, and how long it lets a client be silent."""

    host: str = LOOPBACK_HOST
    port: int = DEFAULT_PORT  # 0: any that is free
    token: str | None = None
    # A client that is busy learning answers no ping for minutes. So a ping only lets the system find out that a peer is
    # gone; a live connection is given up after an hour without a word.
    ping_after_s: float = 20.0
    give_up_after_s: float = 3600.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise BridgeError(f"--port: a port is a whole number from 0 to 65535, got {self.port}.")
        check_exposure(self.host, self.token)


class Bridge:
    """A listening server and its connections. Everything here runs on the event loop it was made on."""

    def __init__(self, settings: BridgeSettings) -> None:
        self.connections: set[Connection] = set()
        self._settings = settings
        self._rng = np.random.default_rng()
        self._loop = asyncio.get_running_loop()
        self._socket = listen(settings.host, settings.port)
        self._gate = AccessRules(settings.host, self._socket.getsockname()[1], settings.token)

    @property
    def url(self) -> str:
        """Where clients connect."""
        host = f"[{self._gate.host}]" if ":" in self._gate.host else self._gate.host
        return f"ws://{host}:{self._gate.port}"

    async def start(self) -> None:
        """Let clients in."""
        frames = logging.getLogger("hotlap.bridge.frames")
        frames.setLevel(logging.CRITICAL)  # what broken clients send is no news, and picows reports every bit of it
        self._server = await ws_create_server(
            self._admit, sock=self._socket, max_frame_size=MAX_FRAME_BYTES, logger_name=frames, use_aiofastnet=False
        )
        self._sweeper = self._loop.create_task(self._sweep())

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        refusal = self._gate.check(
            request.path.decode("latin-1"), request.headers.getall("Origin", []), request.headers
        )
        if refusal is None and len(self.connections) >= MAX_CONNECTIONS:
            refusal = Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"this bridge has {MAX_CONNECTIONS} clients already")
        if refusal is None:
            return Connection(Session(self._rng), self._loop, self.connections)
        logger.info("not let in: %s", refusal.reason)
        body = refusal.reason.encode("utf-8", "replace")
        return WSUpgradeResponseWithListener(WSUpgradeResponse.create_error_response(refusal.status, body), None)

    async def _sweep(self) -> None:
        """Ping the connections that said nothing since the last round."""
        limit = self._settings.give_up_after_s / self._settings.ping_after_s
        while True:
            await asyncio.sleep(self._settings.ping_after_s)
            for connection in list(self.connections):
                if connection.num_quiet_sweeps > limit:
                    connection.say_goodbye(WSCloseCode.GOING_AWAY, "silent for too long")
                    connection.transport.disconnect(graceful=False)
                elif connection.num_quiet_sweeps > 0:
                    connection.ping()
                connection.num_quiet_sweeps += 1

    async def stop(self) -> None:
        """Let nobody in any more, say goodbye to everyone, and go."""
        self._sweeper.cancel()
        self._server.close()
        for connection in list(self.connections):
            connection.say_goodbye(WSCloseCode.GOING_AWAY, "the bridge is stopping")
        deadline_s = self._loop.time() + FAREWELL_S
        while self.connections and self._loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.transport.disconnect()
        await asyncio.sleep(0)


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the first address of `host`."""
    # "localhost" has two addresses, and port 0 would be another on each.
    name = LOOPBACK_HOST if host == "localhost" else host
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise BridgeError(f"--host {host}: no such address. Name one of this machine's, or none.") from None
    try:
        if os.name == "posix":  # elsewhere this would share the port with whoever has it
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            listener.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        if error.errno in (errno.EADDRINUSE, getattr(errno, "WSAEADDRINUSE", None)):
            raise BridgeError(f"port {port} of {host} is in use. Stop its server, or choose another --port.") from None
        raise BridgeError(f"port {port} of {host} cannot be used ({error.strerror}). Choose another.") from None
    return listener


def run(settings: BridgeSettings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; `on_ready` is given the URL once everything is compiled and clients may come."""
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(settings, on_ready))
    finally:
        loop.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest event loop there is here."""
    try:
        import uvloop
    except ImportError:  # there is none for Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(settings: BridgeSettings, on_ready: Callable[[str], None]) -> None:
    bridge = Bridge(settings)  # first of all: a port that is in use should not be waited for
    prepare()
    await bridge.start()
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stopping.set)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stopping.set))
    on_ready(bridge.url)
    await stopping.wait()
    await bridge.stop()


def prepare() -> None:
    """Compile the simulator, or load it, and drive a little, so that no client pays for what is done once."""
    warm_up(parallel=False)
    session = Session(np.random.default_rng())
    for request in (
        '{"type":"hello","binary":true}',
        '{"type":"reset"}',
        '{"type":"step","action":[0,1,0]}',
        '{"type":"reset","numEnvs":2}',
        '{"type":"step","action":[[0,1,0],[0,1,0]]}',
    ):
        session.answer(request.encode())
