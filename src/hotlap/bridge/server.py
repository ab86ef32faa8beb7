"""The bridge's server: listens, admits clients, pings idle ones and shuts down gracefully.

Everything runs on one thread, except that another one builds tracks.
"""

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
from hotlap.bridge.building import Builder
from hotlap.bridge.connection import MAX_FRAME_BYTES, Connection
from hotlap.bridge.protocol import DEFAULT_PORT, LOOPBACK_HOST, TOKEN_VARIABLE, printable
from hotlap.bridge.session import Session
from hotlap.errors import BridgeError
from hotlap.sim import batch_cpu, race_cpu

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 512
# picows doubles its buffer whenever one read fills it; the size of the socket's buffer limits that.
SOCKET_BUFFER_BYTES = 1 << 18
SHUTDOWN_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class BridgeSettings:
    """Address, token and idle limits of a bridge."""

    host: str = LOOPBACK_HOST
    port: int = DEFAULT_PORT  # 0: any free port
    token: str | None = None
    # A client that is busy training answers no ping for minutes. So a ping only lets the operating system notice a dead
    # peer; a live connection is closed after an hour of silence.
    ping_after_s: float = 20.0
    close_after_s: float = 3600.0

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise BridgeError(f"--port: a port is a whole number from 0 to 65535, got {self.port}.")
        check_exposure(self.host, self.token, TOKEN_VARIABLE)


class Bridge:
    """A listening server and its connections. All of it runs on the event loop that it was made on."""

    def __init__(self, settings: BridgeSettings) -> None:
        self.connections: set[Connection] = set()
        self._settings = settings
        self._rng = np.random.default_rng()
        self._loop = asyncio.get_running_loop()
        self._builder = Builder(self._loop)
        self._socket = listen(settings.host, settings.port)
        self._access = AccessRules(settings.host, self._socket.getsockname()[1], settings.token)

    @property
    def url(self) -> str:
        """The URL that clients connect to."""
        host = f"[{self._access.host}]" if ":" in self._access.host else self._access.host
        return f"ws://{host}:{self._access.port}"

    async def start(self) -> None:
        """Accept clients."""
        frames = logging.getLogger("hotlap.bridge.frames")
        frames.setLevel(logging.CRITICAL)  # picows would log every broken frame
        self._server = await ws_create_server(
            self._admit, sock=self._socket, max_frame_size=MAX_FRAME_BYTES, logger_name=frames, use_aiofastnet=False
        )
        self._sweeper = self._loop.create_task(self._sweep())

    def _admit(self, request: WSUpgradeRequest) -> WSListener | WSUpgradeResponseWithListener:
        refusal = self._access.check(
            request.path.decode("latin-1"), request.headers.getall("Origin", []), request.headers
        )
        if refusal is None and len(self.connections) >= MAX_CONNECTIONS:
            refusal = Refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"this bridge already has {MAX_CONNECTIONS} clients")
        if refusal is None:
            return Connection(Session(self._rng), self._loop, self.connections, self._builder)
        logger.info("connection refused: %s", printable(refusal.reason))
        body = refusal.reason.encode("utf-8", "replace")
        return WSUpgradeResponseWithListener(WSUpgradeResponse.create_error_response(refusal.status, body), None)

    async def _sweep(self) -> None:
        """Ping the connections that were idle since the last sweep, and close those idle for too long."""
        limit = self._settings.close_after_s / self._settings.ping_after_s
        while True:
            await asyncio.sleep(self._settings.ping_after_s)
            for connection in list(self.connections):
                if connection.num_idle_sweeps > limit:
                    connection.send_close(WSCloseCode.GOING_AWAY, "idle for too long")
                    connection.transport.disconnect(graceful=False)
                elif connection.num_idle_sweeps > 0:
                    connection.ping()
                connection.num_idle_sweeps += 1

    async def stop(self) -> None:
        """Accept no more clients, close every connection, and stop."""
        self._sweeper.cancel()
        self._server.close()
        for connection in list(self.connections):
            connection.send_close(WSCloseCode.GOING_AWAY, "the bridge is stopping")
        deadline_s = self._loop.time() + SHUTDOWN_TIMEOUT_S
        while self.connections and self._loop.time() < deadline_s:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.transport.disconnect()
        self._builder.stop()
        await asyncio.sleep(0)


def listen(host: str, port: int) -> socket.socket:
    """Open a socket on the first address of `host`."""
    # "localhost" has two addresses; port 0 would give a different port on each.
    name = LOOPBACK_HOST if host == "localhost" else host
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):
        raise BridgeError(f"--host {host}: no such address. Give one of this machine's, or leave --host out.") from None
    try:
        if os.name == "posix":  # on Windows this would share a port that is in use
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
    """Serve until SIGINT or SIGTERM; calls `on_ready` with the URL once everything is compiled."""
    loop = new_event_loop()
    try:
        loop.run_until_complete(_serve(settings, on_ready))
    finally:
        loop.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop of uvloop where it is installed, else of asyncio."""
    try:
        import uvloop
    except ImportError:  # not available on Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _serve(settings: BridgeSettings, on_ready: Callable[[str], None]) -> None:
    bridge = Bridge(settings)  # first, so that a port in use fails before anything is compiled
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
    """Compile the simulator or load it from its cache, and drive a few steps, so that no client has to wait."""
    batch_cpu.warm_up(parallel=False)
    race_cpu.warm_up()
    session = Session(np.random.default_rng())
    for request in (
        '{"type":"hello","binary":true}',
        '{"type":"reset"}',
        '{"type":"step","action":[0,1,0]}',
        '{"type":"reset","numEnvs":2}',
        '{"type":"step","action":[[0,1,0],[0,1,0]]}',
        '{"type":"reset","numEnvs":2,"race":{}}',
        '{"type":"step","action":[[0,1,0],[0,1,0]]}',
    ):
        session.answer(request.encode())
