"""Tables of runs with their median, worst and interquartile mean; also as Markdown and plain text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hotlap.reports.formatting import (
    MISSING,
    decimal,
    percent,
    seconds,
    signed_percent,
    whole,
    whole_seconds,
)
from hotlap.reports.run_record import RunRecord
from hotlap.reports.statistics import CONFIDENCE, Summary, summarise

BOOTSTRAP_SEED = 0  # fixed, so that the same runs give the same table


@dataclass(frozen=True)
class Column:
    """A figure that every run has in a column of its own."""

    head: str
    pick: Callable[[RunRecord], float | None]
    show: Callable[[float], str]
    is_higher_better: bool | None = None  # None: not summarised over runs
    has_mean: bool = False  # whether a mean over runs is meaningful


@dataclass(frozen=True)
class Table:
    """Rows of text: a name, then numbers. The last `num_summary_rows` summarise the others."""

    heads: list[str]
    rows: list[list[str]]
    num_summary_rows: int = 0


def run_table(records: Sequence[RunRecord]) -> Table:
    """One row per run and, for several runs, rows that summarise them."""
    columns = columns_for(records)
    rows = [[_name(record), *(_cell(column, column.pick(record)) for column in columns)] for record in records]
    if len(records) < 2:
        return Table(["seed", *(column.head for column in columns)], rows)
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    summaries = [_summary(column, records, rng) for column in columns]
    pairs = list(zip(columns, summaries, strict=True))
    summary_rows = [
        ["median", *(_cell(column, summary.median if summary else None, "") for column, summary in pairs)],
        ["worst", *(_cell(column, summary.worst if summary else None, "") for column, summary in pairs)],
        ["interquartile mean", *(_mean_cell(column, summary) for column, summary in pairs)],
        [f"its {100.0 * CONFIDENCE:.0f} % interval", *(_interval_cell(column, summary) for column, summary in pairs)],
    ]
    return Table(["seed", *(column.head for column in columns)], rows + summary_rows, len(summary_rows))


def columns_for(records: Sequence[RunRecord]) -> list[Column]:
    """The figures that runs of this environment have."""
    columns = [
        Column("steps", lambda record: record.step, whole),
        Column("training", lambda record: record.training_s, whole_seconds, is_higher_better=False),
    ]
    if records[0].track is not None:
        return columns + _RACER
    threshold = records[0].reward_threshold
    if threshold is not None:
        columns += [
            Column(f"steps to {threshold:g}", _steps_to_solve, whole, is_higher_better=False),
            Column(f"time to {threshold:g}", _seconds_to_solve, whole_seconds, is_higher_better=False),
        ]
    return columns + _RETURNS


def _pick(name: str) -> Callable[[RunRecord], float | None]:
    def pick(record: RunRecord) -> float | None:
        value: float | None = getattr(record.figures, name, None)
        return value

    return pick


_RACER = [
    Column("completed", _pick("completion_rate"), percent, is_higher_better=True, has_mean=True),
    Column("clean laps", _pick("clean_lap_rate"), percent, is_higher_better=True, has_mean=True),
    Column("median lap", _pick("median_lap_s"), seconds, is_higher_better=False, has_mean=True),
    Column("gap to optimum", _pick("gap"), signed_percent, is_higher_better=False, has_mean=True),
]
_RETURNS = [
    Column("return", _pick("mean_return"), decimal, is_higher_better=True, has_mean=True),
    Column("std", _pick("return_std"), decimal),
    Column("episode length", _pick("episode_length"), whole),
]


def _steps_to_solve(record: RunRecord) -> float | None:
    solved = record.solved_at
    return None if solved is None else float(solved[0])


def _seconds_to_solve(record: RunRecord) -> float | None:
    solved = record.solved_at
    return None if solved is None else solved[1]


def _name(record: RunRecord) -> str:
    return str(record.seed) if record.is_finished else f"{record.seed}, so far"


def _cell(column: Column, value: float | None, missing: str = MISSING) -> str:
    if value is not None:
        return column.show(value)
    return MISSING if column.is_higher_better is not None else missing


def _summary(column: Column, records: Sequence[RunRecord], rng: np.random.Generator) -> Summary | None:
    if column.is_higher_better is None:
        return None
    return summarise([column.pick(record) for record in records], is_higher_better=column.is_higher_better, rng=rng)


def _mean_cell(column: Column, summary: Summary | None) -> str:
    return _cell(column, summary.interquartile_mean) if summary and column.has_mean else ""


def _interval_cell(column: Column, summary: Summary | None) -> str:
    if summary is None or not column.has_mean:
        return ""
    if summary.interval is None:
        return MISSING
    low, high = (column.show(end) for end in summary.interval)
    return f"{low.split(' ')[0]} to {high}"  # the unit once


def to_markdown(table: Table) -> str:
    """The table as Markdown, with its summary rows in bold."""
    first_summary = len(table.rows) - table.num_summary_rows
    lines = [table.heads, ["---", *("---:" for _ in table.heads[1:])]]
    for index, row in enumerate(table.rows):
        lines.append([f"**{cell}**" if cell and index >= first_summary else cell for cell in row])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def to_text(table: Table) -> str:
    """The table in aligned columns, for a terminal."""
    lines = [table.heads, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(
        "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() + "\n" for line in lines
    )
