"""Computes what a sweep takes and costs on 1 to 1,000 machines from figures measured on one.

python benchmarks/scale_cost.py --runs 3000 --run-s 322 --slots 2 --price 0.10 [--json]
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

MACHINES = (1, 10, 100, 1000)
HOUR_S = 3600.0


@dataclass(frozen=True)
class Assumptions:
    """One sweep and one kind of machine. experiments/2026-11-15-sweeps.md has the measured defaults."""

    runs: int  # trials times seeds
    run_s: float  # measured: one run, while `slots` of them train on a machine
    slots: int  # runs at a time on a machine
    slowdown: float  # how much longer a run takes than `run_s`, on a machine with more or fewer slots
    task_s: float  # measured: what a run costs beyond its training, on the cluster
    scheduler_s: float  # measured: time of the one scheduling process per run
    start_s: float  # assumed: until a rented machine runs its first task
    price: float  # assumed: of one machine for an hour


@dataclass(frozen=True)
class Estimate:
    """What the sweep takes on a number of machines; `efficiency` is the speed-up per machine."""

    machines: int
    wall_s: float
    speedup: float
    efficiency: float
    machine_hours: float
    cost: float


def estimate(given: Assumptions, machines: int) -> Estimate:
    """Runs come in waves of as many as there are slots; one process hands them all out, which bounds the rate."""
    wall_s, one_s = wall_time(given, machines), wall_time(given, 1)
    hours = machines * wall_s / HOUR_S
    speedup = one_s / wall_s
    return Estimate(machines, wall_s, speedup, speedup / machines, hours, hours * given.price)


def wall_time(given: Assumptions, machines: int) -> float:
    """Seconds from renting the machines to the last result. The last wave may be partly empty."""
    waves = math.ceil(given.runs / (machines * given.slots))
    trained_s = waves * (given.run_s * given.slowdown + given.task_s)
    return given.start_s + max(trained_s, given.runs * given.scheduler_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3000, help="trials times seeds")
    parser.add_argument("--run-s", type=float, default=322.0, help="seconds of one run, with as many at a time")
    parser.add_argument("--slots", type=int, default=2, help="runs at a time on a machine")
    parser.add_argument("--slowdown", type=float, default=1.0, help="of a run against --run-s")
    parser.add_argument("--task-s", type=float, default=0.17, help="seconds per run beyond training")
    parser.add_argument("--scheduler-s", type=float, default=0.014, help="seconds of the scheduling process per run")
    parser.add_argument("--start-s", type=float, default=120.0, help="seconds until a machine is ready")
    parser.add_argument("--price", type=float, default=0.10, help="of a machine for an hour")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("json")
    given = Assumptions(**options)
    bad = [name for name, value in asdict(given).items() if not value >= 0 or (name in ("runs", "slots") and not value)]
    if bad or not given.run_s > 0:
        print(f"scale_cost: {', '.join(bad) or 'run_s'} must be positive.", file=sys.stderr)
        return 2
    found = [estimate(given, machines) for machines in MACHINES]
    if as_json:
        print(json.dumps({"assumptions": asdict(given), "estimates": [asdict(each) for each in found]}))
        return 0
    print("| machines | wall time | speed-up | efficiency | machine hours | cost |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for each in found:
        cells = (
            f"{each.machines:,}",
            f"{each.wall_s / HOUR_S:,.2f} h",
            f"{each.speedup:,.1f}",
            f"{100.0 * each.efficiency:.0f} %",
            f"{each.machine_hours:,.0f}",
            f"{each.cost:,.2f}",
        )
        print(f"| {' | '.join(cells)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
