"""Track files that a user drops on the page: read as `hotlap tracks import` reads them, named after the file, saved."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from hotlap.errors import HotlapError, TrackError
from hotlap.tracks.files.centreline_file import centreline_bytes, import_comment, read_road, write_centreline
from hotlap.tracks.files.csv_table import to_printable
from hotlap.tracks.files.track_import import MAP_SUFFIXES, ImportedTrack, import_track
from hotlap.tracks.registry import check_id, save_track, suggest_id, user_folder
from hotlap.web.drawn_tracks import MAX_OWN_TRACKS, own_ids, refuse_too_many

MAX_NAME_CHARACTERS = 255
_MAX_SHOWN_CHARACTERS = 80


def read_dropped_file(name: str, content: bytes) -> ImportedTrack:
    """The track in a file's content; a TrackError that names the file as its user does if it is none.

    The name only says which format it is, and what to call the file.
    """
    suffix = PurePosixPath(_last_part(name)).suffix.lower()
    with TemporaryDirectory(prefix="hotlap-") as folder:
        path, saved = Path(folder) / f"file{suffix if suffix in MAP_SUFFIXES else '.csv'}", Path(folder) / "saved.csv"
        path.write_bytes(content)
        try:
            imported = import_track(path)
            # Written and read again: rounded to millimetres it must still be a road.
            write_centreline(saved, imported.centreline)
            read_road(saved)
        except HotlapError as error:
            shown = shown_name(name)
            raise TrackError(str(error).replace(str(path), shown).replace(str(saved), shown)) from None
    return imported


def save_dropped_file(name: str, imported: ImportedTrack) -> tuple[str, bool]:
    """Save a track under an id made of its file's name that no other has; returns the id, and whether it is new.

    The same file once more is the track of before.
    """
    comment = import_comment(shown_name(name), imported.attribution)
    content = centreline_bytes(imported.centreline, comment)
    for track_id in _candidates(name):
        path = user_folder() / f"{track_id}.csv"
        if not os.path.lexists(path):
            refuse_too_many(own_ids())
            save_track(track_id, imported.centreline, comment)
            return track_id, True
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return track_id, False
    raise TrackError(f"{shown_name(name)}: {MAX_OWN_TRACKS} tracks have this name already. Rename the file.")


def shown_name(name: str) -> str:
    """A file's name as messages show it."""
    text = to_printable(_last_part(name))
    return text[:_MAX_SHOWN_CHARACTERS].strip() or "the file"


def track_id_of(name: str) -> str:
    """The id that a file's name suggests: `Nürburgring GP.osm` is nurburgring-gp."""
    return suggest_id(PurePosixPath(_last_part(name)).stem)


def _candidates(name: str) -> Iterator[str]:
    """The ids to try: the one of the file's name, then numbered ones; not those that no track of a user's may have."""
    first = track_id_of(name)
    for track_id in (first, *(f"{first}-{number}" for number in range(2, MAX_OWN_TRACKS + 2))):
        try:
            yield check_id(track_id)
        except TrackError:
            continue


def _last_part(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2]
