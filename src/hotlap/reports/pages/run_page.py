"""The page on training runs: their figures, learning curves, and how their models drive."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from hotlap.evaluation.lap_comparison import Comparison
from hotlap.reports.formatting import counted, signed, whole_seconds
from hotlap.reports.html import (
    Picture,
    render_document,
    render_headline,
    render_note,
    render_pictures,
    render_table,
)
from hotlap.reports.model_laps import ModelLaps, fastest_laps
from hotlap.reports.pages.lap_page import lap_figures, render_corners, render_footer, render_lap_warnings, summarise_lap
from hotlap.reports.run_record import RunGroup, RunRecord
from hotlap.reports.tables import Table, columns_for, run_table
from hotlap.tracks.registry import Track

_ABOUT_RUNS = (
    "Figures of a finished run are those of its final model, for the racer those of its best one, with deterministic "
    "actions; “so far” marks the last periodic evaluation of an unfinished run."
)
_ABOUT_SEEDS = (
    " A run without a figure counts as the worst. The interquartile mean leaves out the best and the worst quarter of "
    "the runs; its interval is a bootstrap interval and needs at least three runs."
)


@dataclass(frozen=True)
class RunPictures:
    """The page's pictures by section."""

    lines: list[Picture] = field(default_factory=list)
    training: list[Picture] = field(default_factory=list)
    laps: list[Picture] = field(default_factory=list)

    @property
    def all(self) -> list[Picture]:
        """All pictures in the order of the sections."""
        return [*self.lines, *self.training, *self.laps]


def render_run(laps: ModelLaps, track: Track | None, pictures: RunPictures) -> str:
    """The page on one run; `track` is None for other environments than the racer. All text is escaped."""
    record, comparison = laps.record, laps.comparison
    title = f"{record.algorithm.upper()} on {_environment_name(record, track)}"
    if comparison is None:
        summary, figures = [], _run_figures(record)
    else:
        driver = f" Driven by {laps.driver_name}." if laps.driver_name else ""
        summary = [f"<p>{escape(summarise_lap(comparison) + driver)}</p>"]
        figures = lap_figures(comparison, record.name)
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_describe_training(record))}</p>",
        *summary,
        *_render_warnings([laps]),
        *(render_lap_warnings(comparison) if comparison else []),
        render_headline(figures),
        *render_pictures(pictures.lines),
        _render_runs_table("Evaluation", [RunGroup("", (record,))]),
        *render_pictures(pictures.training),
        *render_pictures(pictures.laps[:1]),
        *([render_corners(comparison)] if comparison else []),
        *render_pictures(pictures.laps[1:]),
        _render_settings([record]),
        *([render_footer(comparison, track)] if comparison and track else []),
    ]
    return render_document(f"{record.name}: {title}", body)


def render_runs(
    groups: Sequence[RunGroup], laps: Sequence[ModelLaps], track: Track | None, pictures: RunPictures
) -> str:
    """The page that compares several runs; the racing line shown is that of the fastest run."""
    records = [record for group in groups for record in group.runs]
    algorithms = dict.fromkeys(record.algorithm.upper() for record in records)
    title = f"{' and '.join(algorithms)} on {_environment_name(records[0], track)}, {counted(len(records), 'run')}"
    compared = [(one.record, one.comparison) for one in laps if one.comparison]
    fastest = fastest_laps(laps)
    best = (
        [f"<p>The racing line below is that of {escape(fastest.record.name)}, the fastest run.</p>"] if fastest else []
    )
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_describe_groups(groups))}</p>",
        *_render_warnings(laps),
        render_headline(_seed_figures(groups[0])) if len(groups) == 1 else "",
        _render_runs_table("The runs", groups),
        *render_pictures(pictures.training),
        *render_pictures(pictures.laps),
        *([_render_corners_table(compared)] if compared else []),
        *best,
        *render_pictures(pictures.lines),
        _render_settings(records),
        *([render_footer(compared[0][1], track)] if compared and track else []),
    ]
    return render_document(title, body)


def _environment_name(record: RunRecord, track: Track | None) -> str:
    return track.name if track else record.environment


