"""The page on a sweep: its trials, learning curves over seeds and parameter importance; or several side by side."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.errors import HotlapError
from hotlap.reports.html import (
    PAGE_NAME,
    Picture,
    render_document,
    render_headline,
    render_note,
    render_pictures,
    render_table,
)
from hotlap.reports.model_laps import Baselines
from hotlap.reports.plots.learning_curves import draw_lap_times, draw_learning_curve
from hotlap.reports.run_loader import read_run
from hotlap.reports.run_record import RunGroup, RunRecord
from hotlap.reports.statistics import Summary, summarise
from hotlap.reports.tables import BOOTSTRAP_SEED, Table, run_table
from hotlap.sweeps.scheduler import show_values
from hotlap.sweeps.status import SweepStatus
from hotlap.sweeps.status_table import show_number, show_setting, trial_table
from hotlap.sweeps.study import TrialRecord

MAX_GROUPS = 6  # trials whose curves are drawn: as many as there are colours
MAX_TRIALS = 500  # rows of the table
_ABOUT_CURVES = "The best trials by their median over seeds. Figures over seeds: the interquartile mean leaves out the "
_ABOUT_CURVES += "best and the worst quarter; its bootstrap interval needs at least three seeds."


def write_report(statuses: Sequence[SweepStatus], folder: Path) -> tuple[Path, dict[str, Any]]:
    """Write the page into a folder; returns its path and its figures as plain data."""
    is_single = len(statuses) == 1
    shown = [(status, trial) for status in statuses for trial in _shown_trials(status, is_single)]
    groups = [group for status, trial in shown if (group := _group(status, trial, is_single)) is not None]
    pictures = _draw(groups)
    body = _render_single(statuses[0]) if is_single else _render_several(statuses)
    body += render_pictures(pictures)
    if groups:
        tables = [f"<h3>{escape(group.label)}</h3>{render_table(run_table(group.runs))}" for group in groups]
        body.append(_section("Over seeds", "".join(tables), _ABOUT_CURVES))
    path = folder / PAGE_NAME
    names = ", ".join(status.folder.name for status in statuses)
    for picture in pictures:
        write_atomically(folder / picture.file_name, picture.png)
    write_atomically(path, render_document(f"sweep {names}", body).encode())
    return path, {"sweeps": [_figures(status) for status in statuses]}


def _shown_trials(status: SweepStatus, is_single: bool) -> list[TrialRecord]:
    """The best trials of one sweep, or the best one of each of several."""
    return status.ranked()[: MAX_GROUPS if is_single else 1]


def _group(status: SweepStatus, trial: TrialRecord, is_single: bool) -> RunGroup | None:
    """A trial's runs as a group that differs only in its seed; None where one of them cannot be read."""
    records: list[RunRecord] = []
    for run in status.run_folders(trial):
        try:
            records.append(read_run(f"{run.path}/"))
        except HotlapError:
            return None
    name = f"trial {trial.number}" if is_single else f"{status.folder.name}, trial {trial.number}"
    settings = ", ".join(f"{key.rpartition('.')[2]} {show_setting(value)}" for key, value in trial.params.items())
    return RunGroup(f"{name}: {settings}"[:60] if settings else name, tuple(records))


def _draw(groups: Sequence[RunGroup]) -> list[Picture]:
    """Learning curves, one chart for each environment and track."""
    kinds: dict[tuple[str, str | None], list[RunGroup]] = {}
    for group in groups:
        kinds.setdefault((group.runs[0].environment, group.runs[0].track), []).append(group)
    pictures = []
    for index, ((environment, track), found) in enumerate(kinds.items()):
        drawn = [draw_lap_times(found, Baselines()) if track is not None else None, draw_learning_curve(found)]
        for picture in filter(None, drawn):
            where = f" on {track or environment}" if len(kinds) > 1 else ""
            stem, _, ending = picture.file_name.rpartition(".")
            file_name = f"{stem}-{index}.{ending}" if index else picture.file_name
            pictures.append(replace(picture, title=picture.title + where, file_name=file_name))
    return pictures


