"""Import a track: check the file, move it near the origin, narrow too tight bends, resample it smoothly."""

import logging
import math
from pathlib import Path

from hotlap.errors import TrackError
from hotlap.tracks.bend_narrowing import narrow_tight_bends
from hotlap.tracks.centreline import Centreline, length_m, recentre, resample, reverse, rotate_start, with_width
from hotlap.tracks.centreline_file import read_centreline_file
from hotlap.tracks.geometry import DEFAULT_SPACING_M, build_nodes

IMPORT_SPACING_M = 4.0

_log = logging.getLogger(__name__)


def import_centreline(
    path: Path, *, reverse_travel: bool = False, width_m: float | None = None, start_m: float = 0.0
) -> Centreline:
    """The track in `path`, optionally reversed, with a constant width, and with its start line moved forward.

    Where a bend is a little tighter than its road, the road is narrowed there, and a warning is logged.
    """
    if width_m is not None and not (math.isfinite(width_m) and 3.0 <= width_m <= 100.0):
        raise TrackError(f"--width must be from 3 to 100 m, got {width_m:g}.")
    file = read_centreline_file(path)
    line = recentre(file.centreline)
    if width_m is not None:
        line = with_width(line, width_m)
    line = _narrow(line)
    file.check_road(line)
    if reverse_travel:
        line = reverse(line)
    lap_m = length_m(line)
    if not (math.isfinite(start_m) and 0.0 <= start_m < lap_m):
        raise TrackError(f"--start must be from 0 to the lap's {lap_m:.1f} m, got {start_m:g}.")
    if start_m > 0.0:
        line = rotate_start(line, start_m)
    line = _narrow(resample(line, IMPORT_SPACING_M))
    build_nodes(line)  # the options may have made the road undrivable
    return line


def _narrow(line: Centreline) -> Centreline:
    line, narrowings = narrow_tight_bends(line, DEFAULT_SPACING_M)
    for narrowing in narrowings:
        _log.warning(
            "the bend at s = %.0f m is a little tighter than its road: narrowed by %.2f m on the %s.",
            narrowing.at_m,
            narrowing.by_m,
            narrowing.side,
        )
    return line
