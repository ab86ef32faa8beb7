"""Drawn tracks, and track files sent by the page: checked by the rules of track import, saved among the user's own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hotlap.errors import TrackError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.files.centreline_file import read_road, write_centreline
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.registry import Track, list_tracks, save_track

MIN_POINTS, MAX_POINTS = 8, 2_000
MAX_COORDINATE_M = 10_000.0
MIN_WIDTH_M, MAX_WIDTH_M = 3.0, 40.0
MAX_OWN_TRACKS = 500

_DRAFT_ID = "drawing"
_FIRST_ROW = 2  # line of a drawing's first point, after the header
_PLACE = re.compile(r"^.*?drawing\.csv(?::(\d+))?: (.*)$", re.DOTALL)


# What the rules say of a file, said of a line that a hand has drawn.
_OF_A_FILE = (
    (
        re.compile(r"Check the order of the rows or add points to the bend\."),
        "Draw that bend wider, or delete the point.",
    ),
    (re.compile(r"Check the order of the rows\."), "Draw it with fewer crossings."),
    (
        re.compile(r"Correct or delete the point, or add points to the bend\."),
        "Draw that bend wider, or delete the point.",
    ),
    (re.compile(r" Are these metres\?"), ""),
    (re.compile(r"\b(at|near) s = (\d+) m\b"), r"\2 m after the start"),
)


class DrawingError(TrackError):
    """A drawing cannot be driven; `point` is the nearest of its points, None where the fault is of all of it."""

    def __init__(self, text: str, point: int | None = None) -> None:
        super().__init__(text)
        self.point = point


class TakenIdError(TrackError):
    """Another track of the user's has this id."""


@dataclass(frozen=True)
class DrawnRoad:
    """A drawing that can be driven, as the track that it would be saved as."""

    track: Track
    track_digest: str

    def as_plain(self) -> dict[str, Any]:
        """The figures of the API."""
        nodes = self.track.nodes
        narrowest_m = float((nodes.road_left_m + nodes.road_right_m).min())
        return {"length_m": nodes.length_m, "narrowest_m": narrowest_m, "road": self.track_digest}


def check_drawing(points: Sequence[tuple[float, float]], width_m: float) -> DrawnRoad:
    """The road along a closed line, the first point on the start line; a DrawingError if it cannot be driven."""
    if not MIN_POINTS <= len(points) <= MAX_POINTS:
        raise DrawingError(f"a drawing has {MIN_POINTS} to {MAX_POINTS} points, got {len(points)}.")
    if not MIN_WIDTH_M <= width_m <= MAX_WIDTH_M:
        raise DrawingError(f"the road's width must be from {MIN_WIDTH_M:g} to {MAX_WIDTH_M:g} m, got {width_m:g}.")
    line = np.array(points, np.float64)
    too_far = np.flatnonzero(~(np.abs(line) <= MAX_COORDINATE_M).all(axis=1))
    if too_far.size:
        raise DrawingError(f"points lie within {MAX_COORDINATE_M:g} m of the origin.", int(too_far[0]))
    half_m = np.full(len(line), 0.5 * width_m)
    with TemporaryDirectory(prefix="hotlap-") as folder:
        path = Path(folder) / "drawing.csv"
        write_centreline(path, Centreline(line[:, 0], line[:, 1], half_m, half_m))
        try:
            return _check_file(path)
        except DrawingError as error:
            raise DrawingError(_say_of_a_drawing(str(error)), error.point) from None


def _say_of_a_drawing(text: str) -> str:
    for pattern, words in _OF_A_FILE:
        text = pattern.sub(words, text)
    return text


def check_track_file(text: str) -> DrawnRoad:
    """The road of a track file's text; a DrawingError if it cannot be driven."""
    with TemporaryDirectory(prefix="hotlap-") as folder:
        path = Path(folder) / "drawing.csv"
        path.write_bytes(text.encode("utf-8", "replace"))
        return _check_file(path)


def save_drawing(track_id: str, drawn: DrawnRoad, comment: str, *, replace: bool) -> Track:
    """Save a road under an id; a TakenIdError where there is one already that may not be replaced."""
    own = own_ids()
    if track_id in own and not replace:
        raise TakenIdError(f"track id {track_id!r} is in use. Choose another, or replace it.")
    if track_id not in own:
        refuse_too_many(own)
    save_track(track_id, drawn.track.centreline, comment)
    return drawn.track


def own_ids() -> set[str]:
    """The ids of the user's tracks."""
    return {entry.track_id for entry in list_tracks() if entry.source == "yours"}


def refuse_too_many(own: set[str]) -> None:
    """A TakenIdError where the page saves no further track."""
    if len(own) >= MAX_OWN_TRACKS:
        raise TakenIdError(f"there are {len(own)} tracks of yours, as many as the page saves. Remove some files first.")


def _check_file(path: Path) -> DrawnRoad:
    try:
        imported = import_centreline(path)
        # Written and read again: the road must be the one that the saved file, rounded to millimetres, has.
        saved = path.with_name("track.csv")
        write_centreline(saved, imported)
        centreline, nodes = read_road(saved)
    except TrackError as error:
        place = _PLACE.match(str(error))
        point = int(place[1]) - _FIRST_ROW if place and place[1] else None
        raise DrawingError(place[2] if place else str(error), point) from None
    return DrawnRoad(Track(_DRAFT_ID, _DRAFT_ID, "drawn", centreline, nodes, False, {}), track_digest(nodes))
