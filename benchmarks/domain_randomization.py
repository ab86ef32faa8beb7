"""Evaluates drivers trained with and without a drawn grip, in cars of several grips.

usage: python benchmarks/domain_randomization.py --plain RUN … --drawn RUN … [--json benchmarks/results/domain.json]

Each run's best model drives from 200 random starts not used for selection. The gap is that of the median flying lap,
clean or not, of runs that complete at least half of the starts, to the optimal lap of the same car, which is solved
once. Train the runs with `hotlap train --recipe FILE.toml --seed N`: the file has `base = "racer-ppo"` and, for the
drawn grip, the table `[racer.domain]` with `grip_low = 0.8` and `grip_high = 1.1`.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.drivers.driver import Driver
from hotlap.envs.domain import DomainRules
from hotlap.evaluation.evaluate import evaluate
from hotlap.optimal.reference import Reference, find_or_solve_reference
from hotlap.reports.formatting import gap_percent, percent, seconds
from hotlap.reports.tables import Table, to_markdown
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import load_track
from results_file import write_results

TRACK, GRIPS = "track-01", (0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1)
STARTS, START_SEED = 200, 123
MIN_COMPLETED = 0.5  # with fewer laps their median says nothing
KINDS = ("plain", "drawn")
FIGURES = ("completion_rate", "clean_lap_rate", "median_lap_time_sec")  # the lap is the median of the clean ones
HEADS = ["grip", "optimum", *(f"{kind}: {name}" for kind in KINDS for name in ("completed", "clean laps", "gap"))]


def main(arguments: Sequence[str] | None = None) -> None:
    """Evaluate all runs, print the table and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for kind in KINDS:
        parser.add_argument(f"--{kind}", nargs="+", required=True, metavar="RUN")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures")
    asked = parser.parse_args(arguments)
    path = writable(asked.json) if asked.json else None
    found = measure({kind: getattr(asked, kind) for kind in KINDS})
    print(make_table(found), end="")
    if path:
        write_results(path, found)


def measure(runs: dict[str, list[str]]) -> dict[str, Any]:
    """The figures of every run at every grip."""
    optima, rows = {}, []
    drivers = {kind: [find_driver(name) for name in names] for kind, names in runs.items()}
    for grip in GRIPS:
        domain = DomainRules(grip_low=grip, grip_high=grip)
        optimum = find_or_solve_reference(load_track(TRACK), lambda text: print(text, file=sys.stderr), domain.car)
        if optimum is None:
            sys.exit(f"domain_randomization: no optimal lap at grip {grip}.")
        optima[f"{grip:g}"] = optimum.lap_time_s
        rows += [
            _row(kind, number, driver, domain, optimum)
            for kind in KINDS
            for number, driver in enumerate(drivers[kind], 1)
        ]
    return {"track": TRACK, "starts": STARTS, "start_seed": START_SEED, "optimal_lap_s": optima, "rows": rows}


def _row(kind: str, number: int, driver: Driver, domain: DomainRules, optimum: Reference) -> dict[str, Any]:
    found = evaluate(driver, TRACK, episodes=STARTS, start="random", seed=START_SEED, domain=domain)
    gap = statistics.median(found.lap_times_s) / optimum.lap_time_s - 1.0 if found.lap_times_s else None
    figures = {name: getattr(found, name) for name in FIGURES}
    return {"kind": kind, "run": number, "grip": domain.grip_low, **figures, "gap": gap}


def make_table(found: dict[str, Any]) -> str:
    """Means over the runs of the rates, and of the gaps of those runs that have one."""
    lines = []
    for grip, optimal_s in found["optimal_lap_s"].items():
        line = [grip, seconds(optimal_s)]
        for kind in KINDS:
            rows = [row for row in found["rows"] if row["kind"] == kind and f"{row['grip']:g}" == grip]
            gaps = [row["gap"] for row in rows if row["completion_rate"] >= MIN_COMPLETED]
            line += [percent(statistics.mean(row[name] or 0.0 for row in rows)) for name in FIGURES[:2]]
            line.append(gap_percent(statistics.mean(gaps) if gaps else None))
        lines.append(line)
    return to_markdown(Table(HEADS, lines))


if __name__ == "__main__":
    main()
