"""Race replays: how a race began and what every driver did, from which the simulator drives it again to the bit."""

import base64
import binascii
import json
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.atomic_files import write_atomically
from hotlap.envs.fleet import REPEATS
from hotlap.envs.race_defaults import RaceStart
from hotlap.envs.race_fleet import CARS_PER_RACE, LAPS, RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import InputFileError, ReplayError
from hotlap.evaluation.races import OnStep, RaceCounter, RaceCounts
from hotlap.sim.version import RACE_VERSION
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.digest import track_digest

FORMAT = "hotlap-race-replay-1"
MAX_STEPS = 1 << 20
MAX_FILE_BYTES = 256 << 20
_REMEDY = "`hotlap race --replay FILE` writes one."
_FIELDS = {"format", "race_version", "track", "track_digest", "laps", "start", "seed", "drivers", "slots"}
_FIELDS |= {"repeat", "steps", "actions", "race_times_s"}


@dataclass(frozen=True)
class RaceReplay:
    """One race; `actions` is (steps, cars, 3), each held for `repeat` ticks."""

    track: str
    track_digest: str
    laps: int
    start: RaceStart
    seed: int
    drivers: list[str]
    slots: list[int]
    repeat: int
    actions: NDArray[np.float32]
    race_times_s: list[float | None]  # None of cars that did not finish


class RaceRecorder:
    """Collects the actions of a race while it is driven."""

    def __init__(self) -> None:
        self._actions: list[NDArray[np.float32]] = []

    def add(self, actions: NDArray[np.float32] | None) -> None:
        """Add the actions of a step; None before the first."""
        if actions is not None:
            self._actions.append(actions.copy())

    def finish(
        self, fleet: RaceFleet, drivers: list[str], slots: NDArray[np.int64], repeat: int, seed: int
    ) -> RaceReplay:
        """The replay of the race that the fleet has just ended."""
        track, times_s = fleet.tracks[0], fleet.entrants["race_time_s"]
        return RaceReplay(
            track=track.track_id,
            track_digest=track_digest(track.nodes),
            laps=fleet.laps,
            start=fleet.start,
            seed=seed,
            drivers=drivers,
            slots=[int(slot) for slot in slots],
            repeat=repeat,
            actions=np.stack(self._actions),
            race_times_s=[None if np.isnan(time_s) else float(time_s) for time_s in times_s],
        )


def write_replay(path: Path, replay: RaceReplay) -> None:
    """Write a replay as JSON."""
    write_atomically(path, json.dumps(replay_document(replay)).encode())


def replay_document(replay: RaceReplay) -> dict[str, Any]:
    """A replay as plain values; the actions are float32 bits, compressed."""
    packed = base64.b85encode(zlib.compress(np.ascontiguousarray(replay.actions, "<f4").tobytes(), 6)).decode()
    document = {**vars(replay), "format": FORMAT, "race_version": RACE_VERSION, "steps": len(replay.actions)}
    return document | {"actions": packed}


