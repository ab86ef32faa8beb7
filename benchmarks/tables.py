"""Prints tables of training runs in Markdown: python benchmarks/tables.py RUN… [--best] [--json FILE.json]."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hotlap.atomic_files import writable
from hotlap.errors import HotlapError
from hotlap.reports.run_loader import read_run
from hotlap.reports.run_record import EvaluationFigures, RunRecord, group_runs
from hotlap.reports.tables import run_table, to_markdown
from hotlap.runs.find_driver import find_model
from hotlap.training.policy_evaluation import FINAL_SEED, evaluate_model
from results_file import write_results

EPISODES = 100


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each group of runs; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs of one environment and track")
    parser.add_argument(
        "--best",
        action="store_true",
        help=f"evaluate each run's best model now, over {EPISODES} episodes, instead of quoting the final model; runs "
        "on the racer quote their best model anyway",
    )
    parser.add_argument("--json", type=Path, metavar="FILE.json", help="write the figures of every run, too")
    options = parser.parse_args(arguments)
    try:
        records = [read_run(run) for run in options.runs]
        if options.best:
            records = [evaluate_best(record) for record in records]
        groups = group_runs(records)
        if options.json is not None:
            write_results(writable(options.json), {"runs": [describe(record) for record in records]})
    except HotlapError as error:
        print(f"tables: {error}", file=sys.stderr)
        return 2
    for group in groups:
        print(f"{group.label} on {records[0].track or records[0].environment}\n")
        print(to_markdown(run_table(group.runs)))
    return 0


def describe(record: RunRecord) -> dict[str, Any]:
    """The figures of a run, for JSON."""
    solved, found = record.solved_at, record.figures
    return {
        "algorithm": record.algorithm,
        "environment": record.environment,
        "track": record.track,
        "seed": record.seed,
        "steps": record.step,
        "training_s": record.training_s,
        "solved_at_step": None if solved is None else solved[0],
        **({} if found is None else asdict(found)),
    }


def evaluate_best(record: RunRecord) -> RunRecord:
    """The run with the returns of its best model instead of its final one."""
    if record.track is not None:
        return record
    found = evaluate_model(find_model(str(record.folder)), EPISODES, FINAL_SEED)
    figures = EvaluationFigures(
        step=record.step,
        mean_return=found["mean_reward"],
        return_std=found["std_reward"],
        episode_length=found["mean_episode_length"],
    )
    return replace(record, final=figures)


if __name__ == "__main__":
    sys.exit(main())
