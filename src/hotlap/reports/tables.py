"""Tables of runs: each one listed, then median, worst and interquartile mean; for pages and for Markdown."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hotlap.reports.run_record import RunRecord
from hotlap.reports.statistics import CONFIDENCE, Summary, summarise

DASH = "–"
# A table shall say the same each time it is made from the same runs.
_SEED = 0


@dataclass(frozen=True)
class Column:
    """One figure of each run."""

    head: str
    pick: Callable[[RunRecord], float | None]
    show: Callable[[float], str]
    is_more_better: bool | None = None  # None: nothing is made of it over several runs
    has_mean: bool = False  # whether a mean over runs says something


@dataclass(frozen=True)
class Table:
    """Text in rows; the last `num_summary_rows` are over all runs. The first column is a name, the others numbers."""

    heads: list[str]
    rows: list[list[str]]
    num_summary_rows: int = 0


def run_table(records: Sequence[RunRecord]) -> Table:
    """The runs by seed and, of several, what they amount to together."""
    columns = columns_for(records)
    rows = [[_name(record), *(_cell(column, column.pick(record)) for column in columns)] for record in records]
    if len(records) < 2:
        return Table(["seed", *(column.head for column in columns)], rows)
    rng = np.random.default_rng(_SEED)
    summaries = [_summary(column, records, rng) for column in columns]
    pairs = list(zip(columns, summaries, strict=True))
    together = [
        ["median", *(_cell(column, summary.median if summary else None, "") for column, summary in pairs)],
        ["worst", *(_cell(column, summary.worst if summary else None, "") for column, summary in pairs)],
        ["interquartile mean", *(_mean_cell(column, summary) for column, summary in pairs)],
        [f"its {100.0 * CONFIDENCE:.0f} % interval", *(_interval_cell(column, summary) for column, summary in pairs)],
    ]
    return Table(["seed", *(column.head for column in columns)], rows + together, len(together))


def columns_for(records: Sequence[RunRecord]) -> list[Column]:
    """The figures that runs of this environment have."""
    course = [
        Column("steps", lambda record: record.step, lambda value: f"{value:,.0f}"),
        Column("training", lambda record: record.training_s, _duration, is_more_better=False),
    ]
    if records[0].track is not None:
        return course + _RACER
    threshold = records[0].reward_threshold
    if threshold is not None:
        course += [
            Column(f"steps to {threshold:g}", _steps_to_solve, lambda value: f"{value:,.0f}", is_more_better=False),
            Column(f"time to {threshold:g}", _seconds_to_solve, _duration, is_more_better=False),
        ]
    return course + _RETURNS


def _figure(name: str) -> Callable[[RunRecord], float | None]:
    def pick(record: RunRecord) -> float | None:
        value: float | None = getattr(record.figures, name, None)
        return value

    return pick


def _percent(value: float) -> str:
    """Rounded down, so that 100 % means all."""
    return f"{math.floor(1000.0 * value + 1e-6) / 10.0:g} %"


def _gap(value: float) -> str:
    return f"{100.0 * value:+.1f} %".replace("-", "−")


def _duration(value: float) -> str:
    return f"{value:,.0f} s"


def _decimal(value: float) -> str:
    return f"{value:,.1f}".replace("-", "−")


_RACER = [
    Column("completed", _figure("completion_rate"), _percent, is_more_better=True, has_mean=True),
    Column("clean laps", _figure("clean_lap_rate"), _percent, is_more_better=True, has_mean=True),
    Column("median lap", _figure("median_lap_s"), lambda value: f"{value:.2f} s", is_more_better=False, has_mean=True),
    Column("gap to optimum", _figure("gap"), _gap, is_more_better=False, has_mean=True),
]
_RETURNS = [
    Column("return", _figure("mean_return"), _decimal, is_more_better=True, has_mean=True),
    Column("std", _figure("return_std"), _decimal),
    Column("episode length", _figure("episode_length"), lambda value: f"{value:,.0f}"),
]


def _steps_to_solve(record: RunRecord) -> float | None:
    solved = record.solved_at
    return None if solved is None else float(solved[0])


def _seconds_to_solve(record: RunRecord) -> float | None:
    solved = record.solved_at
    return None if solved is None else solved[1]


def _name(record: RunRecord) -> str:
    return str(record.seed) if record.is_finished else f"{record.seed}, so far"


def _cell(column: Column, value: float | None, missing: str = DASH) -> str:
    if value is not None:
        return column.show(value)
    return DASH if column.is_more_better is not None else missing


def _summary(column: Column, records: Sequence[RunRecord], rng: np.random.Generator) -> Summary | None:
    if column.is_more_better is None:
        return None
    return summarise([column.pick(record) for record in records], is_more_better=column.is_more_better, rng=rng)


def _mean_cell(column: Column, summary: Summary | None) -> str:
    return _cell(column, summary.interquartile_mean) if summary and column.has_mean else ""


def _interval_cell(column: Column, summary: Summary | None) -> str:
    if summary is None or not column.has_mean:
        return ""
    if summary.interval is None:
        return DASH
    low, high = (column.show(end) for end in summary.interval)
    return f"{low.split(' ')[0]} to {high}"  # the unit once


def to_markdown(table: Table) -> str:
    """The table as Markdown, with the rows over all runs in bold."""
    first_summary = len(table.rows) - table.num_summary_rows
    lines = [table.heads, ["---", *("---:" for _ in table.heads[1:])]]
    for index, row in enumerate(table.rows):
        lines.append([f"**{cell}**" if cell and index >= first_summary else cell for cell in row])
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
