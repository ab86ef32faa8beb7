"""Drives every driver that ships through the benchmark: python benchmarks/benchmark_table.py --json FILE.json.

Recorded runs of PPO, SAC and A2C come from benchmarks/results. The rows are also written into the package, where
`hotlap benchmark` reads them. `--draw` draws the protocol anew: a new version of the benchmark.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ablations
from hotlap.atomic_files import writable, write_atomically
from hotlap.benchmark.figures import EntryFigures, LapFigures
from hotlap.benchmark.protocol import (
    BUILT_IN,
    TEST,
    VERSION,
    Protocol,
    TrackStarts,
    encode_protocol,
    load_protocol,
)
from hotlap.benchmark.table import (
    Row,
    fingerprint,
    measure_shipped,
    optimum_row,
    part_notes,
    part_tables,
    read_row,
    shipped_names,
    stored_rows,
)
from hotlap.errors import HotlapError
from hotlap.evaluation.evaluate import Evaluation
from hotlap.evaluation.overtaking_scenarios import draw_scenarios
from hotlap.reports.tables import to_markdown, to_text
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import list_tracks, load_track, split_ids
from results_file import ROOT, write_results

DATA = ROOT / "src" / "hotlap" / "benchmark" / "data"
RECORDED = {"PPO": "racer-ppo", "SAC": "racer-sac", "A2C": "racer-a2c"}  # result files
STARTS = {BUILT_IN: 100, TEST: 20}  # on each track
DRAW_SEED = 32


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive all and print the tables; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="drive all and write the figures")
    parser.add_argument("--all", action="store_true", help="drive also those whose models did not change")
    parser.add_argument("--draw", action="store_true", help="draw the protocol and write it into the package")
    options = parser.parse_args(arguments)
    if options.json is None and not options.draw:
        parser.error("nothing to do: give --json or --draw")
    try:
        if options.draw:
            draw()
        if options.json is not None:
            measure(writable(options.json), options.all)
    except HotlapError as error:
        print(f"benchmark_table: {error}", file=sys.stderr)
        return 2
    return 0


def draw() -> None:
    """Write the protocol, and say its digest, which belongs into protocol.py."""
    rng = np.random.default_rng(DRAW_SEED)
    tracks = {BUILT_IN: [one.track_id for one in list_tracks() if one.source == "built-in"], TEST: split_ids("test")}
    laps = {
        part: tuple(
            TrackStarts(
                track, track_digest(load_track(track).nodes), tuple(rng.integers(2**32, size=STARTS[part]).tolist())
            )
            for track in names
        )
        for part, names in tracks.items()
    }
    protocol = Protocol(laps, tuple(draw_scenarios()))
    write_atomically(DATA / f"protocol-{VERSION}.json", encode_protocol(protocol))
    print(f"DIGEST = {protocol.digest!r}")


def measure(path: Path, drives_all: bool) -> None:
    """Drive what ships and is new, or all of it; write the rows and print the tables."""
    protocol = load_protocol()
    stored = {} if drives_all else {row.name: row for row in stored_rows()}
    rows = []
    for name in shipped_names():
        row = stored.get(name)
        if row is None or row.fingerprint != fingerprint(name, protocol):
            print(name, file=sys.stderr, flush=True)
            row = measure_shipped(name, protocol)
        rows.append(row)
    rows += [recorded_row(label, RECORDED[label]) for label in RECORDED]
    found = {"benchmark": protocol.version, "digest": protocol.digest, "rows": [row.as_dict() for row in rows]}
    write_results(path, found)
    write_atomically(DATA / "table.json", (json.dumps(found, indent=1) + "\n").encode())
    for part, table in part_tables(rows, protocol).items():
        print(f"{part}\n{to_text(table)}")


def recorded_row(label: str, name: str) -> Row:
    """The runs of a recipe, whose models do not ship: a track, and starts of their own."""
    data = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    runs = [Evaluation(**run["evaluation"]) for run in data["runs"] if run["change"] == ablations.BASE]
    gaps = [run.gap_to_optimal for run in runs if run.gap_to_optimal is not None]
    figures = LapFigures(
        starts=sum(run.episodes for run in runs),
        completed_rate=statistics.fmean(run.completion_rate for run in runs),
        clean_rate=statistics.fmean((run.clean_lap_rate or 0.0) * run.laps / run.episodes for run in runs),
        median_gap=statistics.median(gaps),
        worst_gap=max(gaps),
        score=None,
    )
    note = f"the recipe {name}, {len(runs)} seeds, on {runs[0].track} only and from other starts"
    return Row(label, "recorded", EntryFigures({}, {BUILT_IN: figures}, None), note=note)


def describe(results: Mapping[str, Any], part: str) -> str:
    """A part's table for the documentation."""
    protocol = load_protocol()
    rows = [*(read_row(row) for row in results["rows"]), optimum_row(protocol)]
    notes = "".join(f"\n{note}\n" for note in part_notes(rows, part))
    return to_markdown(part_tables(rows, protocol)[part]) + notes


if __name__ == "__main__":
    sys.exit(main())
