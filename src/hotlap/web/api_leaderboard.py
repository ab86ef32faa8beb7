"""Routes of the leaderboard and of the drivers."""

import json
from datetime import date
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import find_entries, load_track
from hotlap.web.answers import ApiError, answer_json, check_name, endpoint, query_text, read_json
from hotlap.web.api_replays import BINARY, MAX_REPLAY_BODY_BYTES
from hotlap.web.drivers import find_model_path, kind_of, list_drivers, read_policy
from hotlap.web.page_data import drivers_list, recorded_drive
from hotlap.web.replay_format import Replay
from hotlap.web.replays import verify_drive
from hotlap.web.services import PageServices, limit, services_of

OWNER_CHARS = (16, 64)


class LapBody(msgspec.Struct, forbid_unknown_fields=True):
    """A person's lap, or a driver that the server is to drive."""

    track: str
    driver: str | None = None
    replay: str | None = None
    driver_id: str | None = None
    owner: str | None = None  # a secret of the browser that sends it


class NameBody(msgspec.Struct, forbid_unknown_fields=True):
    """The new name of an owner's laps."""

    owner: str
    driver: str


async def get_leaderboard(request: Request) -> Response:
    """The laps of a track."""
    services, track_id = services_of(request), query_text(request, "track")
    day = request.query_params.get("day", "")
    if day:
        _check_day(day)
    await services.wait_until_entered(track_id)
    return answer_json(await services.compute(_entries, services, track_id, day))


async def post_lap(request: Request) -> Response:
    """Enter a lap."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, LapBody, MAX_REPLAY_BODY_BYTES)
    entry, is_new = await services.compute(_enter, services, body)
    return answer_json(entry, HTTPStatus.CREATED if is_new else HTTPStatus.OK)


async def rename(request: Request) -> Response:
    """Give one's own laps another name."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, NameBody)
    name, owner = check_name(body.driver), _check_owner(body.owner)
    return answer_json({"driver": name, "renamed": await services.read(services.leaderboard.rename, owner, name)})


async def export(request: Request) -> Response:
    """Every entry with its replay."""
    services = services_of(request)
    limit(services.computing)
    entries = await services.read(services.leaderboard.export)
    content = json.dumps({"format": "hotlap-board-1", "entries": entries}, indent=1)
    headers = {"Content-Disposition": 'attachment; filename="hotlap-board.json"'}
    return Response(content, media_type="application/json", headers=headers)


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
    Route("/api/board/name", endpoint(rename), methods=["POST"]),
    Route("/api/board/export", endpoint(export), methods=["GET"]),
    Route("/api/drivers", endpoint(get_drivers), methods=["GET"]),
    Route("/api/drivers/{driver_id}/policy", endpoint(get_policy), methods=["GET"]),
    Route("/api/drivers/{driver_id}/replay", endpoint(get_driver_replay), methods=["GET"]),
]


def _entries(services: PageServices, track_id: str, day: str) -> list[dict[str, Any]]:
    digest = track_digest(load_track(track_id).nodes)
    return [entry.as_plain() for entry in services.leaderboard.entries(track_id, digest, day)]


def _check_day(day: str) -> None:
    try:
        is_day = date.fromisoformat(day).isoformat() == day
    except ValueError:
        is_day = False
    if not is_day:
        raise ApiError(HTTPStatus.BAD_REQUEST, f"day: a day is written like 2026-01-31, got {day[:40]!r}.")


def _enter(services: PageServices, body: LapBody) -> tuple[dict[str, Any], bool]:
    find_entries([body.track])
    if body.driver_id is not None and body.driver is None and body.replay is None:
        entry, is_new = services.enter_driver(body.driver_id, body.track)
        return entry.as_plain(), is_new
    if body.driver_id is not None or body.driver is None or body.replay is None:
        raise ApiError(HTTPStatus.BAD_REQUEST, "a lap has driver and replay, or driver_id.")
    name = check_name(body.driver)
    replay = Replay.from_text(body.replay)
    lap, num_ticks = verify_drive(replay, body.track)
    owner = _check_owner(body.owner) if body.owner is not None else None
    entry, is_new = services.leaderboard.add(
        body.track, replay, lap, driver=name, kind="human", num_ticks=num_ticks, owner=owner
    )
    return entry.as_plain(), is_new


def _check_owner(owner: str) -> str:
    if not OWNER_CHARS[0] <= len(owner) <= OWNER_CHARS[1]:
        raise ApiError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"owner: a secret has {OWNER_CHARS[0]} to {OWNER_CHARS[1]} characters."
        )
    return owner


def _drivers(services: PageServices, track_id: str) -> list[dict[str, Any]]:
    track = load_track(track_id)
    known = services.leaderboard.find_driver("optimal", track_digest(track.nodes))
    shipped = drivers_list(track_id)
    has_optimal = known is not None or recorded_drive("optimal", track_id) is not None
    found = list_drivers(track_id, has_optimal=has_optimal)
    taken = {driver["id"] for driver in shipped}
    return [*shipped, *(driver for driver in found if driver["id"] not in taken)]
