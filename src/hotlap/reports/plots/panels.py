"""Panels of curves over training steps: of one run, or of groups of runs with their medians and quartiles."""

from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.drawing.axes import Axes
from hotlap.drawing.figure import Figure
from hotlap.evaluation.telemetry import Floats
from hotlap.reports.curves import Curve, Ints
from hotlap.reports.formatting import counted
from hotlap.reports.plots.chart import (
    DRIVER,
    LEGEND_IN,
    TITLE_IN,
    label_panel,
    legend_height_in,
    new_chart,
    write_legend,
    write_title,
)
from hotlap.reports.run_record import RunGroup, RunRecord
from hotlap.reports.statistics import compute_spread

# Distinct from the colours of the optimum and of time lost.
GROUP_COLOURS = (DRIVER, "#4fa8ff", "#3fd0a6", "#ff7eb6", "#d7dce1", "#e08a4a")
EPISODES_IN = 0.24  # height of the row of episode counts
_MAX_DOTS = 60  # a curve of more points is drawn without dots


@dataclass(frozen=True)
class Series:
    """One curve of a panel: the key of its values, its name in the legend and its colour."""

    key: str
    name: str
    colour: str
    has_dots: bool = False


@dataclass(frozen=True)
class Panel:
    """The series shown for a single run; for several runs, the first key of `shared` that any of them has."""

    label: str
    height_in: float
    series: tuple[Series, ...]
    shared: tuple[str, ...] = ()
    shared_label: str = ""  # replaces `label` for several runs
    factor: float = 1.0

    def shared_key(self, runs: Sequence[RunRecord]) -> str | None:
        """The key by which the runs are compared."""
        return next((key for key in self.shared if any(len(run.curve(key)) for run in runs)), None)


@dataclass(frozen=True)
class Chart:
    """A figure and its panels by label."""

    figure: Figure
    panels: dict[str, Axes]


def draw_panels(
    groups: Sequence[RunGroup], panels: Sequence[Panel], title: str, *, has_episodes: bool = False
) -> Chart | None:
    """Draw the panels that have data; None if none has. `has_episodes` leaves room for a row above the first panel."""
    runs = all_runs(groups)
    chart = _draw_single(runs[0], panels, has_episodes) if len(runs) == 1 else _draw_several(groups, panels)
    if chart is None:
        return None
    for panel in panels:
        if panel.label in chart.panels:
            format_steps(chart.panels[panel.label])
            label = panel.shared_label if panel.shared_label and len(runs) > 1 else panel.label
            label_panel(chart.panels[panel.label], label)
    if len(runs) == 1:
        write_title(chart.figure, title, describe(runs[0]))
    else:
        write_title(chart.figure, title, "thick: median; shaded: middle half of the seeds; thin: single seeds")
    return chart


def all_runs(groups: Sequence[RunGroup]) -> list[RunRecord]:
    """The runs of all groups."""
    return [run for group in groups for run in group.runs]


def furthest_step(runs: Sequence[RunRecord]) -> float:
    """The end of the step axis."""
    return float(max([1, *(run.step for run in runs)]))


def describe(run: RunRecord) -> str:
    """A run's name and steps, for a subtitle."""
    return f"{run.name}   ·   {counted(run.step, 'step')}"


def colour_of(index: int) -> str:
    """The colour of a group or a run by its index."""
    return GROUP_COLOURS[index % len(GROUP_COLOURS)]


def _draw_single(run: RunRecord, panels: Sequence[Panel], has_episodes: bool) -> Chart | None:
    """One run, each panel with its own legend above it."""
    found = [(panel, [one for one in panel.series if len(run.curve(one.key))]) for panel in panels]
    shown = [(panel, series) for panel, series in found if series]
    if not shown:
        return None
    first_in = EPISODES_IN if has_episodes else 0.0
    figure, axes = new_chart(
        [panel.height_in for panel, _ in shown],
        top_in=TITLE_IN + LEGEND_IN + first_in + 0.1,
        limit=furthest_step([run]),
        x_label="steps",
        gap_in=LEGEND_IN + 0.22,
    )
    for index, (each, (panel, series)) in enumerate(zip(axes, shown, strict=True)):
        above_in = LEGEND_IN + 0.06 + (first_in if index == 0 else 0.0)
        write_legend(figure, [(one.name, one.colour) for one in series], down_in=each.top_in - above_in)
        for level, one in enumerate(series):
            curve = run.curve(one.key)
            values = panel.factor * curve.value
            _plot(each, curve.step, values, one.colour, has_dots=one.has_dots, layer=4 + level)
    return Chart(figure, dict(zip((panel.label for panel, _ in shown), axes, strict=True)))


def _draw_several(groups: Sequence[RunGroup], panels: Sequence[Panel]) -> Chart | None:
    """Several runs, with one colour per group in all panels."""
    runs = all_runs(groups)
    shown = [(panel, key) for panel in panels if (key := panel.shared_key(runs)) is not None]
    if not shown:
        return None
    entries = [(_group_name(group), colour_of(index)) for index, group in enumerate(groups)]
    figure, axes = new_chart(
        [panel.height_in for panel, _ in shown],
        top_in=TITLE_IN + legend_height_in([name for name, _ in entries]) + 0.2,
        limit=furthest_step(runs),
        x_label="steps",
        gap_in=0.35,
    )
    write_legend(figure, entries)
    for each, (panel, key) in zip(axes, shown, strict=True):
        for index, group in enumerate(groups):
            _draw_group(each, [run.curve(key) for run in group.runs], panel.factor, colour_of(index))
    return Chart(figure, dict(zip((panel.label for panel, _ in shown), axes, strict=True)))


def _group_name(group: RunGroup) -> str:
    return f"{group.label}   ({counted(len(group.runs), 'seed')})"


def _draw_group(axes: Axes, curves: Sequence[Curve], factor: float, colour: str) -> None:
    """Single seeds thin, their median thick, their middle half shaded."""
    for curve in curves:
        axes.line(curve.step, factor * curve.value, colour, 0.9, opacity=0.4, layer=4)
    spread = compute_spread(curves)
    if spread is None:
        return
    lower, upper = factor * spread.lower, factor * spread.upper
    axes.band(spread.step, lower, upper, colour, opacity=0.20, layer=3)
    _plot(axes, spread.step, factor * spread.median, colour, has_dots=len(spread.step) < 2, layer=6)


def _plot(axes: Axes, step: Ints, value: Floats, colour: str, *, has_dots: bool, layer: int) -> None:
    has_dots = has_dots and len(step) <= _MAX_DOTS
    axes.line(step, value, colour, 1.2 if has_dots else 1.9, layer=layer)
    if has_dots:
        axes.dots(step, value, colour, 5.5, layer=layer)


def format_steps(axes: Axes) -> None:
    """Few round ticks on the step axis, in thousands or millions."""
    axes.x.max_intervals, axes.x.write = 8, short_number


def short_number(value: float) -> str:
    """A count for an axis tick: 2.5 M, 250 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
