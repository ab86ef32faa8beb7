"""Entry files: a zip of a document with all claims, and the recorded actions of every drive."""

import json
import math
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.atomic_files import atomic_write
from hotlap.benchmark.actions import Runs, read_runs
from hotlap.benchmark.lap_replays import LapOutcomes
from hotlap.benchmark.overtaking_replays import NUM_TICKS, PassingOutcomes, opponents_digest
from hotlap.benchmark.protocol import MAX_TICKS, OVERTAKING, Protocol
from hotlap.benchmark.recording import Recording
from hotlap.errors import ArchiveError, HotlapError, InputFileError, ReplayError, one_line
from hotlap.models.archive import BoundedFile
from hotlap.models.strict_json import from_json
from hotlap.sim.version import PHYSICS_VERSION, RACE_VERSION

FORMAT = "hotlap-entry-1"
DOCUMENT, MODEL, ACTIONS = "entry.json", "model.zip", ".actions"
MAX_FILE_BYTES = 512 << 20
MAX_DOCUMENT_BYTES = 4 << 20
MAX_MODEL_BYTES = 64 << 20
MAX_ACTIONS_BYTES = 512 << 20  # all drives together
MAX_NAME_CHARS = 64
_PIECE_BYTES = 1 << 20
_FIELDS = {"format", "name", "benchmark", "digest", "physics", "race", "opponents", "parts", "laps", OVERTAKING}
_REMEDY = "`hotlap benchmark DRIVER` writes an entry; docs/benchmark.md describes it."
# What zipfile raises for a damaged or hostile file.
_ZIP_ERRORS = (
    zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError, OSError,
)  # fmt: skip


@dataclass(frozen=True)
class LapClaim:
    """What an entry says of one start: the number of its runs, and its flying lap."""

    num_runs: int
    time_s: float | None  # None where no flying lap was completed
    is_clean: bool


@dataclass(frozen=True)
class PassingClaim:
    """What an entry says of one scenario."""

    num_runs: int
    is_safe: bool
    is_overtake: bool


@dataclass(frozen=True)
class EntryDocument:
    """All that an entry claims."""

    name: str
    parts: tuple[str, ...]
    laps: Mapping[str, Sequence[LapClaim]]  # by track, one for each start
    overtaking: Sequence[PassingClaim]


class EntryFile:
    """An entry that is open: what it claims, and the drives of one track at a time."""

    def __init__(self, zipped: zipfile.ZipFile, document: EntryDocument) -> None:
        self._zipped, self.document = zipped, document

    def drives_on(self, track_id: str) -> list[Runs]:
        """The recorded drives on a track."""
        return self._runs(track_id, [claim.num_runs for claim in self.document.laps[track_id]])

    def passings(self) -> list[Runs]:
        """The recorded drives of the overtaking scenarios, each of the same length."""
        drives = self._runs(OVERTAKING, [claim.num_runs for claim in self.document.overtaking])
        for number, drive in enumerate(drives):
            if (num_ticks := int(drive["ticks"].sum(dtype=np.int64))) != NUM_TICKS:
                raise ReplayError(f"scenario {number}: has {num_ticks} ticks instead of {NUM_TICKS}.")
        return drives

    def model(self) -> bytes | None:
        """The model file that the entry brings; None where it brings none."""
        return _read_member(self._zipped, MODEL) if MODEL in self._zipped.namelist() else None

    def _runs(self, name: str, counts: Sequence[int]) -> list[Runs]:
        return read_runs(_read_member(self._zipped, name + ACTIONS), counts, name)


def write_entry(
    path: Path,
    name: str,
    protocol: Protocol,
    recording: Recording,
    laps: Mapping[str, LapOutcomes],
    overtaking: PassingOutcomes | None,
    model: bytes | None = None,
) -> None:
    """Write an entry; the same drives give the same bytes."""
    members = {track + ACTIONS: _encode(drives) for track, drives in recording.laps.items()}
    if overtaking is not None:
        members[OVERTAKING + ACTIONS] = _encode(recording.overtaking)
    if model is not None:
        members[MODEL] = model
    document = _describe(name, protocol, recording, laps, overtaking)
    members[DOCUMENT] = (json.dumps(document, allow_nan=False) + "\n").encode()
    with atomic_write(path) as file, zipfile.ZipFile(file, "w") as zipped:
        for member, content in members.items():
            info = zipfile.ZipInfo(member)  # dated 1980-01-01
            info.create_system = 3  # the same on every system
            info.compress_type = zipfile.ZIP_DEFLATED
            zipped.writestr(info, content, compresslevel=1)


