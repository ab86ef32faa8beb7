"""`hotlap benchmark`: drive the benchmark and write an entry, or verify entries of others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.atomic_files import writable, write_atomically
from hotlap.cli.driver_lookup import DRIVER_NAME
from hotlap.cli.output import Json, counted, print_json, progress_bar
from hotlap.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotlap.benchmark.protocol import Protocol
    from hotlap.benchmark.table import Row

VERIFY, PROTOCOL = "verify", "protocol"  # what the command calls them
ENTRY_NAME, JSON_NAME, PAGE_NAME = "entry.zip", "benchmark.json", "benchmark.html"
_ZIP_BEGIN = b"PK"


def benchmark(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar=f"{DRIVER_NAME} | verify ENTRY… | protocol",
            help="A run, a model file or a driver that comes with Hotlap; or `verify` before entries; or `protocol`.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the entry, the table as JSON and the page. A driver needs one.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="Only one part: built-in, test or overtaking.")] = None,
    name: Annotated[str | None, typer.Option(help="What the entry is called. Default: the driver's name.")] = None,
    threads: Annotated[int | None, typer.Option(help="Number of threads; changes no figure. Default: all.")] = None,
    as_json: Json = False,
) -> None:
    """Drive the fixed protocol of the benchmark and write an entry, with a table of all drivers that ship.

    `hotlap benchmark verify ENTRY` simulates every drive of an entry again, to the bit, and shows where it stands.

    It also takes laps of people: the file that the page's leaderboard gives as a download.

    `hotlap benchmark protocol` prints tracks and starts as JSON, for programs that drive over the bridge.

    Example: hotlap benchmark results/experiments/ppo_seed42 --out out/benchmark
    """
    if threads is not None and not 1 <= threads <= 1024:
        raise ConfigError(f"--threads must be from 1 to 1024, got {threads}.")
    if subjects[0] == VERIFY:
        if part is not None or name is not None:
            raise ConfigError(f"--{'part' if part is not None else 'name'}: an entry has its own. Leave it out.")
        _verify([Path(one) for one in subjects[1:]], out, threads, as_json)
        return
    if subjects == [PROTOCOL]:
        _print_protocol()
        return
    if len(subjects) > 1:
        raise ConfigError(f"{subjects[1]!r:.80}: one driver at a time drives the benchmark. Leave it out.")
    if out is None:
        raise ConfigError("--out: an entry needs a folder. Name one.")
    _enter(subjects[0], out, part, name, threads, as_json)


def _print_protocol() -> None:
    """What a program needs to drive the laps and to write an entry."""
    from hotlap.benchmark.entry_file import identify
    from hotlap.benchmark.protocol import MAX_TICKS, START, load_protocol

    protocol = load_protocol()
    laps = {
        part: {one.track_id: {"road": one.road, "seeds": one.seeds} for one in tracks}
        for part, tracks in protocol.laps.items()
    }
    print_json({**identify("", protocol), "start": START, "max_ticks": MAX_TICKS, "laps": laps})


def _enter(driver: str, out: Path, part: str | None, name: str | None, threads: int | None, as_json: bool) -> None:
    """Let a driver drive, and write its entry, the table and the page."""
    from hotlap.benchmark.entrants import find_entrant
    from hotlap.benchmark.entry_file import check_name, write_entry
    from hotlap.benchmark.protocol import load_protocol
    from hotlap.benchmark.table import Row, measure

    protocol = load_protocol()
    entrant = find_entrant(driver, protocol, part)
    entry_name = check_name(entrant.name if name is None else name)
    for file in (ENTRY_NAME, JSON_NAME, PAGE_NAME):
        writable(out / file)
    with progress_bar(f"{driver}: {', '.join(entrant.parts)}") as progress:
        recording, laps, passings, figures = measure(
            entrant.driver_on, protocol, entrant.parts, num_threads=threads, progress=progress
        )
    write_entry(out / ENTRY_NAME, entry_name, protocol, recording, laps, passings, entrant.model)
    row = Row(entry_name, "model" if entrant.model else "entry", figures)
    _show([row], protocol, out, threads, as_json, {"entry": str(out / ENTRY_NAME)})


def _verify(paths: "Sequence[Path]", out: Path | None, threads: int | None, as_json: bool) -> None:
    """Verify entries of drivers and laps of people, and show their figures."""
    from hotlap.benchmark.figures import measure_entry
    from hotlap.benchmark.protocol import load_protocol
    from hotlap.benchmark.table import Row
    from hotlap.benchmark.verification import verify_entry

    if not paths:
        raise ConfigError("verify: name an entry, or a file of people's laps.")
    protocol, rows = load_protocol(), []
    people: list[dict[str, Any]] = []
    for path in paths:
        if not _is_zip(path):
            people.append(_verify_people(path, protocol, threads, as_json))
            continue
        with progress_bar(f"verifying {path.name}") as progress:
            found = verify_entry(path, protocol, num_threads=threads, progress=progress)
        figures = measure_entry(protocol, found.laps, found.overtaking)
        rows.append(Row(found.name, "model" if found.has_model else "entry", figures))
        typer.echo(f"{path}: verified to the bit: {_describe(found)}", err=True)
    if rows:
        _show(rows, protocol, out, threads, as_json, {"people": people} if people else {})
    elif as_json:
        print_json({"people": people})


def _is_zip(path: Path) -> bool:
    """Whether a file begins as a zip; one that cannot be read is refused later, with its reason."""
    try:
        if not path.is_file():
            return True
        with path.open("rb") as file:
            return file.read(len(_ZIP_BEGIN)) == _ZIP_BEGIN
    except (OSError, ValueError):
        return True


def _describe(found: Any) -> str:
    """What was verified: 300 laps of 3 tracks, 2400 scenarios, driven by the model that it brings."""
    texts = []
    if found.laps:
        texts.append(f"{counted(found.num_laps, 'lap')} of {counted(len(found.laps), 'track')}")
    if found.overtaking is not None:
        texts.append(counted(len(found.overtaking.is_safe), "scenario"))
    if found.has_model:
        texts.append("the laps of the model that it brings")
    return ", ".join(texts) + "."


def _verify_people(path: Path, protocol: "Protocol", threads: int | None, as_json: bool) -> dict[str, Any]:
    from hotlap.benchmark.people import people_table, verify_people
    from hotlap.evaluation.baseline import measure_casual_lap
    from hotlap.reports.tables import to_text

    found = verify_people(path, protocol, measure_casual_lap, threads)
    rest = f", {found.repeated} of them repeated" if found.repeated else ""
    rest += f"; {found.left_out} others left out" if found.left_out else ""
    typer.echo(f"{path}: verified to the bit: {counted(found.replays, 'replay')} of people{rest}.", err=True)
    if not as_json and found.tracks:
        print(to_text(people_table(found)), end="")
    return {"file": str(path), **found.as_dict()}


def _show(
    rows: "Sequence[Row]",
    protocol: "Protocol",
    out: Path | None,
    threads: int | None,
    as_json: bool,
    more: dict[str, Any],
) -> None:
    """Put rows into the table of all that ships; write it, and print it."""
    import json

    from hotlap.benchmark.page import render_page
    from hotlap.benchmark.table import complete_rows, marked, part_notes, part_tables
    from hotlap.reports.tables import to_text
    from hotlap.sim.version import PHYSICS_VERSION, RACE_VERSION

    def say(driver: str) -> None:
        typer.echo(f"hotlap: the table has no figures of {driver} yet: driving it, which takes a minute.", err=True)

    table = complete_rows(protocol, say, threads)
    for row in rows:
        table.append(marked(row, table))
    document = {
        "benchmark": protocol.version,
        "digest": protocol.digest,
        "physics": PHYSICS_VERSION,
        "race": RACE_VERSION,
        "rows": [row.as_dict() for row in table],
    }
    if out is not None:
        write_atomically(writable(out / JSON_NAME), (json.dumps(document, indent=1) + "\n").encode())
        write_atomically(writable(out / PAGE_NAME), render_page(table, protocol).encode())
        more = {**more, "table": str(out / JSON_NAME), "page": str(out / PAGE_NAME)}
    if as_json:
        print_json({**more, "rows": [row.as_dict() for row in table[-len(rows) :]]})
        return
    driven = {
        part for row in rows for part in (*row.figures.parts, *(["overtaking"] if row.figures.overtaking else []))
    }
    for part, one in part_tables(table, protocol).items():
        if part in driven:
            print("\n".join([part, to_text(one) + "".join(f"{note}\n" for note in part_notes(table, part))]))
    for key in ("entry", "table", "page"):
        if key in more:
            print(f"{key}: {more[key]}")
