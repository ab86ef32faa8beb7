"""Roads from track files, driven without being saved among the user's tracks."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hotlap.errors import TrackError
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import try_to_build
from hotlap.tracks.geometry.road import Fault
from hotlap.tracks.registry import Track, suggest_id

_DECIMALS = 3  # as a track file is written, so that the road is the one that an import of the same file gives


@dataclass(frozen=True)
class RoadFiles:
    """Tracks with their files, and why other files of a folder were skipped."""

    tracks: list[Track]
    paths: list[Path]
    skipped: list[str]


def load_road(path: Path, name: str | None = None) -> Track:
    """The track in a file, as `hotlap tracks import` reads it, but in no list of tracks."""
    line = import_centreline(path)
    rounded = Centreline(*(np.round(column, _DECIMALS) for column in vars(line).values()))
    nodes = try_to_build(rounded)
    if isinstance(nodes, Fault):
        raise TrackError(f"{path}: {nodes.text}")
    return Track(suggest_id(path.stem), name or path.stem, "from a file", rounded, nodes, False, {})


def load_roads(paths: Sequence[Path]) -> RoadFiles:
    """The tracks in these files and folders.

    A bad file is an error; in a folder it is skipped, and a folder without any track is an error.
    """
    found = RoadFiles([], [], [])
    for path in paths:
        if not os.path.isdir(path):  # noqa: PTH112 (`Path.is_dir` raises an error for a name that is too long)
            _add(found, path)
            continue
        num_before = len(found.tracks)
        for file in _files(path):
            try:
                _add(found, file)
            except TrackError as error:
                found.skipped.append(str(error))
        if len(found.tracks) == num_before:
            why = f" ({found.skipped[-1]})" if found.skipped else ""
            raise TrackError(f"{path}: the folder holds no track{why}. Put a .csv, .osm or .geojson file into it.")
    return found


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        raise TrackError(f"{folder}: cannot be read ({error.strerror}). Check its permissions.") from None


def _add(found: RoadFiles, path: Path) -> None:
    is_taken = any(track.name == path.stem for track in found.tracks)
    found.tracks.append(load_road(path, str(path) if is_taken else None))
    found.paths.append(path)
