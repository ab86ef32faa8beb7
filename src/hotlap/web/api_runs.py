"""Routes of training runs."""

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from hotlap.errors import HotlapError
from hotlap.runs.recipe import find_recipe, read_recipe
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track
from hotlap.web.answers import ApiError, answer_json, endpoint, read_json
from hotlap.web.drivers import find_checkpoint, read_policy
from hotlap.web.optimum import reference_times
from hotlap.web.run_processes import DEFAULT_RECIPE, RunRequest, racer_recipes
from hotlap.web.runs import PlainCurves, RunView, new_points, read_curves, run_folders
from hotlap.web.services import PageServices, limit, services_of

MAX_STREAMS = 16
POLL_S = 1.0
KEEP_ALIVE_S = 15.0
_TRAINING = ("starting", "running")


class RunBody(msgspec.Struct, forbid_unknown_fields=True):
    """A run to start."""

    track: str
    recipe: str = DEFAULT_RECIPE
    steps: int | None = None
    seed: int | None = None
    name: str | None = None


class ResumeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A run to resume, or to extend."""

    steps: int | None = None


class EmptyBody(msgspec.Struct, forbid_unknown_fields=True):
    """Nothing."""


async def get_recipes(request: Request) -> Response:
    """The recipes."""

    def describe(name: str) -> dict[str, Any]:
        path = find_recipe(name)
        settings = read_recipe(name)
        first = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        return {"name": name, "algorithm": settings["algo"], "steps": settings["steps"], "description": first}

    return answer_json(await services_of(request).read(lambda: [describe(name) for name in racer_recipes()]))


async def get_runs(request: Request) -> Response:
    """The runs."""
    services = services_of(request)
    return answer_json([view.as_plain() for view in await services.read(services.runs.list)])


async def start_run(request: Request) -> Response:
    """Start a run."""
    services = services_of(request)
    limit(services.starting)
    body = await read_json(request, RunBody)
    asked = RunRequest(body.track, body.recipe, body.steps, body.seed, body.name)
    view = await services.read(services.runs.start, asked)
    return answer_json(await services.compute(_with_reference, services, view), HTTPStatus.CREATED)


async def get_run(request: Request) -> Response:
    """One run with its curves."""
    services = services_of(request)
    run_id = request.path_params["run_id"]
    view = await services.read(services.runs.view, run_id)
    plain = await services.compute(_with_reference, services, view)
    return answer_json({**plain, "curves": await services.read(_curves, run_id)})


async def stop_run(request: Request) -> Response:
    """Save and stop a run."""
    services = services_of(request)
    limit(services.starting)
    await read_json(request, EmptyBody)
    view = await services.read(services.runs.stop, request.path_params["run_id"])
    return answer_json(view.as_plain(), HTTPStatus.ACCEPTED)


async def resume_run(request: Request) -> Response:
    """Continue a run."""
    services = services_of(request)
    limit(services.starting)
    body = await read_json(request, ResumeBody)
    view = await services.read(services.runs.resume, request.path_params["run_id"], body.steps)
    return answer_json(view.as_plain(), HTTPStatus.ACCEPTED)


async def get_checkpoint(request: Request) -> Response:
    """The policy of a checkpoint."""

    def read(run_id: str, step: str) -> bytes:
        if not (step.isascii() and step.isdigit() and len(step) <= 15):
            raise ApiError(HTTPStatus.NOT_FOUND, f"step {step[:40]!r} is not a number.")
        return read_policy(find_checkpoint(run_id, int(step)))

    params = request.path_params
    content = await services_of(request).read(read, params["run_id"], params["step"])
    return Response(content, media_type="application/octet-stream")


async def stream_run(request: Request) -> Response:
    """A run's changes as server-sent events."""
    services = services_of(request)
    if services.num_streams >= MAX_STREAMS:
        raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_STREAMS} pages follow runs already.", 5.0)
    view = await services.read(services.runs.view, request.path_params["run_id"])
    return StreamingResponse(
        _events(services, view), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


ROUTES = [
    Route("/api/recipes", endpoint(get_recipes), methods=["GET"]),
    Route("/api/runs", endpoint(get_runs), methods=["GET"]),
    Route("/api/runs", endpoint(start_run), methods=["POST"]),
    Route("/api/runs/{run_id}", endpoint(get_run), methods=["GET"]),
    Route("/api/runs/{run_id}/events", endpoint(stream_run), methods=["GET"]),
    Route("/api/runs/{run_id}/checkpoints/{step}/policy", endpoint(get_checkpoint), methods=["GET"]),
    Route("/api/runs/{run_id}/stop", endpoint(stop_run), methods=["POST"]),
    Route("/api/runs/{run_id}/resume", endpoint(resume_run), methods=["POST"]),
]


async def _events(services: PageServices, view: RunView) -> AsyncIterator[bytes]:
    """The run with its curves, then what changes, until it no longer trains."""
    services.num_streams += 1
    try:
        curves = await services.read(_curves, view.run_id)
        plain = await services.compute(_with_reference, services, view)
        yield _event("run", {**plain, "curves": curves})
        silent_s = 0.0
        while view.state in _TRAINING and not services.is_closing:
            await asyncio.sleep(POLL_S)
            silent_s += POLL_S
            after = await services.read(services.runs.view, view.run_id)
            after_curves = await services.read(_curves, view.run_id)
            if points := new_points(curves, after_curves):
                silent_s, curves = 0.0, after_curves
                yield _event("curves", points)
            if after != view:
                silent_s, view = 0.0, after
                yield _event("run", {**plain, **view.as_plain()})
            if silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                yield b": still here\n\n"
    except HotlapError as error:  # the run's folder was removed
        yield _event("gone", {"error": " ".join(str(error).split())})
    finally:
        services.num_streams -= 1


def _event(name: str, value: Any) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))


def _curves(run_id: str) -> PlainCurves:
    folder = run_folders().get(run_id)
    return read_curves(folder) if folder else {}


def _with_reference(services: PageServices, view: RunView) -> dict[str, Any]:
    """The run with the laps that it is compared with, where they are known."""
    casual_s = optimal_s = None
    try:
        track = load_track(view.track)
        entry = services.leaderboard.find_driver("casual", track_digest(track.nodes))
        casual_s, optimal_s = entry.lap_time_s if entry else None, reference_times(view.track)[0]
    except HotlapError:  # the track was removed since
        pass
    return {**view.as_plain(), "casual_lap_time_sec": casual_s, "optimal_lap_time_sec": optimal_s}
