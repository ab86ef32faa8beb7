"""The registry of tracks: built-in ones, the frozen split and the user's own, loaded by id.

The user's tracks are in `tracks/` under HOTLAP_HOME, by default `~/.hotlap`. Ids are looked up and never used as paths:
an id that is not listed is refused.
"""

import fnmatch
import json
import os
import re
import unicodedata
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hotlap.atomic_files import DEVICE_FAULT, is_device_name
from hotlap.byte_limited_cache import ByteLimitedCache
from hotlap.errors import OutputFileError, TrackError, UnknownTrackError, closest, did_you_mean
from hotlap.sim.compilation import home_folder
from hotlap.sim.guide_line import add_guides
from hotlap.sim.ribbon import NODE_DTYPE, PORTAL_DTYPE, Ribbons, pack_ribbons
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.sim.speed_profile import speed_profile
from hotlap.sim.vehicle import CarParameters
from hotlap.tracks.files.centreline_file import read_file_and_road, write_centreline
from hotlap.tracks.generation.split_seeds import TEST_SEEDS, TRAIN_SEEDS
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.geometry.spline import FloatArray

# Random starts are limited to the speed of a lap with this fraction of the grip, so that every start can be driven.
START_GRIP_FRACTION = 0.6

_ID_RULE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_MAX_SUGGESTED_CHARACTERS = 48
_DATA = Path(str(files("hotlap.tracks"))) / "data"
# All tracks of the package take 37 MB.
MAX_CACHED_BYTES = 64 << 20
SPLITS = {"train": TRAIN_SEEDS, "test": TEST_SEEDS}
DEFAULT_TRACK = "track-01"
# The track of a training run on a stream of generated roads, and the seeds of the circuits on which it is evaluated.
GENERATED = "generated"
EVALUATION_SEEDS = range(50)
MAX_ATTEMPTS = 16  # seeds of a generated road; hardly one in a hundred gives none


@dataclass(frozen=True, eq=False)
class Track:
    """A track with the nodes that the simulator drives on."""

    track_id: str
    name: str
    character: str
    centreline: Centreline
    nodes: RibbonNodes
    is_shipped: bool  # part of the package, not one of the user's
    medals_s: Mapping[str, float]  # flying-lap times by medal; only built-in tracks have them
    attribution: str = ""  # whose data an imported one is, where its file says so

    @cached_property
    def start_speed_mps(self) -> FloatArray:
        """For every node a speed from which a car can still drive the lap."""
        return speed_profile(self.nodes.curvature_radpm, self.nodes.step_m, CarParameters(), START_GRIP_FRACTION)

    @cached_property
    def ribbon(self) -> Ribbons:
        """The track in the simulator's format, without the guide."""
        return pack_ribbons([self.nodes], [self.start_speed_mps])

    @cached_property
    def guided_ribbon(self) -> Ribbons:
        """The same with the guide, for those who see it: `road-2`, and rewards by its time."""
        return add_guides(self.ribbon, [self.nodes])

    @property
    def num_bytes(self) -> int:
        """Memory of the track with its start speeds and ribbons, whether they are made already or not."""
        arrays = (*vars(self.centreline).values(), *vars(self.nodes).values())
        made_later = self.nodes.num_nodes * (8 + 2 * NODE_DTYPE.itemsize + PORTAL_DTYPE.itemsize)
        return made_later + sum(getattr(array, "nbytes", 0) for array in arrays)


@dataclass(frozen=True)
class TrackEntry:
    """A track in the list, not built yet."""

    track_id: str
    name: str
    character: str
    source: str  # "built-in", "train", "test", "yours" or "generated"
    path: Path | None  # None: it is generated when it is loaded
    seed: int = 0  # of a generated one


def user_folder() -> Path:
    """The folder of the user's own tracks."""
    home = os.environ.get("HOTLAP_HOME")
    return (Path(home) if home else home_folder() / ".hotlap") / "tracks"


