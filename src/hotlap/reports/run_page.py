"""The page on training runs: what came of them, how they learned, and how the cars they taught drive."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from hotlap.evaluation.lap_comparison import Comparison
from hotlap.reports.html import (
    Picture,
    headline,
    note,
    render_document,
    render_pictures,
    render_table,
    signed,
)
from hotlap.reports.lap_page import lap_figures, render_corners, render_footer, sum_up, warn
from hotlap.reports.model_laps import Drive, fastest_drive
from hotlap.reports.run_record import RunGroup, RunRecord
from hotlap.reports.tables import Table, columns_for, run_table
from hotlap.tracks.registry import Track

_ABOUT_RUNS = (
    "A finished run's figures are those of its final model, a racer's of its best one, without exploring; “so far” "
    "means the last evaluation on the way."
)
_ABOUT_SEEDS = (
    " A run that lacks a figure counts as the worst. The interquartile mean leaves out the best and the worst quarter "
    "of the runs; its interval is found by drawing them again and again (bootstrap), from three runs up."
)


@dataclass(frozen=True)
class Plates:
    """The page's pictures by where they stand."""

    lines: list[Picture] = field(default_factory=list)
    training: list[Picture] = field(default_factory=list)
    laps: list[Picture] = field(default_factory=list)

    @property
    def all(self) -> list[Picture]:
        """Every one of them."""
        return [*self.lines, *self.training, *self.laps]


def render_run(drive: Drive, track: Track | None, plates: Plates) -> str:
    """The page on one run; `track` is the racer's. All text is escaped; nothing is fetched from anywhere."""
    record, comparison = drive.record, drive.comparison
    title = f"{record.algorithm.upper()} on {_place(record, track)}"
    if comparison is None:
        lap, figures = [], _figures(record)
    else:
        driven = f" Driven by {drive.model}." if drive.model else ""
        lap, figures = [f"<p>{escape(sum_up(comparison) + driven)}</p>"], lap_figures(comparison, record.name)
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_course(record))}</p>",
        *lap,
        *_warnings([drive]),
        *(warn(comparison) if comparison else []),
        headline(figures),
        *render_pictures(plates.lines),
        _runs_card("Evaluation", [RunGroup("", (record,))]),
        *render_pictures(plates.training),
        *render_pictures(plates.laps[:1]),
        *([render_corners(comparison)] if comparison else []),
        *render_pictures(plates.laps[1:]),
        _settings_card([record]),
        *([render_footer(comparison, track)] if comparison and track else []),
    ]
    return render_document(f"{record.name}: {title}", body)


def render_runs(groups: Sequence[RunGroup], drives: Sequence[Drive], track: Track | None, plates: Plates) -> str:
    """The page on several runs side by side; the lines are those of the fastest."""
    records = [record for group in groups for record in group.runs]
    algorithms = dict.fromkeys(record.algorithm.upper() for record in records)
    title = f"{' and '.join(algorithms)} on {_place(records[0], track)}, {len(records)} runs"
    laps = [(drive.record, drive.comparison) for drive in drives if drive.comparison]
    fastest = fastest_drive(drives)
    best = [f"<p>The lines below are those of {escape(fastest.record.name)}, the fastest.</p>"] if fastest else []
    body = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{escape(_kinds(groups))}</p>",
        *_warnings(drives),
        headline(_figures_of_seeds(groups[0])) if len(groups) == 1 else "",
        _runs_card("The runs", groups),
        *render_pictures(plates.training),
        *render_pictures(plates.laps),
        *([_corners_card(laps)] if laps else []),
        *best,
        *render_pictures(plates.lines),
        _settings_card(records),
        *([render_footer(laps[0][1], track)] if laps and track else []),
    ]
    return render_document(title, body)


def _place(record: RunRecord, track: Track | None) -> str:
    return track.name if track else record.environment


