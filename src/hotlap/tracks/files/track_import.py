"""Import a track: check the file, move it near the origin, narrow too tight bends, resample it smoothly."""

import logging
import math
from dataclasses import dataclass
from pathlib import Path

from hotlap.errors import TrackError
from hotlap.tracks.files.centreline_file import CentrelineFile, read_centreline_file
from hotlap.tracks.files.csv_table import read_text, to_printable
from hotlap.tracks.files.geojson_file import read_geojson
from hotlap.tracks.files.map_ways import DEFAULT_WIDTH_M, join_loop
from hotlap.tracks.files.osm_file import read_osm
from hotlap.tracks.geometry.bend_narrowing import Narrowing, find_narrowings, narrow_tight_bends
from hotlap.tracks.geometry.centreline import (
    Centreline,
    length_m,
    nearest_point,
    recentre,
    resample,
    reverse,
    rotate_start,
    with_width,
)
from hotlap.tracks.geometry.node_builder import DEFAULT_SPACING_M, try_to_build
from hotlap.tracks.geometry.road import Fault, Road, find_length_fault, trace

IMPORT_SPACING_M = 4.0
MAP_SUFFIXES = (".osm", ".geojson", ".json")

_MAX_PLACES = 6  # named in the warning
_MAX_NAME_CHARACTERS = 60

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ImportedTrack:
    """A centreline that can be driven, and whose data it is, where the file's format says so."""

    centreline: Centreline
    attribution: str


def read_track_file(path: Path, width_m: float | None = None) -> CentrelineFile:
    """The points of a file: a CSV table, or a map in OpenStreetMap's XML or GeoJSON, by the end of its name.

    With `width_m`, the width that it will get, a map need not have one.
    """
    kind = path.suffix.lower()
    if kind not in MAP_SUFFIXES:
        return read_centreline_file(path)
    text = read_text(path)
    found = read_osm(path, text) if kind == ".osm" else read_geojson(path, text)
    loop = join_loop(path, found)
    names = to_printable(", ".join(name[:_MAX_NAME_CHARACTERS] for name in loop.names[:_MAX_PLACES])) + (
        " and more" if len(loop.names) > _MAX_PLACES else ""
    )
    if width_m is None and not loop.has_widths:
        text = "%s: the map gives no width for %s: the road is %g m wide (--width of `hotlap tracks import`)."
        _log.warning(text, path.name, names, DEFAULT_WIDTH_M)
    return CentrelineFile(path, loop.centreline, None, f"{to_printable(found.attribution)} ({names})".strip())


def import_centreline(
    path: Path, *, reverse_travel: bool = False, width_m: float | None = None, start_m: float = 0.0
) -> Centreline:
    """The centreline of `import_track`."""
    return import_track(path, reverse_travel=reverse_travel, width_m=width_m, start_m=start_m).centreline


def import_track(
    path: Path, *, reverse_travel: bool = False, width_m: float | None = None, start_m: float = 0.0
) -> ImportedTrack:
    """The track in `path`, optionally reversed, with a constant width, and with its start line moved forward.

    Where the inside of a bend has less room than the road's width and a car beside it need, the road is narrowed, and
    a warning is logged.
    """
    if width_m is not None and not (math.isfinite(width_m) and 3.0 <= width_m <= 100.0):
        raise TrackError(f"--width must be from 3 to 100 m, got {width_m:g}.")
    file = read_track_file(path, width_m)
    wide = recentre(file.centreline)
    if width_m is not None:
        wide = with_width(wide, width_m)
    lap_m = length_m(wide)
    if not (math.isfinite(start_m) and 0.0 <= start_m < lap_m):
        raise TrackError(f"--start must be from 0 to the lap's {lap_m:.1f} m, got {start_m:g}.")
    if fault := find_length_fault(lap_m):
        file.refuse(fault)
    line = reverse(wide) if reverse_travel else wide
    if start_m > 0.0:
        line = rotate_start(line, start_m)
    # Resampling first takes out the kinks of a noisy line, which would be bends of almost no radius.
    line = resample(line, IMPORT_SPACING_M)
    narrow = narrow_tight_bends(line, DEFAULT_SPACING_M)
    nodes = try_to_build(narrow)
    if isinstance(nodes, Fault):
        file.refuse(nodes, nearest_point(wide, narrow.x_m[nodes.point], narrow.y_m[nodes.point]))
    road = trace(line, DEFAULT_SPACING_M)
    if isinstance(road, Road):
        _report(path, find_narrowings(road, nodes))
    return ImportedTrack(narrow, file.attribution)


def _report(path: Path, narrowings: list[Narrowing]) -> None:
    """Log one line about all places."""
    if not narrowings:
        return
    places = [f"by {n.by_m:.2f} m on the {n.side} at s = {n.at_m:.0f} m" for n in narrowings[:_MAX_PLACES]]
    more = len(narrowings) - len(places)
    _log.warning(
        "%s: the road is wider than its bends have room for with a car at its edge, so it was narrowed on the inside: "
        "%s%s.",
        path.name,
        ", ".join(places),
        f", and at {more} more" if more else "",
    )
