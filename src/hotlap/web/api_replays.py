"""Routes of replays: those of the leaderboard and those that were shared, laps and races against rivals."""

import json
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotlap.errors import ReplayError
from hotlap.evaluation.race_replay import replay_document
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import SPLITS, find_entries, list_tracks, load_track
from hotlap.web.answers import ApiError, answer_json, check_name, endpoint, read_json
from hotlap.web.race_replay_format import RACE_MAGIC, RivalRace
from hotlap.web.replay_format import Replay, from_text, to_text
from hotlap.web.replays import simulate, verify
from hotlap.web.rival_races import verify_race
from hotlap.web.services import PageServices, limit, services_of
from hotlap.web.shared_replays import ID_CHARS, SharedReplay

MAX_REPLAY_BODY_BYTES = 524_288
BINARY = "application/octet-stream"


class ReplayBody(msgspec.Struct, forbid_unknown_fields=True):
    """A replay to re-simulate."""

    replay: str


class SharedBody(msgspec.Struct, forbid_unknown_fields=True):
    """A replay to re-simulate and to keep."""

    track: str
    replay: str
    driver: str | None = None


async def share_replay(request: Request) -> Response:
    """Keep a replay of a lap or a race under a short id."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, SharedBody, MAX_REPLAY_BODY_BYTES)
    shared, is_new = await services.compute(_share, services, body)
    return answer_json(shared.as_plain(), HTTPStatus.CREATED if is_new else HTTPStatus.OK)


async def get_replay(request: Request) -> Response:
    """A replay by its id, in one of its forms."""
    services, wanted = services_of(request), request.path_params["replay_id"]
    form = request.query_params.get("form")
    content = await services.read(_find, services, wanted)
    if form == "about":
        shared = await services.read(services.shared_replays.find, wanted)
        if shared is not None:
            return answer_json(shared.as_plain())
    elif form == "race" and content is not None and content.startswith(RACE_MAGIC):
        limit(services.racing)
        shared = await services.read(services.shared_replays.find, wanted)
        if shared is not None:
            return await _race_file(services, shared, content)
    elif form == "text" and content is not None:
        return Response(to_text(content), media_type="text/plain")
    elif form is None and content is not None:
        return Response(content, media_type=BINARY)
    raise ApiError(HTTPStatus.NOT_FOUND, f"replay {wanted[:40]!r} is not known.")


async def check_replay(request: Request) -> Response:
    """Re-simulate a replay."""
    services = services_of(request)
    limit(services.computing)
    body = await read_json(request, ReplayBody, MAX_REPLAY_BODY_BYTES)
    return answer_json(await services.compute(_check, services, body.replay))


ROUTES = [
    Route("/api/replays", endpoint(share_replay), methods=["POST"]),
    Route("/api/replays/check", endpoint(check_replay), methods=["POST"]),
    Route("/api/replays/{replay_id}", endpoint(get_replay), methods=["GET"]),
]


def _find(services: PageServices, wanted: str) -> bytes | None:
    """The bytes of a replay: an id of the leaderboard is a number, a shared one has ID_CHARS characters."""
    if len(wanted) == ID_CHARS:
        return services.shared_replays.content(wanted)
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < ID_CHARS
    return services.leaderboard.replay(int(wanted)) if is_number else None


def _share(services: PageServices, body: SharedBody) -> tuple[SharedReplay, bool]:
    find_entries([body.track])
    driver = check_name(body.driver) if body.driver is not None else None
    content = from_text(body.replay)
    if content.startswith(RACE_MAGIC):
        limit(services.racing)
        race = RivalRace.from_bytes(content)
        verify_race(race, body.track)
        return services.shared_replays.add(race.to_bytes(), "race", body.track, driver)
    replay = Replay.from_bytes(content)
    verify(replay, body.track)
    return services.shared_replays.add(replay.to_bytes(), "lap", body.track, driver)


async def _race_file(services: PageServices, shared: SharedReplay, content: bytes) -> Response:
    """The race with all cars' inputs, as `hotlap race --replay` writes it."""
    race = RivalRace.from_bytes(content)
    replay = await services.compute(verify_race, race, shared.track)
    headers = {"Content-Disposition": 'attachment; filename="race.json"'}
    return Response(json.dumps(replay_document(replay)), media_type="application/json", headers=headers)


def _check(services: PageServices, text: str) -> dict[str, Any]:
    content = from_text(text)
    if content.startswith(RACE_MAGIC):
        limit(services.racing)
        race = RivalRace.from_bytes(content)
        track_id = _find_track(race.track_digest)
        driven = verify_race(race, track_id)
        times = {"drivers": driven.drivers, "race_times_sec": driven.race_times_s}
        return {"ok": True, "track": track_id, "laps": race.laps, **times, "num_ticks": len(driven.actions)}
    replay = Replay.from_bytes(content)
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
