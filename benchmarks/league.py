"""Races all drivers that come with Hotlap on the built-in tracks: python benchmarks/league.py --json FILE.json.

The races are those of `hotlap report races`; more drivers can be named, each with as many cars.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.errors import HotlapError
from hotlap.evaluation.league import CARS_PER_DRIVER, LEAGUE_DRIVERS, drive_league
from hotlap.evaluation.race_results import DriverResult, PairResult
from hotlap.models.shipped_models import champion_tracks
from hotlap.reports.formatting import counted
from hotlap.reports.pages.league_page import league_table, pair_table
from hotlap.reports.tables import to_markdown, to_text
from hotlap.runs.race_entries import find_entries
from hotlap.sim.version import RACE_VERSION
from results_file import write_results


def main(arguments: Sequence[str] | None = None) -> int:
    """Drive the league and print its table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help="others than those that come with Hotlap")
    parser.add_argument("--races", type=int, metavar="N", default=60, help="how many races, on all tracks together")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures")
    options = parser.parse_args(arguments)
    written = [f"{name}*{CARS_PER_DRIVER}" for name in (*LEAGUE_DRIVERS, *options.drivers)]
    try:
        out = options.json and writable(options.json)
        found = drive_league(
            lambda track: find_entries(written, track), champion_tracks(), num_races=options.races, progress=show
        )
        if out is not None:
            write_results(out, {"race": RACE_VERSION, **found.as_dict()})
    except HotlapError as error:
        print(f"league: {error}", file=sys.stderr)
        return 2
    print(to_text(league_table(found.drivers)), end="")
    print(to_text(pair_table([one.driver for one in found.drivers], found.pairs)), end="")
    return 0


def show(fraction: float) -> None:
    """Say how far the league is."""
    print(f"\r{100.0 * fraction:5.1f} %", end="\n" if fraction >= 1.0 else "", file=sys.stderr, flush=True)


def describe(results: Mapping[str, Any]) -> str:
    """What a result file says for the documentation: a line on its races, the league table and the pairs."""
    drivers = [DriverResult(**row) for row in results["drivers"]]
    pairs = pair_table([one.driver for one in drivers], [PairResult(**row) for row in results["pairs"]])
    races, cars = counted(results["races"], "race"), counted(sum(one.cars for one in drivers), "car")
    line = f"{races} of {cars} and {counted(results['laps'], 'lap')}:\n"
    return "\n".join([line, to_markdown(league_table(drivers)), to_markdown(pairs)])


if __name__ == "__main__":
    sys.exit(main())
