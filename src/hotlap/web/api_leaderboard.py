"""Routes of the leaderboard, its replays and the drivers."""

import json
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotlap.errors import ReplayError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import SPLITS, find_entries, list_tracks, load_track
from hotlap.web.answers import ApiError, answer_json, endpoint, query_text, read_json
from hotlap.web.drivers import find_model_path, kind_of, list_drivers, read_policy
from hotlap.web.page_data import drivers_list, recorded_drive
from hotlap.web.replay_format import Replay
from hotlap.web.replays import simulate, verify, verify_drive
from hotlap.web.services import PageServices, limit, services_of

MAX_REPLAY_BODY_BYTES = 524_288
MAX_NAME_CHARS = 32
BINARY = "application/octet-stream"


class LapBody(msgspec.Struct, forbid_unknown_fields=True):
    """A person's lap, or a driver that the server is to drive."""

    track: str
    driver: str | None = None
    replay: str | None = None
    driver_id: str | None = None


class ReplayBody(msgspec.Struct, forbid_unknown_fields=True):
    """A replay to re-simulate."""

    replay: str


async def get_leaderboard(request: Request) -> Response:
    """The laps of a track."""
    services, track_id = services_of(request), query_text(request, "track")
    await services.wait_until_entered(track_id)
    return answer_json(await services.compute(_entries, services, track_id))


async def post_lap(request: Request) -> Response:
    """Enter a lap."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, LapBody, MAX_REPLAY_BODY_BYTES)
    entry, is_new = await services.compute(_enter, services, body)
    return answer_json(entry, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


async def export(request: Request) -> Response:
    """Every entry with its replay."""
    services = services_of(request)
    limit(services.computing)
    entries = await services.read(services.leaderboard.export)
    content = json.dumps({"format": "hotlap-board-1", "entries": entries}, indent=1)
    headers = {"Content-Disposition": 'attachment; filename="hotlap-board.json"'}
    return Response(content, media_type="application/json", headers=headers)


async def get_replay(request: Request) -> Response:
    """The replay of an entry."""
    services = services_of(request)
    number = request.path_params["entry_id"]
    found = number.isascii() and number.isdigit() and len(number) <= 15
    content = await services.read(services.leaderboard.replay, int(number)) if found else None
    if content is None:
        raise ApiError(HTTPStatus.NOT_FOUND, f"replay {number[:40]!r} is not known.")
    if request.query_params.get("form") == "text":
        return Response(Replay.from_bytes(content).to_text(), media_type="text/plain")
    return Response(content, media_type=BINARY)


async def check_replay(request: Request) -> Response:
    """Re-simulate a replay."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, ReplayBody, MAX_REPLAY_BODY_BYTES)
    return answer_json(await services.compute(_check, body.replay))


async def get_drivers(request: Request) -> Response:
    """The drivers for a track."""
    services = services_of(request)
    track_id = request.query_params.get("track", "track-01")
    return answer_json(await services.compute(_drivers, services, track_id))


async def get_policy(request: Request) -> Response:
    """The policy of a driver."""

    def read(driver_id: str, track_id: str | None) -> bytes:
        if track_id is not None:
            find_entries([track_id])
        return read_policy(find_model_path(driver_id, track_id))

    driver_id, track_id = request.path_params["driver_id"], request.query_params.get("track")
    return Response(await services_of(request).compute(read, driver_id, track_id), media_type=BINARY)


async def get_driver_replay(request: Request) -> Response:
    """The laps of the casual or the optimal driver."""
    services = services_of(request)
    driver_id, track_id = request.path_params["driver_id"], query_text(request, "track")
    if kind_of(driver_id) not in ("casual", "optimal"):
        raise ApiError(HTTPStatus.NOT_FOUND, f"driver {driver_id[:80]!r} drives by its policy, not by a replay.")
    return Response(await services.compute(services.driver_replay, driver_id, track_id), media_type=BINARY)


ROUTES = [
    Route("/api/board", endpoint(get_leaderboard), methods=["GET"]),
    Route("/api/board", endpoint(post_lap), methods=["POST"]),
    Route("/api/board/export", endpoint(export), methods=["GET"]),
    Route("/api/replays/check", endpoint(check_replay), methods=["POST"]),
    Route("/api/replays/{entry_id}", endpoint(get_replay), methods=["GET"]),
    Route("/api/drivers", endpoint(get_drivers), methods=["GET"]),
    Route("/api/drivers/{driver_id}/policy", endpoint(get_policy), methods=["GET"]),
    Route("/api/drivers/{driver_id}/replay", endpoint(get_driver_replay), methods=["GET"]),
]


def _entries(services: PageServices, track_id: str) -> list[dict[str, Any]]:
    digest = track_digest(load_track(track_id).nodes)
    return [entry.as_plain() for entry in services.leaderboard.entries(track_id, digest)]


def _enter(services: PageServices, body: LapBody) -> tuple[dict[str, Any], bool]:
    find_entries([body.track])
    if body.driver_id is not None and body.driver is None and body.replay is None:
        entry, is_new = services.enter_driver(body.driver_id, body.track)
        return entry.as_plain(), is_new
    if body.driver_id is not None or body.driver is None or body.replay is None:
        raise ApiError(HTTPStatus.BAD_REQUEST, "a lap has driver and replay, or driver_id.")
    name = body.driver.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"driver: a name has 1 to {MAX_NAME_CHARS} printable characters."
        )
    replay = Replay.from_text(body.replay)
    lap, num_ticks = verify_drive(replay, body.track)
    entry, is_new = services.leaderboard.add(body.track, replay, lap, driver=name, kind="human", num_ticks=num_ticks)
    return entry.as_plain(), is_new


def _check(text: str) -> dict[str, Any]:
    replay = Replay.from_text(text)
    track_id = _find_track(replay.track_digest)
    laps = simulate(replay, track_id)
    claimed = verify(replay, track_id)
    return {
        "ok": True,
        "track": track_id,
        "lap_time_sec": claimed.time_s,
        "lap": claimed.number,
        "clean": claimed.is_clean,
        "laps": [{"lap": lap.number, "lap_time_sec": lap.time_s, "clean": lap.is_clean} for lap in laps],
        "num_ticks": replay.num_ticks,
    }


def _find_track(digest: str) -> str:
    """The id of a track with this road: a built-in one or one of the user's."""
    for entry in list_tracks():
        if entry.source in SPLITS:
            continue
        try:
            if track_digest(load_track(entry.track_id).nodes) == digest:
                return entry.track_id
        except (OSError, ValueError):  # a damaged file of the user's
            continue
    raise ReplayError(f"replay: it was driven on road {digest}, which no track here has.")


def _drivers(services: PageServices, track_id: str) -> list[dict[str, Any]]:
    track = load_track(track_id)
    known = services.leaderboard.find_driver("optimal", track_digest(track.nodes))
    shipped = drivers_list(track_id)
    has_optimal = known is not None or recorded_drive("optimal", track_id) is not None
    found = list_drivers(track_id, has_optimal=has_optimal)
    taken = {driver["id"] for driver in shipped}
    return [*shipped, *(driver for driver in found if driver["id"] not in taken)]
