"""The page's data files: tracks, lists, recorded drivers and a recorded training run, by name.

`hotlap site` writes them to `data/`; the server answers `GET /data/NAME` with the same bytes. Names come from the
network: ids in them are looked up, never used as paths.
"""

import json
import struct
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.errors import HotlapError
from hotlap.models.model_file import read_model
from hotlap.models.shipped_models import CHAMPION, GENERALIST, champion_tracks, find_shipped, shipped_path
from hotlap.optimal.reference import Reference, find_reference
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.geometry.corners import find_corners, name_corners
from hotlap.tracks.registry import (
    SPLITS,
    Track,
    TrackEntry,
    about_generated,
    evaluation_ids,
    list_tracks,
    load_track,
    split_ids,
)
from hotlap.web.policy_file import policy_bytes

TRACK_MAGIC = b"HLT1"
_HEAD = struct.Struct("<4sI")
RECORDED = Path(str(files("hotlap.web"))) / "recorded"
RECORDED_DRIVERS = {"optimal": "Optimal driver", "casual": "Casual driver"}
RUN_FILE = "recorded-run.json"

MEDAL_FACTORS = {"gold": 1.05, "silver": 1.15, "bronze": 1.35}
DAY_ONE = date(2026, 1, 1)
DAILY_STRIDE = 47  # has no factor in common with 125

BINARY, JSON = "application/octet-stream", "application/json"


def page_file(name: str) -> tuple[bytes, str] | None:
    """Content and media type of `data/NAME`; None if there is no such file."""
    if name == "tracks.json":
        return _json(tracks_list())
    if name in _recorded_names():
        return (RECORDED / name).read_bytes(), JSON if name.endswith(".json") else BINARY
    if name in _policy_names():
        return _shipped_policy(name), BINARY
    track_id, _, kind = name.partition(".")
    if kind not in {"track", "drivers.json"} or not _has_track(track_id):
        return None
    try:
        track = load_track(track_id)
    except HotlapError:  # a file of the user's that cannot be driven
        return None
    return (track_file(track), BINARY) if kind == "track" else _json(drivers_list(track_id))


def file_names(generated: Sequence[str] = ()) -> Iterator[str]:
    """The names of all data files of the built-in tracks, and of generated ones by their ids, in a fixed order."""
    yield "tracks.json"
    for track_id in (*(entry.track_id for entry in _built_in()), *generated):
        yield f"{track_id}.track"
        yield f"{track_id}.drivers.json"
    yield from _policy_names()
    yield from sorted(_recorded_names())


def _has_track(track_id: str) -> bool:
    """Whether a track is listed, or one of those on which runs on generated roads are evaluated."""
    return track_id in evaluation_ids() or any(entry.track_id == track_id for entry in list_tracks())


