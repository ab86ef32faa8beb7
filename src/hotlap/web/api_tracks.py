"""Routes of tracks, drawings and optimal laps."""

import base64
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotlap.errors import TrackError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.files.centreline_file import centreline_bytes
from hotlap.tracks.files.csv_table import MAX_FILE_BYTES
from hotlap.tracks.files.track_import import ImportedTrack
from hotlap.tracks.registry import SPLITS, find_entries, list_tracks, load_track
from hotlap.web.answers import ApiError, answer_json, endpoint, read_json
from hotlap.web.drawn_tracks import DrawingError, DrawnRoad, check_drawing, check_track_file, save_drawing
from hotlap.web.optimum import has_solver
from hotlap.web.page_data import describe_entry, describe_track, recorded_drive, track_file
from hotlap.web.services import PageServices, limit, services_of
from hotlap.web.track_files import MAX_NAME_CHARACTERS, read_dropped_file, save_dropped_file

MAX_DRAWING_BYTES = 131_072
MAX_FILE_BODY_BYTES = 4 * MAX_FILE_BYTES // 3 + 65_536  # a file in base64; one that is a little too large is told so


class DrawingBody(msgspec.Struct, forbid_unknown_fields=True):
    """A drawing."""

    points: list[tuple[float, float]]
    width_m: float


class TrackBody(msgspec.Struct, forbid_unknown_fields=True):
    """A drawing, or the text of a track file, to save."""

    id: str
    points: list[tuple[float, float]] | None = None
    width_m: float | None = None
    centreline: str | None = None
    replace: bool = False


class FileBody(msgspec.Struct, forbid_unknown_fields=True):
    """A track file to import: its name, and its bytes in base64."""

    name: Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARACTERS)]
    content: bytes


async def get_tracks(request: Request) -> Response:
    """List the tracks."""
    has_split = request.query_params.get("split") == "1"
    return answer_json(await services_of(request).compute(_list, has_split))


async def get_track(request: Request) -> Response:
    """One track."""
    return answer_json(await services_of(request).compute(_describe, request.path_params["track_id"]))


async def get_centreline(request: Request) -> Response:
    """The track's file."""

    def read(track_id: str) -> bytes:
        path = find_entries([track_id])[0].path
        return centreline_bytes(load_track(track_id).centreline) if path is None else path.read_bytes()

    track_id = request.path_params["track_id"]
    content = await services_of(request).compute(read, track_id)
    headers = {"Content-Disposition": f'attachment; filename="{track_id}.csv"'}
    return Response(content, media_type="text/csv; charset=utf-8", headers=headers)


async def check(request: Request) -> Response:
    """Whether a drawing can be driven."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, DrawingBody, MAX_DRAWING_BYTES)
    return answer_json(await services.compute(_check, body))


async def save(request: Request) -> Response:
    """Save a drawing or a track file."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, TrackBody, MAX_DRAWING_BYTES)
    track = await services.compute(_save, body)
    services.enter_later([body.id])
    return answer_json(track, HTTPStatus.CREATED)


async def save_file(request: Request) -> Response:
    """Import a track file under a new id."""
    services = services_of(request)
    limit(services.computing)
    with services.only_file():
        body = await read_json(request, FileBody, MAX_FILE_BODY_BYTES)
        imported = await services.read(read_dropped_file, body.name, body.content)
    track, is_new = await services.compute(_save_file, body.name, imported)
    if is_new:
        services.enter_later([track["id"]])
    return answer_json(track, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


async def get_optimal(request: Request) -> Response:
    """The state of a track's optimal lap."""
    services = services_of(request)
    return answer_json(await services.compute(_optimal, services, request.path_params["track_id"]))


async def solve_optimal(request: Request) -> Response:
    """Start solving a track's optimal lap."""
    services = services_of(request)
    limit(services.starting)
    if not has_solver():
        raise ApiError(
            HTTPStatus.SERVICE_UNAVAILABLE, "solving needs CasADi. Install it: pip install 'hotlap[optimal]'."
        )

    def start(track_id: str) -> dict[str, Any]:
        answer = _optimal(services, track_id)
        if answer["replay"] is None:
            services.optimum.start(load_track(track_id))
            answer = _optimal(services, track_id)
        return answer

    return answer_json(await services.compute(start, request.path_params["track_id"]), HTTPStatus.ACCEPTED)


ROUTES = [
    Route("/api/tracks", endpoint(get_tracks), methods=["GET"]),
    Route("/api/tracks", endpoint(save), methods=["POST"]),
    Route("/api/tracks/{track_id}", endpoint(get_track), methods=["GET"]),
    Route("/api/tracks/{track_id}/centreline.csv", endpoint(get_centreline), methods=["GET"]),
    Route("/api/tracks/{track_id}/optimal", endpoint(get_optimal), methods=["GET"]),
    Route("/api/tracks/{track_id}/optimal", endpoint(solve_optimal), methods=["POST"]),
    Route("/api/track-files", endpoint(save_file), methods=["POST"]),
    Route("/api/drawings/check", endpoint(check), methods=["POST"]),
]


def _list(has_split: bool) -> list[dict[str, Any]]:
    return [describe_entry(entry) for entry in list_tracks() if has_split or entry.source not in SPLITS]


def _describe(track_id: str) -> dict[str, Any]:
    return describe_track(load_track(track_id), find_entries([track_id])[0].source)


def _check(body: DrawingBody) -> dict[str, Any]:
    try:
        drawn = check_drawing(body.points, body.width_m)
    except DrawingError as error:
        return {"ok": False, "fault": {"point": error.point, "text": str(error)}}
    return {"ok": True, **drawn.as_plain(), "track": base64.b64encode(track_file(drawn.track)).decode("ascii")}


def _save(body: TrackBody) -> dict[str, Any]:
    drawn = _road_of(body)
    save_drawing(body.id, drawn, "drawn on the page", replace=body.replace)
    return _describe(body.id)


def _save_file(name: str, imported: ImportedTrack) -> tuple[dict[str, Any], bool]:
    track_id, is_new = save_dropped_file(name, imported)
    content = base64.b64encode(track_file(load_track(track_id))).decode("ascii")
    return {**_describe(track_id), "track": content}, is_new


def _road_of(body: TrackBody) -> DrawnRoad:
    if body.centreline is not None and body.points is None and body.width_m is None:
        return check_track_file(body.centreline)
    if body.centreline is None and body.points is not None and body.width_m is not None:
        return check_drawing(body.points, body.width_m)
    raise TrackError("a track to save has points and width_m, or centreline.")


def _optimal(services: PageServices, track_id: str) -> dict[str, Any]:
    track = load_track(track_id)
    known = services.leaderboard.find_driver("optimal", track_digest(track.nodes))
    has_replay = known is not None or recorded_drive("optimal", track_id) is not None
    replay = f"api/drivers/optimal/replay?track={track_id}" if has_replay else None
    return services.optimum.describe(track, replay)