def _describe_training(record: RunRecord) -> str:
    """One sentence: steps, time and episodes of training."""
    parts = [f"{record.name}, seed {record.seed}: {counted(record.step, 'step')}"]
    if record.training_s is not None:
        parts.append(f"in {whole_seconds(record.training_s)}")
    if record.num_episodes is not None:
        parts.append(f"and {counted(record.num_episodes, 'episode')}")
    return " ".join(parts) + "."


def _render_warnings(laps: Sequence[ModelLaps]) -> list[str]:
    found = []
    for one in laps:
        record = one.record
        if not record.is_finished:
            seen = f", last seen {record.last_seen}" if record.last_seen else ""
            found.append(
                render_note(
                    f"{record.name} is not finished: step {record.step:,} of {record.requested_steps:,}{seen}. "
                    "All figures are preliminary."
                )
            )
        if one.problem:
            found.append(render_note(f"{record.name}: {one.problem}"))
    return found


def _run_figures(record: RunRecord) -> list[tuple[str, str]]:
    """The run in up to four figures, if there is no lap to show."""
    columns = [column for column in columns_for([record]) if column.head not in ("steps", "training")]
    values = [(column, column.pick(record)) for column in columns]
    known = [(column.head, column.show(value)) for column, value in values if value is not None]
    return [*known[-4:], *[("steps", f"{record.step:,}")][: 4 - len(known)]]


def _describe_groups(groups: Sequence[RunGroup]) -> str:
    """One sentence: what the compared runs differ in."""
    if len(groups) == 1:
        return "The runs differ only in their seed."
    return f"{len(groups)} settings: {'; '.join(f'{group.label} ({len(group.runs)})' for group in groups)}."


def _seed_figures(group: RunGroup) -> list[tuple[str, str]]:
    """Several seeds in four figures: median and worst of the two most important columns."""
    table = run_table(group.runs)
    heads = [head for head in table.heads if head in ("median lap", "gap to optimum", "return")]
    heads += [head for head in table.heads if head.startswith("time to ")]
    median, worst = table.rows[len(group.runs) : len(group.runs) + 2]
    return [
        (escape(f"{head}, {row[0]} of {len(group.runs)}"), row[table.heads.index(head)])
        for head in heads[:2]
        for row in (median, worst)
    ]


def _render_runs_table(title: str, groups: Sequence[RunGroup]) -> str:
    """A table of the runs for every group."""
    parts = []
    for group in groups:
        heading = f"<h3>{escape(group.label)}</h3>" if len(groups) > 1 else ""
        parts.append(heading + render_table(run_table(group.runs)))
    about = _ABOUT_RUNS + (_ABOUT_SEEDS if any(len(group.runs) > 1 for group in groups) else "")
    return f'<section class="card"><h2>{escape(title)}</h2><p>{escape(about)}</p>{"".join(parts)}</section>'


def _render_corners_table(compared: Sequence[tuple[RunRecord, Comparison]]) -> str:
    """Time lost by each run in each corner, in driving order."""
    sectors = [sorted(comparison.sectors, key=lambda one: one.number) for _, comparison in compared]
    rows = [
        [across[0].label, *(f"{signed(sector.lost_s)} s" for sector in across)] for across in zip(*sectors, strict=True)
    ]
    total = ["whole lap", *(f"{signed(float(comparison.delta_s[-1]))} s" for _, comparison in compared)]
    table = Table(["corner", *(record.name for record, _ in compared)], [*rows, total], num_summary_rows=1)
    return (
        '<section class="card"><h2>Time lost, corner by corner</h2>'
        "<p>Each run's best flying lap against the optimum. Each corner counts from halfway after the previous one to "
        f"halfway before the next.</p>{render_table(table)}</section>"
    )


def _render_settings(records: Sequence[RunRecord]) -> str:
    """All settings, collapsed."""
    keys = sorted({key for record in records for key in record.settings})
    rows = [[key, *(str(record.settings.get(key, "")) for record in records)] for key in keys]
    table = Table(["setting", *(record.name for record in records)], rows)
    return f'<details class="card"><summary>Settings</summary>{render_table(table)}</details>'
