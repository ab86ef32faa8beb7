"""A sweep's status as text for a terminal: one line per trial, the best one and its curve."""

import math
from collections.abc import Sequence

from hotlap.reports.formatting import MISSING, counted
from hotlap.reports.tables import Table, to_text
from hotlap.sweeps.scheduler import show_values
from hotlap.sweeps.status import SweepStatus
from hotlap.sweeps.study import TrialRecord

_BARS = "▁▂▃▄▅▆▇█"
_CURVE_POINTS = 40
MAX_ROWS = 60


def status_table(status: SweepStatus) -> str:
    """The table, a line of totals, and the best trial with the median curve of its seeds."""
    lines = [to_text(trial_table(status, status.trials[-MAX_ROWS:]))]
    if len(status.trials) > MAX_ROWS:
        lines.insert(0, f"the last {MAX_ROWS} of {len(status.trials)} trials\n")
    states = [trial.state for trial in status.trials]
    counts = [f"{states.count(state)} {state}" for state in ("complete", "running", "pruned", "failed")]
    ending = "finished" if status.is_finished else "not finished"
    lines.append(f"{status.folder.name}: {', '.join(counts)} of {counted(status.sweep.trials, 'trial')}; {ending}\n")
    for trial in status.trials:
        if trial.reason is not None:
            lines.append(f"trial {trial.number} failed: {trial.reason}\n")
    for best in status.best:
        lines.append(f"best: trial {best.number}, {show_values(status.sweep.objectives, best.values or ())}\n")
    if status.best:
        curve = status.curve_of(status.best[0])
        if curve is not None:
            ends = f"{curve.median[0]:.4g} to {curve.median[-1]:.4g}"
            lines.append(f"its median evaluation over seeds: {_sparkline(curve.median.tolist())}  {ends}\n")
    return "".join(lines)


def trial_table(status: SweepStatus, trials: Sequence[TrialRecord]) -> Table:
    """One row per trial: state, steps, settings and objectives."""
    keys = [parameter.key for parameter in status.sweep.space]
    heads = ["trial", "state", "step", *keys, *(objective.name for objective in status.sweep.objectives)]
    rows = []
    for trial in trials:
        values = (
            [show_number(value) for value in trial.values] if trial.values else [MISSING] * len(status.sweep.objectives)
        )
        step = MISSING if trial.state == "failed" else f"{min(status.steps_of(trial)):,}"
        rows.append([str(trial.number), trial.state, step, *(show_setting(trial.params[key]) for key in keys), *values])
    return Table(heads, rows)


def show_setting(value: object) -> str:
    """A value of a setting."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def show_number(value: float | None) -> str:
    """A figure; a dash where it does not exist."""
    return f"{value:.5g}" if value is not None and math.isfinite(value) else MISSING


def _sparkline(values: Sequence[float]) -> str:
    """A curve in one line of text."""
    step = max(1, math.ceil(len(values) / _CURVE_POINTS))
    shown = values[::step]
    low, high = min(shown), max(shown)
    scale = (len(_BARS) - 1) / (high - low) if high > low else 0.0
    return "".join(_BARS[round(scale * (value - low))] for value in shown)
