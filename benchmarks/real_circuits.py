"""Drives circuits from track files and prints a table: python benchmarks/real_circuits.py FILE.csv… [--driver NAME].

The files are centrelines in metres as in the TUM racetrack database (x, y, width right, width left), which is not part
of this project. Each is imported as `hotlap tracks import` does, into a folder that is deleted afterwards. Solving the
optimal laps takes most of the time.
"""

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hotlap.errors import HotlapError
from hotlap.evaluation.evaluate import Evaluation, evaluate
from hotlap.models.shipped_models import GENERALIST, GENERALIST_STARTS, START_SEED
from hotlap.optimal.reference import find_or_solve_reference
from hotlap.reports.formatting import MISSING, percent, seconds, signed_percent
from hotlap.reports.tables import Table, to_markdown
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.registry import load_track, save_track

COLUMNS = ("circuit", "length", "completed", "clean laps", "median lap", "optimal lap", "gap")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.csv")
    parser.add_argument("--driver", default=GENERALIST, help="a driver's name or a model file")
    parser.add_argument("--starts", type=int, default=GENERALIST_STARTS, help="random starts on each circuit")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        os.environ["HOTLAP_HOME"] = home  # read whenever a track is looked up
        try:
            print(make_table(options.files, options.driver, options.starts))
        except HotlapError as error:
            print(f"real_circuits: {error}", file=sys.stderr)
            return 2
    return 0


def make_table(files: Sequence[Path], driver: str, num_starts: int) -> str:
    """One row for each file, and the medians, as markdown."""
    rows, found = [], []
    for file in files:
        track_id = f"circuit-{file.stem.lower()}"
        save_track(track_id, import_centreline(file), f"imported from {file.name}")
        figures, optimal_s = drive(driver, track_id, num_starts)
        found.append(figures)
        length_m = load_track(track_id).nodes.length_m
        rows.append([file.stem, f"{length_m:,.0f} m", *cells(figures), seconds(optimal_s), gap(figures.gap_to_optimal)])
    return to_markdown(Table(list(COLUMNS), [*rows, summary(found)]))


def drive(driver: str, track_id: str, num_starts: int) -> tuple[Evaluation, float | None]:
    """The figures of a driver on a track, and the optimal lap time."""
    found = evaluate(find_driver(driver, track_id), track_id, episodes=num_starts, start="random", seed=START_SEED)
    reference = find_or_solve_reference(load_track(track_id), lambda text: print(text, file=sys.stderr))
    return (found, None) if reference is None else (found.against(reference.lap_time_s), reference.lap_time_s)


def cells(figures: Evaluation) -> list[str]:
    """What was driven."""
    return [percent(figures.completion_rate), percent(figures.clean_lap_rate), seconds(figures.median_lap_time_sec)]


def gap(value: float | None) -> str:
    """The gap to the optimal lap, if any lap was clean."""
    return MISSING if value is None else signed_percent(value)


def summary(found: Sequence[Evaluation]) -> list[str]:
    """The last row: circuits completed from every start, mean fraction of clean laps, median gap."""
    whole = sum(figures.completion_rate == 1.0 for figures in found)
    clean = statistics.fmean(figures.clean_lap_rate or 0.0 for figures in found)
    gaps = [figures.gap_to_optimal for figures in found if figures.gap_to_optimal is not None]
    middle = gap(statistics.median(gaps) if gaps else None)
    return ["**together**", "", f"**{whole} of {len(found)}**", f"**{percent(clean)}**", "", "", f"**{middle}**"]


if __name__ == "__main__":
    sys.exit(main())