def _render_single(status: SweepStatus) -> list[str]:
    states = [trial.state for trial in status.trials]
    objectives = ", ".join(f"{objective.direction} {objective.name}" for objective in status.sweep.objectives)
    best = status.best[0] if status.best else None
    best_text = show_number(best.values[0]) if best and best.values else show_number(None)
    headline = [
        (f"best {escape(status.sweep.objectives[0].name)}", best_text),
        ("complete", str(states.count("complete"))),
        ("stopped early", str(states.count("pruned"))),
        ("failed", str(states.count("failed"))),
    ]
    summary = f"{objectives}; sampler {status.sweep.sampler}; seeds {', '.join(map(str, status.sweep.seeds))}."
    body = [f"<h1>{escape(status.folder.name)}</h1>", f"<p>{escape(summary)}</p>"]
    if not status.is_finished:
        body.append(render_note(f"Not finished: {len(status.trials)} of {status.sweep.trials} trials have started."))
    body += [render_note(f"Trial {t.number} failed: {t.reason}") for t in status.trials if t.reason is not None]
    body.append(render_headline(headline))
    if status.importances:
        rows = [[key, f"{100.0 * fraction:.0f} %"] for key, fraction in status.importances.items()]
        about = (
            "The fraction of the objective's variation among the better trials that each setting explains (PED-ANOVA)."
        )
        body.append(_section("Parameter importance", render_table(Table(["setting", "fraction"], rows)), about))
    ranked = status.ranked()
    numbers = {trial.number for trial in ranked}
    rest = [trial for trial in status.trials if trial.number not in numbers]
    rows_shown = [*ranked, *rest][:MAX_TRIALS]
    about = f"The first {MAX_TRIALS} of {len(status.trials)}." if len(status.trials) > MAX_TRIALS else "Best first."
    body.append(_section("Trials", render_table(trial_table(status, rows_shown)), about))
    return body


def _render_several(statuses: Sequence[SweepStatus]) -> list[str]:
    rows = []
    for status in statuses:
        best, summary = _best_summary(status)
        value = show_values(status.sweep.objectives, best.values) if best and best.values else show_number(None)
        low, high = summary.interval or (None, None)
        interval = f"{show_number(low)} to {show_number(high)}" if summary.interval else show_number(None)
        number = str(best.number) if best else show_number(None)
        mean = show_number(summary.interquartile_mean)
        rows.append([status.folder.name, str(len(status.trials)), number, value, mean, interval])
    heads = ["sweep", "trials", "best trial", "median over seeds", "interquartile mean", "its 95 % interval"]
    return ["<h1>Sweeps compared</h1>", _section("Best trials", render_table(Table(heads, rows)), "")]


def _section(title: str, content: str, about: str) -> str:
    note = f"<p>{escape(about)}</p>" if about else ""
    return f'<section class="card"><h2>{escape(title)}</h2>{note}{content}</section>'


def _best_summary(status: SweepStatus) -> tuple[TrialRecord | None, Summary]:
    """The best trial, and the statistics of its first objective over seeds."""
    best = status.best[0] if status.best else None
    values = [best.seed_values[seed][0] for seed in status.sweep.seeds] if best else []
    is_higher_better = status.sweep.objectives[0].direction == "maximize"
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return best, summarise(values, is_higher_better=is_higher_better, rng=rng)


def _figures(status: SweepStatus) -> dict[str, Any]:
    best, summary = _best_summary(status)
    return {
        "name": status.folder.name,
        "finished": status.is_finished,
        "objective": status.sweep.objectives[0].name,
        "best": best.number if best else None,
        "params": dict(best.params) if best else None,
        "median": summary.median,
        "interquartile_mean": summary.interquartile_mean,
        "interval": list(summary.interval) if summary.interval else None,
        "importances": status.importances,
    }
