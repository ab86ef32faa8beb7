"""Measures how safely drivers overtake: python benchmarks/overtaking.py DRIVER… [--json FILE.json].

2,400 scenarios of 8 s are in overtaking_scenarios.json: a slower car ahead on a built-in track, the driver behind it.
A driver is a name (champion, generalist, casual), a run or a model file. `--draw FILE.json` writes the scenarios anew.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.errors import ConfigError, HotlapError
from hotlap.evaluation.overtaking import OvertakingRates, OvertakingResult, measure_overtaking
from hotlap.evaluation.overtaking_scenarios import digest_scenarios, draw_scenarios, read_scenarios, write_scenarios
from hotlap.reports.formatting import percent, whole_percent
from hotlap.reports.tables import Table, to_text
from hotlap.runs.find_driver import find_driver
from hotlap.sim.version import RACE_VERSION
from results_file import write_results

SCENARIOS = Path(__file__).with_name("overtaking_scenarios.json")
HEADS = ["driver", "safe", "overtakes", "touches", "at fault", "leaves the road", "faster alone"]
# What others published of another car in another world, the simulator of F1Tenth: End2Race, arXiv 2509.16894.
PUBLISHED = {"label": "End2Race, in another simulator", "safe_rate": 0.942, "overtake_rate": 0.592}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the drivers and print their rates; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drivers", nargs="*", metavar="DRIVER", help="a name, a run or a model file")
    parser.add_argument("--scenarios", type=Path, metavar="FILE.json", default=SCENARIOS, help="other scenarios")
    parser.add_argument("--first", type=int, metavar="N", help="drive only the first N scenarios")
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures")
    parser.add_argument("--draw", type=Path, metavar="FILE.json", help="draw the scenarios and write them")
    options = parser.parse_args(arguments)
    if not options.drivers and options.draw is None:
        parser.error("nothing to do: name a driver, or give --draw")
    try:
        if options.draw is not None:
            write_scenarios(writable(options.draw), draw_scenarios())
        if options.drivers:
            measure(options.drivers, options.scenarios, options.first, options.json and writable(options.json))
    except HotlapError as error:
        print(f"overtaking: {error}", file=sys.stderr)
        return 2
    return 0


def measure(drivers: Sequence[str], file: Path, first: int | None, out: Path | None) -> None:
    """Print the rates of drivers, and write them."""
    scenarios = read_scenarios(file)
    if first is not None and not 1 <= first <= len(scenarios):
        raise ConfigError(f"--first must be from 1 to {len(scenarios)}, got {first}.")
    scenarios, results = scenarios[:first], []
    for driver in drivers:
        print(f"{driver}: {len(scenarios)} scenarios", file=sys.stderr, flush=True)
        results.append(measure_overtaking(driver, scenarios, find_driver))
    if out is not None:
        figures = {"race": RACE_VERSION, "scenarios": digest_scenarios(scenarios)}
        write_results(out, figures | {"drivers": [one.as_dict() for one in results]})
    print(to_text(Table(HEADS, [row(one.driver, asdict(one.overall)) for one in results])), end="")
    for one in results:
        print(f"\n{one.driver} by the line of the car ahead and by track")
        print(to_text(parts_table(one)), end="")


def row(label: str, rates: Mapping[str, Any]) -> list[str]:
    """The rates of a driver, with the columns of HEADS."""
    names = ("contact_rate", "at_fault_rate", "off_road_rate", "faster_rate")
    return [label, with_interval(rates, "safe"), with_interval(rates, "overtake"), *(percent(rates[n]) for n in names)]


def with_interval(rates: Mapping[str, Any], name: str) -> str:
    """A rate with its 95 % interval: 42.3 % (40 % to 44 %)."""
    low, high = (whole_percent(rates[f"{name}_{end}"]) for end in ("low", "high"))
    return f"{percent(rates[f'{name}_rate'])} ({low} to {high})"


def parts_table(found: OvertakingResult) -> Table:
    """The rates of a driver in parts of the scenarios."""
    parts: dict[str, OvertakingRates] = found.by_line | found.by_track
    return Table(HEADS, [row(label, asdict(rates)) for label, rates in parts.items()])


def rows(results: Mapping[str, Any]) -> list[list[str]]:
    """The table of the documentation: a row for each driver of a result file, then the published figures."""
    published = [PUBLISHED["label"], percent(PUBLISHED["safe_rate"]), percent(PUBLISHED["overtake_rate"])]
    missing = ["–"] * (len(HEADS) - len(published))
    return [*(row(one["driver"], one["overall"]) for one in results["drivers"]), [*published, *missing]]


if __name__ == "__main__":
    sys.exit(main())
