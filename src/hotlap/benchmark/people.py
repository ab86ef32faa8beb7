"""Laps of people: a file of replays from the page, each simulated again, beside the casual driver's lap."""

import json
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.benchmark.actions import to_runs
from hotlap.benchmark.lap_replays import replay_fleet
from hotlap.benchmark.protocol import MAX_TICKS, Protocol
from hotlap.errors import InputFileError, ReplayError
from hotlap.reports.formatting import MISSING, percent, seconds
from hotlap.reports.tables import Table
from hotlap.sim.policy_drive import DriveRules, Drives
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.web.replay_format import Replay
from hotlap.web.replays import make_race_fleet

FORMAT = "hotlap-board-1"  # what the page gives as a download: a visitor's own drives, or a server's leaderboard
MAX_FILE_BYTES = 256 << 20
MAX_LAPS = 100  # of one replay: no track of the benchmark is as short
HEADS = ["track", "people", "clean flying laps", "median lap", "casual driver", "people faster than it"]
_REMEDY = "The page's board gives such a file as a download."
# Nobody is ever stuck on the page; a drive goes on until its last tick.
_RULES = DriveRules(MAX_LAPS, 1, 2 * MAX_TICKS, 0.0)


@dataclass(frozen=True)
class PeopleFigures:
    """People's clean flying laps of a track, each person by the median of theirs; None where there is none."""

    track: str
    people: int  # with a clean flying lap
    laps: int
    median_lap_s: float | None  # over people
    casual_lap_s: float | None
    faster_rate: float | None  # of people, whose median is faster than the casual driver's


@dataclass(frozen=True)
class PeopleLaps:
    """All laps of a file, verified."""

    replays: int
    repeated: int  # of these, drives that are there already, under whatever name: they count once
    left_out: int  # of drivers that are no people, or of other tracks, roads or physics
    tracks: list[PeopleFigures]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class _Given:
    """One replay of a file."""

    number: int
    driver: str
    replay: Replay
    claims: Mapping[str, Any]


def verify_people(
    path: Path,
    protocol: Protocol,
    casual_lap: Callable[[str], float | None],
    num_threads: int | None = None,
) -> PeopleLaps:
    """Simulate every replay of a file again; ReplayError with one line where one does not drive what it claims."""
    try:
        entries = _read(path)
        given = _choose(entries, protocol)
        tracks, repeated = [], 0
        for track, replays in given.items():
            laps, num_repeated = _flying_laps(track, replays, num_threads)
            repeated += num_repeated
            if laps:
                tracks.append(_summarise(track, laps, casual_lap(track)))
        num_replays = sum(map(len, given.values()))
        return PeopleLaps(num_replays, repeated, len(entries) - num_replays, tracks)
    except ReplayError as error:
        raise ReplayError(f"{path}: {error} {_REMEDY}") from None


def _read(path: Path) -> list[Any]:
    """The entries of a file."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would block
            raise ReplayError("is a folder, a pipe or a device, not a file of laps.")
        if about.st_size > MAX_FILE_BYTES:
            raise ReplayError(f"has {about.st_size} bytes; laps of people have at most {MAX_FILE_BYTES}.")
        data = json.loads(path.read_bytes())
    except ReplayError:
        raise
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise ReplayError("is neither an entry nor a file of laps: no zip, and no JSON.") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("entries"), list):
        raise ReplayError(f"must have the format {FORMAT} and a list of entries.")
    entries: list[Any] = data["entries"]
    return entries


def _choose(entries: Sequence[Any], protocol: Protocol) -> dict[str, list[_Given]]:
    """The replays of people on the tracks of the benchmark, by track."""
    roads = {one.track_id: one.road for one in protocol.tracks_of(protocol.parts)}
    chosen: dict[str, list[_Given]] = {}
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict) or not all(
            isinstance(entry.get(key), str) for key in ("track", "driver", "replay")
        ):
            raise ReplayError(f"entry {number}: must have track, driver and replay.")
        if entry.get("kind", "human") != "human" or entry["track"] not in roads:
            continue
        try:
            replay = Replay.from_text(entry["replay"])
        except ReplayError as error:
            raise ReplayError(f"entry {number}: {error}") from None
        if replay.physics == PHYSICS_VERSION and replay.track_digest == roads[entry["track"]]:
            chosen.setdefault(entry["track"], []).append(_Given(number, entry["driver"], replay, entry))
    return dict(sorted(chosen.items()))


def _flying_laps(track: str, given: Sequence[_Given], num_threads: int | None) -> tuple[dict[str, list[float]], int]:
    """The clean flying laps of each person, and how many drives were there already.

    All laps of a replay count, not only the claimed one.
    """
    fleet = make_race_fleet(track, num_cars=len(given))
    fleet.seed(np.array([one.replay.seed for one in given], np.uint64))
    fleet.reset(start="line")
    found, _ = replay_fleet(fleet, [to_runs(one.replay.actions) for one in given], _RULES, num_threads)
    laps: dict[str, list[float]] = {}
    drives: set[bytes] = set()
    for car, one in enumerate(given):
        _check_claim(one, found, car)
        drive = sha256(one.replay.actions[: found.lap_ticks[car].max()].tobytes()).digest()
        if drive not in drives:
            is_flying = (found.lap_ticks[car, 1:] > 0) & found.lap_clean[car, 1:]
            laps.setdefault(one.driver, []).extend(found.lap_times_s[car, 1:][is_flying].tolist())
        drives.add(drive)
    return {driver: times for driver, times in laps.items() if times}, len(given) - len(drives)


def _check_claim(one: _Given, found: Drives, car: int) -> None:
    """The lap that a replay and its entry claim is the one that the simulator drives, to the bit."""
    lap, where = one.replay.lap, f"entry {one.number} ({one.driver!r:.40})"
    if not (1 <= lap <= MAX_LAPS and found.lap_ticks[car, lap - 1] > 0):
        raise ReplayError(f"{where}: claims lap {lap}, which it does not complete.")
    time_s, is_clean = found.lap_times_s[car, lap - 1], bool(found.lap_clean[car, lap - 1])
    claimed = {"lap": lap, "lap_time_sec": float(time_s), "clean": is_clean}
    if np.float32(one.replay.lap_time_s).tobytes() != time_s.tobytes():
        raise ReplayError(f"{where}: claims {float(one.replay.lap_time_s)!r} s, but driven again {float(time_s)!r} s.")
    for key, value in claimed.items():
        if key in one.claims and one.claims[key] != value:
            raise ReplayError(f"{where}: claims {key} {one.claims[key]!r:.40}, but driven again it is {value!r}.")


def _summarise(track: str, laps: Mapping[str, Sequence[float]], casual_lap_s: float | None) -> PeopleFigures:
    medians = [float(np.median(times)) for times in laps.values()]
    faster = None if casual_lap_s is None else float(np.mean([median < casual_lap_s for median in medians]))
    num_laps = sum(map(len, laps.values()))
    return PeopleFigures(track, len(medians), num_laps, float(np.median(medians)), casual_lap_s, faster)


def people_table(found: PeopleLaps) -> Table:
    """People beside the casual driver, by track."""
    rows = [
        [
            one.track,
            str(one.people),
            str(one.laps),
            seconds(one.median_lap_s),
            seconds(one.casual_lap_s),
            MISSING if one.faster_rate is None else percent(one.faster_rate),
        ]
        for one in found.tracks
    ]
    return Table(HEADS, rows)
