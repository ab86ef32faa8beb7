"""Serves the static page and its data files. A name is looked up in a list of files and never used as a path."""

import hashlib
import mimetypes
import time
from http import HTTPStatus
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from hotlap.web.answers import ApiError
from hotlap.web.page_data import page_file
from hotlap.web.services import services_of

INDEX = "index.html"
_RELIST_AFTER_S = 1.0
# Not from the system's list, which differs from machine to machine; a module of another type is not run.
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
}


class StaticFiles:
    """The files of a folder, by their path below it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, Path] = {}
        self._listed_s = -_RELIST_AFTER_S

    def find(self, name: str) -> Path | None:
        """The file of this name; the folder is listed again at times, for a page that is being written."""
        if name not in self._names and time.monotonic() - self._listed_s >= _RELIST_AFTER_S:
            self._listed_s = time.monotonic()
            self._names = {
                path.relative_to(self._folder).as_posix(): path
                for path in self._folder.rglob("*")
                if path.is_file() and not path.is_symlink()
            }
        return self._names.get(name)


async def get_static(request: Request) -> Response:
    """A file of the page."""
    static: StaticFiles = request.app.state.static
    name = request.path_params.get("name") or INDEX
    path = static.find(name)
    if path is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"{name[:80]!r}: there is no such page.")
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return _fresh(request, path.read_bytes(), kind)


async def get_data(request: Request) -> Response:
    """A data file of the page."""
    name = request.path_params["name"]
    found = await services_of(request).compute(page_file, name)
    if found is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"{name[:80]!r}: there is no such data file.")
    return _fresh(request, *found)


def _fresh(request: Request, content: bytes, kind: str) -> Response:
    """A response that the browser asks for again each time, but gets without content if nothing changed."""
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, media_type=kind, headers=headers)