def _encode(drives: Sequence[Runs]) -> bytes:
    return b"".join(drive.tobytes() for drive in drives)


def _describe(
    name: str,
    protocol: Protocol,
    recording: Recording,
    laps: Mapping[str, LapOutcomes],
    overtaking: PassingOutcomes | None,
) -> dict[str, Any]:
    """The document of an entry."""
    rows = {}
    for track, found in laps.items():
        times = [None if math.isnan(time_s) else time_s for time_s in found.times_s.tolist()]
        counts = [len(drive) for drive in recording.laps[track]]
        rows[track] = [list(row) for row in zip(counts, times, found.is_clean.tolist(), strict=True)]
    passings = None
    if overtaking is not None:
        flags = overtaking.is_safe.tolist(), overtaking.is_overtake.tolist()
        passings = [list(row) for row in zip(map(len, recording.overtaking), *flags, strict=True)]
    return {**identify(name, protocol), "parts": list(recording.parts), "laps": rows, OVERTAKING: passings}


def identify(name: str, protocol: Protocol) -> dict[str, Any]:
    """What an entry is of: the versions of the benchmark and of the simulator."""
    return {
        "format": FORMAT,
        "name": name,
        "benchmark": protocol.version,
        "digest": protocol.digest,
        "physics": PHYSICS_VERSION,
        "race": RACE_VERSION,
        "opponents": opponents_digest(),
    }


@contextmanager
def open_entry(path: Path, protocol: Protocol) -> Iterator[EntryFile]:
    """An entry of this protocol; whatever is refused inside the block becomes one line about the file."""
    try:
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):  # opening a pipe would block
            raise ReplayError("is a folder or a device, not an entry.")
        if about.st_size > MAX_FILE_BYTES:
            raise ReplayError(f"has {about.st_size} bytes; an entry has at most {MAX_FILE_BYTES}.")
        with BoundedFile(path.open("rb", buffering=0)) as file, zipfile.ZipFile(file) as zipped:
            _check_members(zipped.infolist())
            document = read_document(_read_member(zipped, DOCUMENT), protocol)
            _check_names(zipped.namelist(), document)
            yield EntryFile(zipped, document)
    except (ReplayError, ArchiveError) as error:
        raise ReplayError(f"{path}: {error} {_REMEDY}") from None
    except HotlapError:  # not of the entry
        raise
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except _ZIP_ERRORS as error:
        raise ReplayError(f"{path}: is damaged or not a zip ({one_line(error)}). {_REMEDY}") from None


def _read_member(zipped: zipfile.ZipFile, name: str) -> bytes:
    """A member, read in pieces: a bounded file gives no more at once."""
    with zipped.open(name) as file:
        return b"".join(iter(lambda: file.read(_PIECE_BYTES), b""))


def _check_members(infos: list[zipfile.ZipInfo]) -> None:
    """Refuse members that are too large, encrypted or not ours, before any is read."""
    sizes = {info.orig_filename: info.file_size for info in infos}
    if DOCUMENT not in sizes or len(sizes) != len(infos):
        raise ReplayError(f"must hold {DOCUMENT} and every member once.")
    for info in infos:
        if info.filename != info.orig_filename:  # zipfile cuts a name at a NUL: it would read another member
            raise ReplayError(f"{info.orig_filename!a:.60}: does not belong to an entry.")
        if info.flag_bits & 0x1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ReplayError(f"{info.orig_filename!a:.60}: is encrypted, or neither stored nor deflated.")
    actions = sum(size for name, size in sizes.items() if name.endswith(ACTIONS))
    limits = {DOCUMENT: MAX_DOCUMENT_BYTES, MODEL: MAX_MODEL_BYTES}
    if actions > MAX_ACTIONS_BYTES or any(sizes.get(name, 0) > limit for name, limit in limits.items()):
        raise ReplayError("claims more bytes than an entry may have.")


