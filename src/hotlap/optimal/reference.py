"""The optimal lap that drivers are measured against: loaded from a file, or solved once and saved.

Laps of the shipped tracks come with the package; others are solved on this machine and cached. A saved lap is used only
for the physics version, the road and the car it was solved for. Loading needs no solver; CasADi is imported when one is
solved.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from hotlap.errors import OptimalError, TrackError
from hotlap.sim.compilation import cache_root
from hotlap.sim.vehicle import CarParameters
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.tracks.digest import track_digest
from hotlap.tracks.files.raceline_file import Raceline, read_raceline, write_raceline
from hotlap.tracks.registry import Track

if TYPE_CHECKING:
    from hotlap.optimal.plan import Plan

_SHIPPED = Path(str(files("hotlap.optimal"))) / "data"
_FIGURES = ("lap_time_s", "standing_lap_time_s", "mesh_change")
_OPTIONAL_FIGURE = "standing_mesh_change"
STANDARD_CAR = CarParameters()


@dataclass(frozen=True)
class Reference:
    """A track's optimal laps: the flying lap's line and time, and the standing lap's time."""

    raceline: Raceline
    lap_time_s: float
    standing_lap_time_s: float
    mesh_change: float  # relative change of the flying lap at the last mesh refinement
    standing_mesh_change: float | None = None  # the same for the standing lap; not recorded in the shipped laps


def find_reference(track: Track, car: CarParameters = STANDARD_CAR) -> Reference | None:
    """The car's optimal lap of a track, if it is shipped or was solved before; None if it has to be solved first."""
    for folder in (_SHIPPED, solved_folder()):
        found = _load(folder / _file_name(track, car), track, car)
        if found:
            return found
    return None


def find_or_solve_reference(
    track: Track, notify: Callable[[str], None], car: CarParameters = STANDARD_CAR
) -> Reference | None:
    """The car's optimal lap of a track, solved now if necessary; None if that fails.

    Solving takes about a minute; `notify` gets a line of text before it, and a reason if there is no lap.
    """
    found = find_reference(track, car)
    if found:
        return found
    of_car = "" if car == STANDARD_CAR else " for this car"
    try:
        import casadi  # noqa: F401 (checks that it is installed)
    except ImportError:
        notify(
            f"no gap to the optimum: {track.track_id} was never solved{of_car}, and CasADi is not installed "
            "(hotlap[optimal])."
        )
        return None
    notify(
        f"solving the optimal lap of {track.track_id}{of_car}, once; "
        "this takes about a minute for every two kilometres."
    )
    try:
        solved = solve_reference(track, car)
        save_reference(track, solved, car=car)
    except OptimalError as error:
        notify(f"no gap to the optimum: {error}")
        return None
    return solved


def solve_laps(track: Track, car: CarParameters = STANDARD_CAR) -> "tuple[Plan, Plan]":
    """A car's optimal flying and standing lap of `track`; an OptimalError if one of them is not found."""
    try:
        from hotlap.optimal.lap import solve_flying, solve_standing
    except ImportError:
        raise OptimalError("solving needs CasADi. Install it: pip install 'hotlap[optimal]'.") from None

    flying = solve_flying(track.nodes, car=car)
    return flying, solve_standing(track.nodes, car=car, warm_start=flying)


def make_reference(track: Track, flying: "Plan", standing: "Plan") -> Reference:
    """The part of the solved laps that is saved."""
    from hotlap.optimal.raceline import make_raceline

    line = make_raceline(flying, track.nodes)
    return Reference(line, flying.time_s, standing.time_s, flying.mesh_change, standing.mesh_change)


def solve_reference(track: Track, car: CarParameters = STANDARD_CAR) -> Reference:
    """A car's optimal laps of `track`, solved now; an OptimalError if one of them is not found."""
    return make_reference(track, *solve_laps(track, car))


def save_reference(
    track: Track, reference: Reference, folder: Path | None = None, car: CarParameters = STANDARD_CAR
) -> Path:
    """Write a solved lap, by default to this machine's cache; returns the file."""
    chosen = folder or solved_folder()
    about: dict[str, str | float] = {
        "track": track.track_id,
        "physics": PHYSICS_VERSION,
        "road": track_digest(track.nodes),
    }
    if car != STANDARD_CAR:
        about["car"] = car_digest(car)
    about |= {name: round(getattr(reference, name), 6) for name in _FIGURES}
    if reference.standing_mesh_change is not None:
        about[_OPTIONAL_FIGURE] = round(reference.standing_mesh_change, 6)
    path = chosen / _file_name(track, car)
    try:
        chosen.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptimalError(
            f"{chosen}: cannot be created ({error.strerror}). Set HOTLAP_CACHE to a writable folder."
        ) from None
    write_raceline(path, replace(reference.raceline, comment=json.dumps(about)))
    return path


def solved_folder() -> Path:
    """The folder of laps solved on this machine."""
    return cache_root().parent / "optimal"


def car_digest(car: CarParameters) -> str:
    """A name for a car by all its parameters."""
    return hashlib.sha256(json.dumps(car._asdict()).encode()).hexdigest()[:16]


def _file_name(track: Track, car: CarParameters) -> str:
    """Shipped tracks by id; the user's also by road digest, since an id may be given to another road later.

    Laps of another car than the standard one are also named by the car.
    """
    parts = [track.track_id] if track.is_shipped else [track.track_id, track_digest(track.nodes)]
    if car != STANDARD_CAR:
        parts += ["car", car_digest(car)]
    return f"{'-'.join(parts)}.csv"


@lru_cache(maxsize=128)  # all tracks of a split
def _read(path: Path, _version: tuple[int, int]) -> Raceline:
    """The raceline of a file, read again where its time or size (`_version`) is another."""
    return read_raceline(path)


def _load(path: Path, track: Track, car: CarParameters) -> Reference | None:
    if not path.is_file():
        return None
    try:
        written = path.stat()
        line = _read(path, (written.st_mtime_ns, written.st_size))
        about = json.loads(line.comment)
        if about["physics"] != PHYSICS_VERSION or about["road"] != track_digest(track.nodes):
            return None
        if about.get("car") != (None if car == STANDARD_CAR else car_digest(car)):
            return None
        figures = {name: float(about[name]) for name in _FIGURES}
        if _OPTIONAL_FIGURE in about:
            figures[_OPTIONAL_FIGURE] = float(about[_OPTIONAL_FIGURE])
    except (OSError, TrackError, ValueError, TypeError, KeyError):
        # A damaged file in the cache is ignored: the lap is solved again.
        return None
    return Reference(line, **figures)