def check_id(track_id: str) -> str:
    """`track_id`, if a track of the user's may have it; otherwise a TrackError."""
    if not isinstance(track_id, str) or not _ID_RULE.fullmatch(track_id):
        raise TrackError(
            f"track id {track_id!r:.80}: use 1 to 64 lower-case letters, digits, '-' and '_', first a letter or digit."
        )
    if is_device_name(track_id):
        raise TrackError(f"track id {track_id!r} {DEVICE_FAULT}. Choose another.")
    if _is_ours(track_id):
        raise TrackError(f"track id {track_id!r} belongs to a track of the package. Choose another.")
    return track_id


def suggest_id(name: str) -> str:
    """The id that a name suggests: `Nürburgring GP` is nurburgring-gp. It leaves room for a number behind it."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:_MAX_SUGGESTED_CHARACTERS].strip("-_") or "track"


def list_tracks() -> list[TrackEntry]:
    """All tracks: the built-in ones, the frozen split, then the user's by id."""
    return [*_shipped().values(), *_users().values()]


def split_ids(split: str) -> list[str]:
    """The ids of the frozen split `train` or `test`."""
    if split not in SPLITS:
        raise TrackError(f"split must be one of {', '.join(SPLITS)}, got {split!r:.40}.")
    return [f"{split}-{index:03d}" for index in range(len(SPLITS[split]))]


def evaluation_ids() -> list[str]:
    """The generated roads on which runs on `generated` are evaluated. No run trains on them; they are in no list."""
    return list(_evaluated())


def one_road(track_id: str) -> str:
    """The id itself; for `generated`, which is no single road, the first road of its evaluations."""
    return evaluation_ids()[0] if track_id == GENERATED else track_id


def named_tracks(name: str) -> list[str]:
    """The ids that a name means: those of a split, those that match a pattern with `*`, or the id itself."""
    if name in SPLITS:
        return split_ids(name)
    if "*" not in name:
        return [name]
    found = fnmatch.filter((entry.track_id for entry in list_tracks()), name)
    if not found:
        raise UnknownTrackError(f"tracks {name!r:.80}: no id is like this. `hotlap tracks list` shows all.")
    return found


def load_track(track_id: str) -> Track:
    """The track with this id; the same object as long as it is in use or cached."""
    return load_tracks([track_id])[0]


def load_tracks(tracks: Sequence[str | Track]) -> tuple[Track, ...]:
    """The tracks with these ids, or given themselves; all ids are looked up before the first track is built."""
    entries = iter(find_entries(tracks))
    return tuple(track if isinstance(track, Track) else _load(next(entries)) for track in tracks)


def find_entries(tracks: Sequence[str | Track]) -> list[TrackEntry]:
    """The entries of the ids among these; UnknownTrackError for the first one that is not listed."""
    track_ids = [track for track in tracks if not isinstance(track, Track)]
    known = _shipped()
    if not all(isinstance(track_id, str) and track_id in known for track_id in track_ids):
        known = {**known, **_users(), **_evaluated()}  # the user's folder is listed once, however many ids there are
    for track_id in track_ids:
        if track_id == GENERATED:
            first, *_, last = evaluation_ids()
            raise UnknownTrackError(
                f"track {GENERATED!r} is a stream of roads, for training and evaluation. Name a road of it that is "
                f"only for evaluation, {first} to {last}, or another track."
            )
        if not isinstance(track_id, str) or track_id not in known:
            hint = did_you_mean(closest(str(track_id)[:80], known), "`hotlap tracks list` shows all.")
            raise UnknownTrackError(f"track {track_id!r:.80} is not known. {hint}")
    return [known[track_id] for track_id in track_ids]


def save_track(track_id: str, centreline: Centreline, comment: str) -> Path:
    """Save a track of the user's under `track_id`, replacing an older one; returns the file."""
    path = user_folder() / f"{check_id(track_id)}.csv"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFileError(
            f"{path}: cannot be written ({error.strerror}). Set HOTLAP_HOME to a writable folder."
        ) from None
    write_centreline(path, centreline, comment)
    return path


@lru_cache(maxsize=1)
def _about() -> Mapping[str, Any]:
    about: Mapping[str, Any] = json.loads((_DATA / "tracks.json").read_text(encoding="utf-8"))
    return about


