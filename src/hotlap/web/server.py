"""The page's server: the Starlette application, and uvicorn around it."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from http import HTTPStatus

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from hotlap._version import __version__
from hotlap.bridge.access import AccessRules, RateLimit, check_exposure
from hotlap.drivers import casual, packed
from hotlap.errors import PageError
from hotlap.sim import batch_cpu
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.registry import list_tracks
from hotlap.web import api_leaderboard, api_replays, api_runs, api_tracks
from hotlap.web.answers import answer_json, endpoint, refuse
from hotlap.web.guard import Guard
from hotlap.web.leaderboard import Leaderboard, leaderboard_path
from hotlap.web.optimum import has_solver
from hotlap.web.page_data import daily_track
from hotlap.web.page_files import StaticFiles, get_data, get_static
from hotlap.web.services import PageServices
from hotlap.web.site import STATIC

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8000
TOKEN_VARIABLE = "HOTLAP_PLAY_TOKEN"  # noqa: S105 (the name of the variable, not the token)
API_VERSION = 1
NUM_PORTS_TRIED = 100
REQUESTS_PER_S, REQUEST_BURST = 400.0, 1_200
MAX_CONNECTIONS = 256
MAX_HEADER_BYTES = 32_768
REQUEST_HEAD_S = 20.0  # within which the head of a request has to arrive
KEEP_ALIVE_S = 30
STOPPING_S = 2


@dataclass(frozen=True)
class PlaySettings:
    """Address and token of the server."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT  # the next free one if it is in use; 0: any free port
    token: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise PageError(f"--port: a port is a whole number from 0 to 65535, got {self.port}.")
        check_exposure(self.host, self.token, TOKEN_VARIABLE)


def default_token() -> str | None:
    """The token in HOTLAP_PLAY_TOKEN, if it is set."""
    return os.environ.get(TOKEN_VARIABLE) or None


def make_app(services: PageServices, access: AccessRules) -> Starlette:
    """The application: every request passes the guard, then its route."""

    async def get_status(request: Request) -> Response:
        today = datetime.now(timezone.utc).date()
        features = ["board", "replays", "runs", "drawings", *(["optimal"] if has_solver() else [])]
        return answer_json(
            {
                "server": "hotlap",
                "api": API_VERSION,
                "version": __version__,
                "physics": PHYSICS_VERSION,
                "features": features,
                "daily": {"day": today.isoformat(), "track": daily_track(today)},
            }
        )

    app = Starlette(
        routes=[
            Route("/api/status", endpoint(get_status), methods=["GET"]),
            *api_tracks.ROUTES,
            *api_leaderboard.ROUTES,
            *api_replays.ROUTES,
            *api_runs.ROUTES,
            Route("/data/{name}", endpoint(get_data), methods=["GET"]),
            Route("/", endpoint(get_static), methods=["GET"]),
            Route("/{name:path}", endpoint(get_static), methods=["GET"]),
        ],
        middleware=[Middleware(Guard, access=access, rate=RateLimit(REQUESTS_PER_S, REQUEST_BURST))],
        exception_handlers={HTTPException: _refuse_http},
    )
    app.router.redirect_slashes = False
    app.state.services = services
    app.state.static = StaticFiles(STATIC)
    return app


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket on `port`, or on the next free one; port 0 takes any."""
    name = DEFAULT_HOST if host == "localhost" else host
    try:
        family = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)[0][0]
    except (OSError, UnicodeError):
        raise PageError(f"--host {host}: no such address. Give one of this machine's, or leave --host out.") from None
    last = min(port + NUM_PORTS_TRIED, 65_536)
    for number in range(port, last if port else 1):
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            if os.name == "posix":  # on Windows this would share a port that is in use
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((name, number))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES, getattr(errno, "WSAEADDRINUSE", None)):
                raise PageError(f"--host {host}: cannot listen there ({error.strerror}).") from None
        else:
            return listener
    raise PageError(f"--port {port}: no port from {port} to {last - 1} is free. Choose another --port.")


def run(settings: PlaySettings, on_ready: Callable[[str, int], None]) -> None:
    """Serve until SIGINT or SIGTERM; calls `on_ready` with URL and port once everything is compiled."""
    listener = open_socket(settings.host, settings.port)  # first: a wrong address fails before anything is compiled
    port: int = listener.getsockname()[1]
    leaderboard = Leaderboard(leaderboard_path())
    batch_cpu.warm_up(parallel=False)
    packed.warm_up()
    casual.warm_up()
    services = PageServices(leaderboard)
    services.enter_later([entry.track_id for entry in list_tracks() if entry.source == "built-in"])
    app = make_app(services, AccessRules(settings.host, port, settings.token))
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    config = uvicorn.Config(
        app,
        http=PageProtocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOPPING_S,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    server = PageUvicorn(config, services, lambda: on_ready(f"http://{shown}:{port}", port))
    try:
        asyncio.run(server.serve([listener]))
    finally:
        services.close()


class PageUvicorn(uvicorn.Server):
    """uvicorn that says when it listens, and ends a SIGINT or SIGTERM with exit code 0."""

    def __init__(self, config: uvicorn.Config, services: PageServices, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._services, self._on_ready = services, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at the first signal; the second ends the process."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def stop(number: int, frame: object) -> None:
            self.should_exit = True
            self._services.is_closing = True  # ends the event streams
            signal.signal(number, before[signal.Signals(number)])

        for number in before:
            signal.signal(number, stop)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class PageProtocol(H11Protocol):
    """uvicorn's HTTP protocol, which closes a connection that does not complete the head of a request in time.

    uvicorn itself waits for it without a limit, so that a few hundred silent connections would lock everybody out.
    """

    _watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection."""
        super().connection_made(transport)
        self._begin_watch()

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        super().data_received(data)
        if self._watch is None and self.conn.their_state is h11.IDLE:  # the beginning of a head
            self._begin_watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        if self._watch is not None:
            self._watch.cancel()
        super().connection_lost(exc)

    def _begin_watch(self) -> None:
        self._watch = self.loop.call_later(REQUEST_HEAD_S, self._end_watch)

    def _end_watch(self) -> None:
        self._watch = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


async def _refuse_http(request: Request, error: Exception) -> Response:
    """Starlette's own refusals (no such route, wrong method) in our form."""
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    return refuse(status, f"{request.method[:10]} {request.url.path[:80]}: {status.phrase.lower()}.")
