"""The table of the benchmark: the drivers that ship, recorded results, the optimum, and entries."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from importlib.resources import files
from typing import Any, Literal

from hotlap.benchmark.entry_file import identify
from hotlap.benchmark.figures import EntryFigures, LapFigures, PassingFigures, measure_entry, read_figures
from hotlap.benchmark.lap_replays import replay_laps
from hotlap.benchmark.overtaking_replays import replay_overtaking
from hotlap.benchmark.protocol import OVERTAKING, Protocol
from hotlap.benchmark.recording import DriverOn, OnProgress, Recording, WithoutEyes, record_protocol
from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import Driver
from hotlap.models.shipped_models import SHIPPED_NAMES, shipped_path
from hotlap.reports.formatting import MISSING, percent, seconds, signed_percent, whole_percent
from hotlap.reports.tables import Table
from hotlap.runs.find_driver import find_driver

Kind = Literal["shipped", "recorded", "solved", "entry", "model"]
CASUAL, CASUAL_WITH_EYES, OPTIMUM = "casual", "casual with eyes", "optimum"
KINDS: Mapping[Kind, str] = {
    "shipped": "comes with Hotlap",
    "recorded": "recorded runs",
    "solved": "solved, not driven",
    "entry": "an entry",
    "model": "an entry with its model",
}
LAP_HEADS = ["driver", "what it is", "starts", "completed", "clean", "median gap", "worst gap", "score"]
PASSING_HEADS = ["driver", "what it is", "safe", "overtakes", "touches", "at fault", "leaves the road"]
TRACK_HEADS = ["track", "starts", "completed", "clean", "median lap", "median gap", "worst gap", "score"]


@dataclass(frozen=True)
class Row:
    """One driver of the table."""

    name: str
    kind: Kind
    figures: EntryFigures
    fingerprint: str = ""  # of what was driven; another one means that a shipped driver is driven again
    note: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def read_row(data: Mapping[str, Any]) -> Row:
    """A row that `as_dict` gave."""
    return Row(**{**data, "figures": read_figures(data["figures"])})


def shipped_names() -> tuple[str, ...]:
    """The drivers that ship and drive: none has to be named here."""
    return (CASUAL, CASUAL_WITH_EYES, *SHIPPED_NAMES)


def shipped_driver(name: str, track_id: str) -> Driver:
    """A new driver of a shipped name."""
    if name == CASUAL:
        return WithoutEyes(CasualDriver())
    return find_driver(CASUAL if name == CASUAL_WITH_EYES else name, track_id)


def parts_of(name: str, protocol: Protocol) -> tuple[str, ...]:
    """The parts that a shipped driver can drive: those of whose tracks it has a model for each."""
    roads = {part: [starts.track_id for starts in tracks] for part, tracks in protocol.laps.items()}
    roads |= {OVERTAKING: sorted({one.track for one in protocol.scenarios})}
    if name in SHIPPED_NAMES:
        roads = {part: tracks for part, tracks in roads.items() if all(shipped_path(name, one) for one in tracks)}
    return tuple(part for part in protocol.parts if part in roads)


def fingerprint(name: str, protocol: Protocol) -> str:
    """Sixteen digits that change with the protocol, the simulator and the models of a shipped driver."""
    found = sha256(json.dumps(identify(name, protocol)).encode())
    tracks = sorted({one.track_id for one in protocol.tracks_of(protocol.parts)})
    for path in sorted({path for track in tracks if (path := shipped_path(name, track))}):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def measure(
    driver_on: DriverOn,
    protocol: Protocol,
    parts: Sequence[str],
    *,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> tuple[Recording, Any, Any, EntryFigures]:
    """Let a driver drive some parts; what it did, its laps and passings driven again from that, and the figures."""
    recording = record_protocol(driver_on, protocol, parts, num_threads=num_threads, progress=progress)
    tracks = protocol.tracks_of(parts)
    laps = {one.track_id: replay_laps(one, recording.laps[one.track_id], num_threads) for one in tracks}
    has_passings = bool(recording.overtaking)
    passings = replay_overtaking(protocol.scenarios, recording.overtaking, num_threads) if has_passings else None
    return recording, laps, passings, measure_entry(protocol, laps, passings)


def measure_shipped(name: str, protocol: Protocol, num_threads: int | None = None) -> Row:
    """Drive a shipped driver through all parts that it can drive."""
    parts = parts_of(name, protocol)
    figures = measure(lambda track: shipped_driver(name, track), protocol, parts, num_threads=num_threads)[3]
    return Row(name, "shipped", figures, fingerprint(name, protocol))


def optimum_row(protocol: Protocol) -> Row:
    """The solved optimum: by definition without a gap."""
    zero = LapFigures(0, 1.0, 1.0, 0.0, 0.0, 0.0)
    return Row(OPTIMUM, "solved", EntryFigures({}, dict.fromkeys(protocol.laps, zero), None))


def stored_rows() -> list[Row]:
    """The rows that ship: drivers, then recorded results."""
    content = files("hotlap.benchmark").joinpath("data/table.json").read_text(encoding="utf-8")
    return [read_row(row) for row in json.loads(content)["rows"]]


def complete_rows(protocol: Protocol, on_drive: Any = None, num_threads: int | None = None) -> list[Row]:
    """The rows of all shipped drivers, of recorded results and of the optimum.

    A driver that is not stored, or was stored for another protocol or model, is driven; `on_drive` gets its name.
    """
    stored = {row.name: row for row in stored_rows()}
    rows = []
    for name in shipped_names():
        row = stored.get(name)
        if row is None or row.fingerprint != fingerprint(name, protocol):
            if on_drive:
                on_drive(name)
            row = measure_shipped(name, protocol, num_threads)
        rows.append(row)
    return [*rows, *(row for row in stored.values() if row.kind == "recorded"), optimum_row(protocol)]


def lap_table(rows: Sequence[Row], part: str) -> Table:
    """A part of the laps, the best score first; rows without one, by their gap, after them."""
    found = [(row, row.figures.parts[part]) for row in rows if part in row.figures.parts]
    found.sort(key=lambda pair: (pair[1].score is None, pair[1].score or 0.0, pair[1].median_gap or 0.0, pair[0].name))
    return Table(LAP_HEADS, [[row.name, KINDS[row.kind], *_lap_cells(one)] for row, one in found])


def part_notes(rows: Sequence[Row], part: str) -> list[str]:
    """What has to be said of the rows of a part."""
    return [f"{row.name}: {row.note}." for row in rows if row.note and part in row.figures.parts]


def _lap_cells(one: LapFigures) -> list[str]:
    starts = f"{one.starts:,}" if one.starts else MISSING
    rates = [percent(one.completed_rate), percent(one.clean_rate)] if one.starts else [MISSING, MISSING]
    gaps = [MISSING if value is None else signed_percent(value) for value in (one.median_gap, one.worst_gap)]
    return [starts, *rates, *gaps, MISSING if one.score is None else f"{100.0 * one.score:.2f}"]


def passing_table(rows: Sequence[Row]) -> Table:
    """The overtaking scenarios, the most overtakes first."""
    found = [(row, one) for row in rows if (one := row.figures.overtaking) is not None]
    found.sort(key=lambda pair: (-pair[1].overtake_rate, pair[0].name))
    return Table(PASSING_HEADS, [[row.name, KINDS[row.kind], *_passing_cells(one)] for row, one in found])


def _passing_cells(one: PassingFigures) -> list[str]:
    safe = _with_interval(one.safe_rate, one.safe_low, one.safe_high)
    overtakes = _with_interval(one.overtake_rate, one.overtake_low, one.overtake_high)
    return [safe, overtakes, *(percent(rate) for rate in (one.contact_rate, one.at_fault_rate, one.off_road_rate))]


def _with_interval(rate: float, low: float, high: float) -> str:
    return f"{percent(rate)} ({whole_percent(low)} to {whole_percent(high)})"


def track_table(figures: EntryFigures) -> Table:
    """An entry on each track."""
    rows = []
    for track, one in figures.tracks.items():
        starts, completed, clean, *rest = _lap_cells(one)
        rows.append([track, starts, completed, clean, seconds(one.median_lap_s), *rest])
    return Table(TRACK_HEADS, rows)


def part_tables(rows: Sequence[Row], protocol: Protocol) -> dict[str, Table]:
    """The tables of all parts that a row has."""
    tables = {part: lap_table(rows, part) for part in protocol.laps}
    tables |= {OVERTAKING: passing_table(rows)} if protocol.scenarios else {}
    return {part: table for part, table in tables.items() if table.rows}


def marked(row: Row, rows: Sequence[Row]) -> Row:
    """A row whose name no other has: an entry does not pass for a driver that ships."""
    taken = {one.name for one in rows}
    number = 2
    name = row.name if row.name not in taken else f"{row.name} (entry)"
    while name in taken:
        name, number = f"{row.name} (entry {number})", number + 1
    return replace(row, name=name)