def about_generated(track_id: str) -> Mapping[str, Any]:
    """What `tools/describe_generated.py` wrote of a track of the splits, which takes too long to build for a list."""
    about: Mapping[str, Any] = _about_generated()[track_id]
    return about


@lru_cache(maxsize=1)
def _about_generated() -> Mapping[str, Any]:
    about: Mapping[str, Any] = json.loads((_DATA / "generated.json").read_text(encoding="utf-8"))
    return about


@lru_cache(maxsize=1)
def _shipped() -> Mapping[str, TrackEntry]:
    entries = {
        track_id: TrackEntry(track_id, about["name"], about["character"], "built-in", _DATA / f"{track_id}.csv")
        for track_id, about in _about().items()
    }
    for split, seeds in SPLITS.items():
        for track_id, seed in zip(split_ids(split), seeds, strict=True):
            path = _DATA / "generated" / f"{seed:05d}.csv"
            about = _about_generated()[track_id]
            entries[track_id] = TrackEntry(track_id, about["name"], about["character"], split, path)
    return entries


@lru_cache(maxsize=1)
def _evaluated() -> Mapping[str, TrackEntry]:
    ids = {f"{GENERATED}-{seed:03d}": seed for seed in EVALUATION_SEEDS}
    return {
        track_id: TrackEntry(track_id, f"Generated circuit {seed}", "generated", GENERATED, None, seed)
        for track_id, seed in ids.items()
    }


def _is_ours(track_id: str) -> bool:
    """Whether an id is taken, so that no track of the user's can have it."""
    return track_id in _shipped() or track_id == GENERATED or track_id in _evaluated()


def _users() -> Mapping[str, TrackEntry]:
    folder = user_folder()
    # `Path.is_dir` raises an error for a folder of another user; `os.path.isdir` does not.
    paths = sorted(folder.glob("*.csv")) if os.path.isdir(folder) else []  # noqa: PTH112
    return {
        path.stem: TrackEntry(path.stem, path.stem, "your own", "yours", path)
        for path in paths
        if _ID_RULE.fullmatch(path.stem) and not _is_ours(path.stem) and path.is_file()
    }


_CACHE: ByteLimitedCache[tuple[TrackEntry, int], Track] = ByteLimitedCache(MAX_CACHED_BYTES)
# A track that the cache dropped while a fleet still drives on it must not be built a second time.
_ALIVE: weakref.WeakValueDictionary[tuple[TrackEntry, int], Track] = weakref.WeakValueDictionary()


def _load(entry: TrackEntry) -> Track:
    """Build a track or take it from the cache; the file's time is in the key, so a re-imported file is a new track."""
    key = (entry, entry.path.stat().st_mtime_ns if entry.path is not None else 0)
    track = _CACHE.get(key)
    if track is None:
        track = _ALIVE.get(key) or _build(entry)
        _ALIVE[key] = track
        _CACHE.put(key, track, track.num_bytes)
    return track


def generated_track(track_id: str, name: str, seeds: Sequence[int], max_nodes: int | None = None) -> Track:
    """The circuit of the first of these seeds that gives one which can be driven and has at most `max_nodes`."""
    from hotlap.tracks.generation.circuit_generator import generate_circuit  # slow to import

    for seed in seeds:
        try:
            centreline = generate_circuit(seed)
            nodes = build_nodes(centreline)
        except TrackError:
            continue
        if max_nodes is None or nodes.num_nodes <= max_nodes:
            return Track(track_id, name, "generated", centreline, nodes, False, {})
    raise TrackError(f"track {track_id}: the seeds from {seeds[0]} to {seeds[-1]} give no circuit. Use other ones.")


def _build(entry: TrackEntry) -> Track:
    if entry.path is None:
        step = len(EVALUATION_SEEDS)
        return generated_track(entry.track_id, entry.name, range(entry.seed, MAX_ATTEMPTS * step, step))
    file, nodes = read_file_and_road(entry.path)
    return Track(
        entry.track_id,
        entry.name,
        entry.character,
        file.centreline,
        nodes,
        entry.track_id in _shipped(),
        _about().get(entry.track_id, {}).get("medals_s", {}),
        file.attribution,
    )
