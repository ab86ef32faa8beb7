"""Tables of training runs in Markdown, for the README: python benchmarks/tables.py RUN… [--best]."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from hotlap.cli.run_records import read_run
from hotlap.drivers.driver import make_driver
from hotlap.errors import HotlapError
from hotlap.evaluation.laps import evaluate
from hotlap.evaluation.records import Figures, RunRecord, group_runs
from hotlap.evaluation.tables import run_table, to_markdown
from hotlap.optimal.store import find_reference
from hotlap.tracks.registry import load_track

EPISODES = 100
# Not the one by which runs choose their best model, which would flatter it.
SEED = 2_000_000_011


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each kind of run; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs of one environment and track")
    parser.add_argument(
        "--best",
        action="store_true",
        help=f"measure each racer's best model now, over {EPISODES} random starts, instead of quoting the final one",
    )
    asked = parser.parse_args(arguments)
    try:
        records = [read_run(run) for run in asked.runs]
        if asked.best:
            records = [measure_best(record) for record in records]
        groups = group_runs(records)
    except HotlapError as error:
        print(f"tables: {error}", file=sys.stderr)
        return 2
    for group in groups:
        print(f"{group.label} on {records[0].track or records[0].environment}\n")
        print(to_markdown(run_table(group.runs)))
    return 0


def measure_best(record: RunRecord) -> RunRecord:
    """The racer's run with the figures of its best model in place of its final one's."""
    if record.track is None:
        return record
    found = evaluate(make_driver(str(record.folder)), record.track, episodes=EPISODES, start="random", seed=SEED)
    reference = find_reference(load_track(record.track))
    found = found.against(reference.lap_time_s) if reference else found
    figures = Figures(
        step=record.step,
        mean_return=found.mean_reward,
        completion_rate=found.completion_rate,
        clean_lap_rate=found.clean_lap_rate,
        median_lap_s=found.median_lap_time_sec,
        gap=found.gap_to_optimal,
    )
    return replace(record, final=figures)


if __name__ == "__main__":
    sys.exit(main())