def read_replay(path: Path) -> RaceReplay:
    """Read a replay; a file that is none gets one line that says why."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would block
            raise ReplayError(f"{path}: is a folder, a pipe or a device, not a race replay. {_REMEDY}")
        if about.st_size > MAX_FILE_BYTES:
            raise ReplayError(f"{path}: a replay has at most {MAX_FILE_BYTES >> 20} MiB.")
        data = json.loads(path.read_bytes())
    except ReplayError:
        raise
    except FileNotFoundError:
        raise InputFileError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputFileError(f"{path}: cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise ReplayError(f"{path}: is no race replay: it holds no JSON. {_REMEDY}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or set(data) != _FIELDS:
        raise ReplayError(f"{path}: is no race replay of the format {FORMAT}. {_REMEDY}")
    if data["race_version"] != RACE_VERSION:
        raise ReplayError(
            f"{path}: was driven with race version {data['race_version']!r:.40}; this is {RACE_VERSION}. {_REMEDY}"
        )
    return _checked(path, data)


def _checked(path: Path, data: dict[str, Any]) -> RaceReplay:
    drivers, slots, times_s = data["drivers"], data["slots"], data["race_times_s"]
    is_sane = (
        isinstance(drivers, list)
        and len(drivers) in CARS_PER_RACE
        and all(isinstance(name, str) for name in drivers)
        and isinstance(slots, list)
        and all(type(slot) is int for slot in slots)
        and sorted(slots) == list(range(len(drivers)))
        and isinstance(times_s, list)
        and len(times_s) == len(drivers)
        and all(time_s is None or isinstance(time_s, float) for time_s in times_s)
        and all(type(data[name]) is int for name in ("laps", "seed", "repeat", "steps"))
        and data["laps"] in LAPS
        and data["repeat"] in REPEATS
        and 0 < data["steps"] <= MAX_STEPS
        and data["start"] in ("grid", "rolling")
        and all(isinstance(data[name], str) for name in ("track", "track_digest", "actions"))
    )
    if not is_sane:
        raise ReplayError(f"{path}: a value of the replay makes no sense. Record it again.")
    shape = (data["steps"], len(drivers), NUM_ACTIONS)
    actions = _unpack(path, data["actions"], shape)
    kept = {name: data[name] for name in ("track", "track_digest", "laps", "start", "seed", "repeat")}
    return RaceReplay(**kept, drivers=drivers, slots=slots, actions=actions, race_times_s=times_s)


def _unpack(path: Path, text: str, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """The actions; no more is decompressed than there should be."""
    num_bytes = 4 * shape[0] * shape[1] * shape[2]
    try:
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(base64.b85decode(text), num_bytes + 1)
    except (ValueError, binascii.Error, zlib.error):
        raise ReplayError(f"{path}: the actions cannot be unpacked. Record it again.") from None
    if len(content) != num_bytes:
        raise ReplayError(f"{path}: the actions are not as many as the replay says. Record it again.")
    actions = np.frombuffer(content, "<f4").reshape(shape).astype(np.float32)
    if not np.isfinite(actions).all():
        raise ReplayError(f"{path}: an action is not finite. Record it again.")
    return actions


def count_again(replay: RaceReplay, on_step: OnStep | None = None) -> RaceCounts:
    """Drive the race again and count what happens in it."""
    counters: list[RaceCounter] = []

    def count(fleet: RaceFleet, actions: NDArray[np.float32] | None) -> None:
        if actions is None:
            counters.append(RaceCounter(fleet))
        else:
            counters[0].add_step(replay.repeat)
        if on_step:
            on_step(fleet, actions)

    drive_again(replay, count)
    return counters[0].finish(np.array([replay.slots]), replay.repeat)


def drive_again(replay: RaceReplay, on_step: OnStep | None = None) -> RaceFleet:
    """Drive the race again, to the bit; ReplayError if the road is another one or a car comes in at another time.

    `on_step` is called with the fleet and the actions of the step, at the start and after each step.
    """
    fleet = RaceFleet([replay.track], RacerSettings(), 1, len(replay.drivers), replay.laps, replay.start, 1)
    digest = track_digest(fleet.tracks[0].nodes)
    if digest != replay.track_digest:
        raise ReplayError(f"replay: was driven on road {replay.track_digest!r:.40}; {replay.track} is {digest} now.")
    fleet.seed(np.array([replay.seed % 2**64], np.uint64))
    fleet.entrants["slot"] = replay.slots
    fleet.reset()
    if on_step:
        on_step(fleet, None)
    for actions in replay.actions:
        fleet.step(actions, autoreset=False, repeat=replay.repeat)
        if on_step:
            on_step(fleet, actions)
    times_s = [None if np.isnan(time_s) else float(time_s) for time_s in fleet.entrants["race_time_s"]]
    if times_s != replay.race_times_s:
        raise ReplayError(f"replay: says that cars came in at {replay.race_times_s}, but driven again at {times_s}.")
    return fleet
