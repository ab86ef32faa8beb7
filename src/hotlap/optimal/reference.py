"""The optimal lap that drivers are measured against: found where it was kept, or solved once and kept.

Some ship with the package, others were solved on this machine. A lap belongs to one physics version and one road; a lap
of another is not used, whatever its file is called. Finding a lap needs no solver; CasADi is loaded when one is solved.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from hotlap.errors import OptimalError, TrackError
from hotlap.sim.compilation import cache_root
from hotlap.sim.ribbon import RibbonNodes
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.files import Raceline, read_raceline, write_raceline
from hotlap.tracks.registry import Track

if TYPE_CHECKING:
    from hotlap.optimal.plan import Plan

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


def get_reference(track: Track, tell: Callable[[str], None]) -> Reference | None:
    """The track's optimal lap, solved now if need be (that takes a minute and is said); None where it cannot be had."""
    found = find_reference(track)
    if found:
        return found
    try:
        import casadi  # noqa: F401 (only to see whether it is there)
    except ImportError:
        tell(f"no gap to the optimum: {track.track_id} was never solved, and CasADi is missing (hotlap[optimal]).")
        return None
    tell(f"solving the optimal lap of {track.track_id}, once; about a minute for each two kilometres.")
    try:
        solved = solve_reference(track)
        keep_reference(track, solved)
    except OptimalError as error:
        tell(f"no gap to the optimum: {error}")
        return None
    return solved


def solve_laps(track: Track) -> "tuple[Plan, Plan]":
    """The flying and the standing optimum of `track`; an OptimalError if one of them cannot be found."""
    from hotlap.optimal.lap import solve_flying, solve_standing

    flying = solve_flying(track.nodes)
    return flying, solve_standing(track.nodes, near=flying)


def reference_of(track: Track, flying: "Plan", standing: "Plan") -> Reference:
    """The part of the solved laps that is kept."""
    from hotlap.optimal.raceline import raceline_of

    line = raceline_of(flying, track.nodes)
    return Reference(line, flying.time_s, standing.time_s, flying.mesh_change, standing.mesh_change)


def solve_reference(track: Track) -> Reference:
    """The optimum of `track`, solved now; an OptimalError if it cannot be found."""
    return reference_of(track, *solve_laps(track))


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
