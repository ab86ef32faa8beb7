"""Where optimal laps are kept: those shipped with the package, and those solved on this machine.

A lap belongs to one physics version and one track; a lap of another is not used, however it is named. Reading needs no
solver.
"""

import hashlib
import json
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from hotlap.errors import OptimalError, TrackError
from hotlap.sim.compiling import cache_root
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.files import Raceline, read_raceline, write_raceline
from hotlap.tracks.registry import Track

_SHIPPED = Path(str(files("hotlap.optimal"))) / "data"
_FIGURES = ("lap_time_s", "standing_lap_time_s", "mesh_change")
_MAYBE = "standing_mesh_change"


@dataclass(frozen=True)
class Reference:
    """A track's optimal laps: the flying lap's line and time, and the standing lap's time."""

    raceline: Raceline
    lap_time_s: float
    standing_lap_time_s: float
    mesh_change: float  # relative change of the flying lap at the last mesh refinement
    standing_mesh_change: float | None = None  # the same of the standing lap; the shipped laps do not say


def track_digest(nodes: RibbonNodes) -> str:
    """What an optimal lap depends on besides the physics: the road."""
    digest = hashlib.sha256()
    for name in ("x_m", "y_m", "tangent_x", "tangent_y", "curvature_radpm", "road_left_m", "road_right_m"):
        digest.update(getattr(nodes, name).astype("<f8").tobytes())
    return digest.hexdigest()[:16]


def find_reference(track: Track) -> Reference | None:
    """The track's optimal lap, if it was shipped or solved before; None where it has to be solved first."""
    for folder in (_SHIPPED, solved_folder()):
        found = _load(folder / _file_name(track), track)
        if found:
            return found
    return None


def keep_reference(track: Track, reference: Reference, folder: Path | None = None) -> Path:
    """Store a solved lap, by default among those of this machine."""
    chosen = folder or solved_folder()
    about: dict[str, str | float] = {
        "track": track.track_id,
        "physics": PHYSICS_VERSION,
        "road": track_digest(track.nodes),
    }
    about |= {name: round(getattr(reference, name), 6) for name in _FIGURES}
    if reference.standing_mesh_change is not None:
        about[_MAYBE] = round(reference.standing_mesh_change, 6)
    line = reference.raceline
    path = chosen / _file_name(track)
    try:
        chosen.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptimalError(
            f"{chosen}: cannot be made ({error.strerror}). Set HOTLAP_CACHE to a writable folder."
        ) from None
    named = Raceline(
        line.s_m, line.x_m, line.y_m, line.psi_rad, line.kappa_radpm, line.vx_mps, line.ax_mps2, json.dumps(about)
    )
    write_raceline(path, named)
    return path


def solved_folder() -> Path:
    """Where laps solved on this machine are kept."""
    return cache_root().parent / "optimal"


def _file_name(track: Track) -> str:
    """Shipped tracks by their id; others by their road, since an id of the user's may name another road tomorrow."""
    if track.is_shipped:
        return f"{track.track_id}.csv"
    return f"{track.track_id}-{track_digest(track.nodes)}.csv"


def _load(path: Path, track: Track) -> Reference | None:
    if not path.is_file():
        return None
    try:
        line = read_raceline(path)
        about = json.loads(line.comment)
        if about["physics"] != PHYSICS_VERSION or about["road"] != track_digest(track.nodes):
            return None
        figures = {name: float(about[name]) for name in _FIGURES}
        if _MAYBE in about:
            figures[_MAYBE] = float(about[_MAYBE])
    except (TrackError, ValueError, TypeError, KeyError):
        # A damaged file in a cache is no news to the user: the lap is solved again.
        return None
    return Reference(line, **figures)
