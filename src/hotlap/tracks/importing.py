"""Make a foreign centreline ours: checked, moved near the origin, resampled smoothly."""

import math
from pathlib import Path

from hotlap.errors import TrackError
from hotlap.tracks.files import read_centreline
from hotlap.tracks.geometry import (
    Centreline,
    build_nodes,
    length_m,
    recentre,
    resample,
    reverse,
    rotate_start,
    with_width,
)

IMPORT_SPACING_M = 4.0


def import_centreline(
    path: Path, *, reverse_travel: bool = False, width_m: float | None = None, start_m: float = 0.0
) -> Centreline:
    """The track in `path`, as asked: other way round, other width, start line moved forward along the new direction."""
    if width_m is not None and not (math.isfinite(width_m) and 3.0 <= width_m <= 100.0):
        raise TrackError(f"--width must be from 3 to 100 m, got {width_m:g}.")
    line = recentre(read_centreline(path))
    if reverse_travel:
        line = reverse(line)
    if width_m is not None:
        line = with_width(line, width_m)
    lap_m = length_m(line)
    if not (math.isfinite(start_m) and 0.0 <= start_m < lap_m):
        raise TrackError(f"--start must be from 0 to the lap's {lap_m:.1f} m, got {start_m:g}.")
    if start_m > 0.0:
        line = rotate_start(line, start_m)
    line = resample(line, IMPORT_SPACING_M)
    build_nodes(line)  # what was asked for must be drivable, too
    return line
