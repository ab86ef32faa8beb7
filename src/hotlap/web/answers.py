"""How a route reads a request and answers it: limits on bodies, strict JSON, and errors as one line of JSON."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from hotlap.errors import (
    ArchiveError,
    ConfigError,
    DriverError,
    HotlapError,
    InputFileError,
    LeaderboardError,
    MissingLibraryError,
    ModelError,
    OutputFileError,
    ReplayError,
    TrackError,
    TrainingError,
    UnknownTrackError,
)
from hotlap.web.drawn_tracks import TakenIdError
from hotlap.web.drivers import UnknownDriverError
from hotlap.web.optimum import SolverBusyError
from hotlap.web.run_processes import RunStateError, TooManyRunsError

MAX_SMALL_BODY_BYTES = 4_096
BODY_TIMEOUT_S = 10.0
MAX_ERROR_CHARS = 400
MAX_NAME_CHARS = 32

_log = logging.getLogger(__name__)
Body = TypeVar("Body", bound=msgspec.Struct)
Route = Callable[[Request], Awaitable[Response]]

# The first that fits counts.
_STATUSES: tuple[tuple[type[HotlapError], HTTPStatus], ...] = (
    (UnknownTrackError, HTTPStatus.NOT_FOUND),
    (TakenIdError, HTTPStatus.CONFLICT),
    (MissingLibraryError, HTTPStatus.SERVICE_UNAVAILABLE),
    (TooManyRunsError, HTTPStatus.SERVICE_UNAVAILABLE),
    (SolverBusyError, HTTPStatus.SERVICE_UNAVAILABLE),
    (RunStateError, HTTPStatus.CONFLICT),
    (TrainingError, HTTPStatus.NOT_FOUND),
    (LeaderboardError, HTTPStatus.CONFLICT),
    (OutputFileError, HTTPStatus.INTERNAL_SERVER_ERROR),
    (ReplayError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (UnknownDriverError, HTTPStatus.NOT_FOUND),
    (DriverError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (InputFileError, HTTPStatus.NOT_FOUND),  # a model that was removed just now
    (ArchiveError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ModelError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ConfigError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (TrackError, HTTPStatus.UNPROCESSABLE_ENTITY),
)


class ApiError(Exception):
    """A request is refused."""

    def __init__(self, status: HTTPStatus, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.status, self.text, self.retry_after_s = status, text, retry_after_s


def answer_json(value: Any, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A JSON response."""
    headers = {"Cache-Control": "no-store"}
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def refuse(status: HTTPStatus, text: str, retry_after_s: float | None = None) -> Response:
    """A refusal, in one printable line."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:MAX_ERROR_CHARS]
    response = answer_json({"error": line}, status)
    # What is left of the request's body is not read.
    response.headers["Connection"] = "close"
    if retry_after_s is not None:
        response.headers["Retry-After"] = str(max(1, round(retry_after_s + 0.5)))
    return response


def endpoint(route: Route) -> Route:
    """A route whose errors become refusals."""

    async def answer(request: Request) -> Response:
        try:
            return await route(request)
        except ApiError as error:
            return refuse(error.status, error.text, error.retry_after_s)
        except HotlapError as error:
            return refuse(status_of(error), str(error))
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)
        except Exception:
            _log.exception("%s %.80s failed", request.method, ascii(request.url.path))
            return refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; its log says why.")

    return answer


def status_of(error: HotlapError) -> HTTPStatus:
    """The status for an error of ours; one that a request cannot cause is the server's fault."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return status
    return HTTPStatus.INTERNAL_SERVER_ERROR


def check_name(driver: str) -> str:
    """A person's name as it is shown; an ApiError where it is none."""
    name = driver.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"driver: a name has 1 to {MAX_NAME_CHARS} printable characters."
        )
    return name


async def read_json(request: Request, kind: type[Body], max_bytes: int = MAX_SMALL_BODY_BYTES) -> Body:
    """The request's body as `kind`; an ApiError where it is too large, too slow, or anything else."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send JSON, with Content-Type: application/json.")
    length = request.headers.get("content-length", "")
    if not (length.isascii() and length.isdigit()) or "transfer-encoding" in request.headers:
        raise ApiError(HTTPStatus.LENGTH_REQUIRED, "the body's length is needed: Content-Length.")
    if len(length) > 12 or int(length) > max_bytes:
        raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has at most {max_bytes} bytes here.")
    try:
        body = await asyncio.wait_for(request.body(), BODY_TIMEOUT_S)
    except asyncio.TimeoutError:
        raise ApiError(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_TIMEOUT_S:g} s.") from None
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"the body is not as it should be: {error}.") from None
    except RecursionError:
        raise ApiError(HTTPStatus.BAD_REQUEST, "the body is nested too deeply.") from None


def query_text(request: Request, name: str) -> str:
    """A parameter of the query, which must be there."""
    value = request.query_params.get(name)
    if value is None:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"the parameter {name} is missing: ?{name}=…")
    return value