def tracks_list(generated: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The built-in tracks and some generated ones, as `GET /api/tracks` describes them."""
    entries = [*_built_in(), *(entry for entry in list_tracks() if entry.track_id in set(generated))]
    return [describe_entry(entry) for entry in entries]


def describe_entry(entry: TrackEntry) -> dict[str, Any]:
    """An entry of the registry; tracks of the split, which take too long to build, as their list has them."""
    plain = {"id": entry.track_id, "name": entry.name, "character": entry.character, "source": entry.source}
    figures = ("length_m", "road", "medals_sec", "optimal_lap_time_sec", "optimal_standing_lap_time_sec", "attribution")
    without = {**plain, **dict.fromkeys(figures)}
    if entry.source in SPLITS:
        about = about_generated(entry.track_id)
        return {
            **without,
            **{name: about[name] for name in ("length_m", "road", "shape")},
            "medals_sec": _medals(about["optimal_lap_time_s"]),
            "optimal_lap_time_sec": about["optimal_lap_time_s"],
            "optimal_standing_lap_time_sec": about["optimal_standing_lap_time_s"],
        }
    try:
        return describe_track(load_track(entry.track_id), entry.source)
    except (HotlapError, OSError) as error:  # a file of the user's that is damaged, or was removed just now
        return {**without, "error": " ".join(str(error).split())[:400]}


def describe_track(track: Track, source: str) -> dict[str, Any]:
    """A track in the list of tracks."""
    reference = find_reference(track)
    return {
        "id": track.track_id,
        "name": track.name,
        "character": track.character,
        "source": source,
        "length_m": round(track.nodes.length_m, 3),
        "road": track_digest(track.nodes),
        "medals_sec": dict(track.medals_s) or _medals(reference.lap_time_s if reference else None),
        "optimal_lap_time_sec": reference.lap_time_s if reference else None,
        "optimal_standing_lap_time_sec": reference.standing_lap_time_s if reference else None,
        "attribution": track.attribution or None,
    }


def _medals(optimal_s: float | None) -> dict[str, float] | None:
    """Medal times for a road whose optimum is known, as much slower than it as those of the built-in tracks."""
    return {name: round(factor * optimal_s, 1) for name, factor in MEDAL_FACTORS.items()} if optimal_s else None


def daily_track(day: date) -> str:
    """The track of the day, the same for everybody: the splits' tracks by turns, none again within 125 days."""
    ids = [track_id for split in SPLITS for track_id in split_ids(split)]
    return ids[(day - DAY_ONE).days * DAILY_STRIDE % len(ids)]


def drivers_list(track_id: str) -> list[dict[str, Any]]:
    """The drivers that ship for a track, as `GET /api/drivers` describes them."""
    found: list[dict[str, Any]] = []
    for driver, name in RECORDED_DRIVERS.items():
        if recorded_drive(driver, track_id) is not None:
            replay = f"data/{_replay_name(driver, track_id)}"
            found.append(_driver(driver, name, driver, None, replay=replay))
    run = recorded_run()
    if run and run["track"] == track_id:
        best = run["best"]
        entry = _driver("recorded", "AI of the recorded run", "model", track_id, policy=best["policy"])
        found.insert(0, {**entry, "step": best["step"]})
    models = [
        _driver(kind, kind.capitalize(), kind, track_id if kind == CHAMPION else None, policy=f"data/{name}")
        for name, (kind, track) in _policy_names().items()
        if track in (track_id, None)
    ]
    return models + found


@lru_cache(maxsize=1)
def _policy_names() -> dict[str, tuple[str, str | None]]:
    """The data files of the shipped models: kind and track of each; the generalist has no track of its own."""
    found: dict[str, tuple[str, str | None]] = {
        f"{track}.{CHAMPION}.policy": (CHAMPION, track) for track in champion_tracks()
    }
    return found | ({f"{GENERALIST}.policy": (GENERALIST, None)} if shipped_path(GENERALIST, "") else {})


@lru_cache(maxsize=8)
def _shipped_policy(name: str) -> bytes:
    kind, track = _policy_names()[name]
    return policy_bytes(read_model(find_shipped(kind, track or "")))


def recorded_drive(driver: str, track_id: str) -> bytes | None:
    """The replay of a driver's laps that ships for a track, or None."""
    name = _replay_name(driver, track_id)
    return (RECORDED / name).read_bytes() if name in _recorded_names() else None


def recorded_run() -> dict[str, Any] | None:
    """The training run that ships, as `GET /api/runs/ID` describes one; its policies are data files."""
    if RUN_FILE not in _recorded_names():
        return None
    run: dict[str, Any] = json.loads((RECORDED / RUN_FILE).read_text(encoding="utf-8"))
    return run


def track_file(track: Track) -> bytes:
    """All that the page needs to drive on a track and to draw it: `docs/web-api.md` describes the format."""
    heads, nodes, portals = track.guided_ribbon
    reference = find_reference(track)
    line = _line(reference)
    corners = find_corners(track.nodes)
    header = {
        **describe_track(track, "built-in" if track.is_shipped else "yours"),
        "physics": PHYSICS_VERSION,
        "num_nodes": len(nodes),
        "num_portals": len(portals),
        "num_line_points": line.shape[1],
        "corners": [
            {"arc_m": round(corner.apex * track.nodes.step_m, 1), "name": name}
            for corner, name in zip(corners, name_corners(track.nodes, corners), strict=True)
        ],
    }
    text = json.dumps(header, allow_nan=False).encode()
    text += b" " * (-len(text) % 4)
    return b"".join(
        [_HEAD.pack(TRACK_MAGIC, len(text)), text, *(part.tobytes() for part in (heads, nodes, portals, line))]
    )


def _line(reference: Reference | None) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """The optimal line, (3, num_points): x, y (m) and speed (m/s)."""
    if reference is None:
        return np.zeros((3, 0), "<f4")
    line = reference.raceline
    return np.stack([line.x_m, line.y_m, line.vx_mps]).astype("<f4")


def _driver(
    driver_id: str, name: str, kind: str, track: str | None, *, policy: str | None = None, replay: str | None = None
) -> dict[str, Any]:
    return {
        "id": driver_id, "name": name, "kind": kind, "track": track, "step": None, "policy": policy, "replay": replay,
    }  # fmt: skip


def _json(value: Any) -> tuple[bytes, str]:
    return json.dumps(value, allow_nan=False).encode(), JSON


def _replay_name(driver: str, track_id: str) -> str:
    return f"{track_id}.{driver}.replay"


def _built_in() -> list[TrackEntry]:
    return [entry for entry in list_tracks() if entry.source not in {*SPLITS, "yours"}]


@lru_cache(maxsize=1)
def _recorded_names() -> frozenset[str]:
    return frozenset(path.name for path in RECORDED.iterdir()) if RECORDED.is_dir() else frozenset()