def _course(record: RunRecord) -> str:
    """One sentence on what was done."""
    parts = [f"{record.name}, seed {record.seed}: {record.step:,} steps"]
    if record.training_s is not None:
        parts.append(f"in {record.training_s:,.0f} s")
    if record.num_episodes is not None:
        parts.append(f"and {record.num_episodes:,} episodes")
    return " ".join(parts) + "."


def _warnings(drives: Sequence[Drive]) -> list[str]:
    found = []
    for drive in drives:
        record = drive.record
        if not record.is_finished:
            seen = f", last seen {record.last_seen}" if record.last_seen else ""
            found.append(
                note(
                    f"{record.name} is not finished: step {record.step:,} of {record.steps_asked:,}{seen}. "
                    "Figures are those so far."
                )
            )
        if drive.trouble:
            found.append(note(f"{record.name}: {drive.trouble}"))
    return found


def _figures(record: RunRecord) -> list[tuple[str, str]]:
    """The run in up to four figures, where there is no lap to show."""
    columns = [column for column in columns_for([record]) if column.head not in ("steps", "training")]
    values = [(column, column.pick(record)) for column in columns]
    known = [(column.head, column.show(value)) for column, value in values if value is not None]
    return [*known[-4:], *[("steps", f"{record.step:,}")][: 4 - len(known)]]


def _kinds(groups: Sequence[RunGroup]) -> str:
    """One sentence on what is laid side by side."""
    if len(groups) == 1:
        return "The runs differ in their seed alone."
    return f"{len(groups)} settings: {'; '.join(f'{group.label} ({len(group.runs)})' for group in groups)}."


def _figures_of_seeds(group: RunGroup) -> list[tuple[str, str]]:
    """Several seeds in four figures: the median and the worst of what matters most and of what comes next."""
    table = run_table(group.runs)
    heads = [head for head in table.heads if head in ("median lap", "gap to optimum", "return")]
    heads += [head for head in table.heads if head.startswith("time to ")]
    median, worst = table.rows[len(group.runs) : len(group.runs) + 2]
    return [
        (escape(f"{head}, {row[0]} of {len(group.runs)}"), row[table.heads.index(head)])
        for head in heads[:2]
        for row in (median, worst)
    ]


def _runs_card(title: str, groups: Sequence[RunGroup]) -> str:
    """Each run with its figures and, of several, what they amount to."""
    parts = []
    for group in groups:
        heading = f"<h3>{escape(group.label)}</h3>" if len(groups) > 1 else ""
        parts.append(heading + render_table(run_table(group.runs)))
    about = _ABOUT_RUNS + (_ABOUT_SEEDS if any(len(group.runs) > 1 for group in groups) else "")
    return f'<section class="card"><h2>{escape(title)}</h2><p>{escape(about)}</p>{"".join(parts)}</section>'


def _corners_card(laps: Sequence[tuple[RunRecord, Comparison]]) -> str:
    """Time lost around each corner by each run, in driving order."""
    sectors = [sorted(comparison.sectors, key=lambda one: one.number) for _, comparison in laps]
    rows = [
        [across[0].label, *(f"{signed(sector.lost_s)} s" for sector in across)] for across in zip(*sectors, strict=True)
    ]
    total = ["whole lap", *(f"{signed(float(comparison.delta_s[-1]))} s" for _, comparison in laps)]
    table = Table(["corner", *(record.name for record, _ in laps)], [*rows, total], num_summary_rows=1)
    return (
        '<section class="card"><h2>Time lost, corner by corner</h2>'
        "<p>Each run's best flying lap against the optimum; from halfway after the corner before to halfway before the "
        f"next.</p>{render_table(table)}</section>"
    )


def _settings_card(records: Sequence[RunRecord]) -> str:
    """All settings, folded away."""
    keys = sorted({key for record in records for key in record.settings})
    rows = [[key, *(str(record.settings.get(key, "")) for record in records)] for key in keys]
    table = Table(["setting", *(record.name for record in records)], rows)
    return f'<details class="card"><summary>Settings</summary>{render_table(table)}</details>'
