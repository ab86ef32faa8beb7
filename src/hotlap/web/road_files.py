"""The generated tracks as lines, from which the page builds their roads itself: one small file each."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.tracks.registry import SPLITS, TrackEntry, list_tracks
from hotlap.web.page_data import describe_entry

SUFFIX = ".road"


def road_files() -> dict[str, bytes]:
    """The data files of all generated tracks by name; `docs/web-api.md` describes them."""
    roads = {
        entry.track_id: _road(entry, entry.path) for entry in list_tracks() if entry.source in SPLITS and entry.path
    }
    return {f"{track_id}{SUFFIX}": json.dumps(road, allow_nan=False).encode() for track_id, road in roads.items()}


def _road(entry: TrackEntry, path: Path) -> dict[str, Any]:
    # Second differences of whole millimetres are short numbers, and lose nothing.
    columns = np.rint(1000.0 * np.loadtxt(path, delimiter=",").T).astype(np.int64)
    steps = np.diff(columns, n=2, axis=1, prepend=np.zeros((len(columns), 2), np.int64))
    names = ("x", "y", "right", "left")
    return {**describe_entry(entry), "line": {name: row.tolist() for name, row in zip(names, steps, strict=True)}}
