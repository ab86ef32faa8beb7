"""Verifies entries: every drive is simulated again, and must give what the entry claims, to the bit."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hotlap.benchmark.entry_file import MODEL, EntryFile, LapClaim, open_entry
from hotlap.benchmark.lap_replays import EVALUATION_RULES, LapOutcomes, replay_laps
from hotlap.benchmark.overtaking_replays import PassingOutcomes, drive_against, replay_overtaking
from hotlap.benchmark.protocol import MAX_TICKS, OVERTAKING, START, Protocol, TrackStarts
from hotlap.benchmark.recording import OnProgress
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import HotlapError, ReplayError
from hotlap.evaluation.evaluate import drive_compiled, start_cars
from hotlap.models.model_file import read_model


@dataclass(frozen=True)
class VerifiedEntry:
    """An entry whose every drive was simulated again."""

    name: str
    parts: tuple[str, ...]
    laps: Mapping[str, LapOutcomes]  # by track
    overtaking: PassingOutcomes | None
    has_model: bool  # its laps are those of the model that it brings

    @property
    def num_laps(self) -> int:
        """How many flying laps it has."""
        return sum(int(found.is_completed.sum()) for found in self.laps.values())


def verify_entry(
    path: Path, protocol: Protocol, *, num_threads: int | None = None, progress: OnProgress | None = None
) -> VerifiedEntry:
    """Simulate all drives of an entry again; ReplayError with one line where anything differs."""
    with open_entry(path, protocol) as entry:
        claims, laps = entry.document, {}
        tracks = protocol.tracks_of(claims.parts)
        num_tasks = len(tracks) + bool(claims.overtaking)
        for number, starts in enumerate(tracks):
            laps[starts.track_id] = _verify_laps(entry, starts, num_threads)
            if progress:
                progress((number + 1) / num_tasks)
        overtaking = _verify_passings(entry, protocol, num_threads) if OVERTAKING in claims.parts else None
        has_model = _verify_model(entry, protocol, laps, overtaking, num_threads)
        return VerifiedEntry(claims.name, claims.parts, laps, overtaking, has_model)


def _verify_laps(entry: EntryFile, starts: TrackStarts, num_threads: int | None) -> LapOutcomes:
    """The laps of one track, as the simulator drives them."""
    found = replay_laps(starts, entry.drives_on(starts.track_id), num_threads)
    for number, claim in enumerate(entry.document.laps[starts.track_id]):
        where = f"{starts.track_id}, start {number}"
        _compare(where, claim, found.times_s[number], bool(found.is_clean[number]))
        # After a drive without a lap a program may not know that it is over, and gains nothing.
        if (left := int(found.ticks_left[number])) and found.is_completed[number]:
            raise ReplayError(f"{where}: has {left} ticks after the end of its drive.")
    return found


def _compare(where: str, claim: LapClaim, time_s: np.float32, is_clean: bool) -> None:
    claimed = np.float32(np.nan if claim.time_s is None else claim.time_s)
    is_same = np.isnan(time_s) if np.isnan(claimed) else claimed.tobytes() == time_s.tobytes()
    # A decimal that is no float32 would be rounded to one: it must be the simulator's own number.
    if not is_same or (claim.time_s is not None and float(claimed) != claim.time_s):
        given = "no lap" if claim.time_s is None else f"{claim.time_s!r} s"
        driven = "no lap" if np.isnan(time_s) else f"{float(time_s)!r} s"
        raise ReplayError(f"{where}: claims {given}, but driven again it gives {driven}.")
    if claim.is_clean != is_clean:
        raise ReplayError(f"{where}: claims a lap that is {'' if claim.is_clean else 'not '}clean, which is not so.")


def _verify_passings(entry: EntryFile, protocol: Protocol, num_threads: int | None) -> PassingOutcomes:
    found = replay_overtaking(protocol.scenarios, entry.passings(), num_threads)
    for number, claim in enumerate(entry.document.overtaking):
        given = _describe(claim.is_safe, claim.is_overtake)
        driven = _describe(bool(found.is_safe[number]), bool(found.is_overtake[number]))
        if given != driven:
            raise ReplayError(f"scenario {number}: claims to be {given}, but driven again it is {driven}.")
    return found


def _describe(is_safe: bool, is_overtake: bool) -> str:
    return f"{'safe' if is_safe else 'not safe'} and {'an' if is_overtake else 'no'} overtake"


def _verify_model(
    entry: EntryFile,
    protocol: Protocol,
    laps: Mapping[str, LapOutcomes],
    overtaking: PassingOutcomes | None,
    num_threads: int | None,
) -> bool:
    """Whether the entry brings a model; ReplayError where that drives otherwise."""
    content = entry.model()
    if content is None:
        return False
    driver = _read_driver(content)
    for starts in protocol.tracks_of(entry.document.parts):
        number = _first_difference(driver, starts, laps[starts.track_id], num_threads)
        if number is not None:
            raise ReplayError(f"{starts.track_id}, start {number}: its model drives another lap than the entry has.")
    if overtaking is not None:
        driven = drive_against(lambda track: driver, protocol.scenarios, num_threads)
        different = (driven.is_safe != overtaking.is_safe) | (driven.is_overtake != overtaking.is_overtake)
        if different.any():
            number = int(np.flatnonzero(different)[0])
            raise ReplayError(f"scenario {number}: its model drives otherwise than the entry does.")
    return True


def _read_driver(content: bytes) -> PackedDriver:
    """The driver of the model in an entry."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / MODEL
        path.write_bytes(content)
        try:
            model = read_model(path)
            if not model.card.is_racer:
                raise ReplayError(f"{MODEL}: is a model of {model.card.environment}, not of the racer.")
            return PackedDriver.from_model(model)
        except HotlapError as error:
            raise ReplayError(str(error).replace(str(path), MODEL)) from None


def _first_difference(
    driver: PackedDriver, starts: TrackStarts, found: LapOutcomes, num_threads: int | None
) -> int | None:
    """The first start from which a model drives another lap than the entry has; None where there is none."""
    fleet = start_cars(driver, starts.track_id, starts.seeds, START)
    counter = drive_compiled(driver, fleet, EVALUATION_RULES.num_laps, num_threads=num_threads)
    times_s = np.full(len(starts.seeds), np.nan, np.float32)
    for lap in counter.laps:
        times_s[lap.car] = lap.time_s
    is_cut_off = np.isnan(found.times_s) & (found.num_ticks == MAX_TICKS)  # the model itself may drive on
    different = (times_s.view(np.int32) != found.times_s.view(np.int32)) & ~is_cut_off
    return int(np.flatnonzero(different)[0]) if different.any() else None