def _check_names(names: Sequence[str], document: EntryDocument) -> None:
    """Each track has its drives, and nothing else is there."""
    wanted = {DOCUMENT, *(track + ACTIONS for track in document.laps)}
    if document.overtaking:
        wanted.add(OVERTAKING + ACTIONS)
    for name in sorted(wanted.symmetric_difference(names) - {MODEL}):
        raise ReplayError(f"{name!a:.60}: {'is missing' if name in wanted else 'does not belong to an entry'}.")


def read_document(content: bytes, protocol: Protocol) -> EntryDocument:
    """The claims of an entry, complete and of this protocol and simulator; ReplayError where they are not."""
    data = from_json(content, DOCUMENT)
    if not isinstance(data, dict) or data.get("format") != FORMAT or set(data) != _FIELDS:
        raise ReplayError(f"{DOCUMENT}: must have the format {FORMAT} and its fields.")
    name = check_name(data["name"])
    for field, here in identify(name, protocol).items():
        if data[field] != here or type(data[field]) is not type(here):
            raise ReplayError(f"{field}: is {data[field]!r:.40}; the benchmark here has {here!r}.")
    parts = data["parts"]
    if not isinstance(parts, list) or not parts or [one for one in protocol.parts if one in parts] != parts:
        raise ReplayError(f"parts: must be some of {', '.join(protocol.parts)}, in this order, got {parts!r:.60}.")
    laps, passings = _read_laps(data["laps"], protocol, parts), _read_passings(data[OVERTAKING], protocol, parts)
    return EntryDocument(name, tuple(parts), laps, passings)


def check_name(name: object) -> str:
    """The name of an entry; ReplayError for one that cannot be shown."""
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= MAX_NAME_CHARS or not name.isprintable():
        raise ReplayError(f"name: must have 1 to {MAX_NAME_CHARS} printable characters, got {name!r:.80}.")
    return name


def _read_laps(data: Any, protocol: Protocol, parts: Sequence[str]) -> dict[str, list[LapClaim]]:
    tracks = {starts.track_id: starts for starts in protocol.tracks_of(parts)}
    if not isinstance(data, dict):
        raise ReplayError("laps: must be an object of tracks.")
    for track in sorted(set(data).symmetric_difference(tracks)):
        raise ReplayError(f"laps: {track!r:.40} {'is missing' if track in tracks else 'is no track of its parts'}.")
    return {
        track: [LapClaim(*row) for row in _rows(data[track], len(starts.seeds), track, _is_lap_row)]
        for track, starts in tracks.items()
    }


def _read_passings(data: Any, protocol: Protocol, parts: Sequence[str]) -> list[PassingClaim]:
    if OVERTAKING not in parts:
        if data is not None:
            raise ReplayError(f"{OVERTAKING}: must be null, since the entry does not have this part.")
        return []
    return [PassingClaim(*row) for row in _rows(data, len(protocol.scenarios), OVERTAKING, _is_passing_row)]


def _rows(data: Any, count: int, where: str, is_row: Any) -> list[Any]:
    if not isinstance(data, list) or len(data) != count:
        got = len(data) if isinstance(data, list) else type(data).__name__
        raise ReplayError(f"{where}: must have {count} rows, one for each start, got {got}.")
    for number, row in enumerate(data):
        if not (isinstance(row, list) and len(row) == 3 and is_row(*row)):
            raise ReplayError(f"{where}: row {number} makes no sense, got {row!r:.60}.")
    return data


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_TICKS


def _is_lap_row(num_runs: Any, time_s: Any, is_clean: Any) -> bool:
    is_time = time_s is None or (type(time_s) in (int, float) and 0.0 < time_s < MAX_TICKS)
    return _is_count(num_runs) and is_time and type(is_clean) is bool and not (time_s is None and is_clean)


def _is_passing_row(num_runs: Any, is_safe: Any, is_overtake: Any) -> bool:
    return _is_count(num_runs) and type(is_safe) is bool and type(is_overtake) is bool
