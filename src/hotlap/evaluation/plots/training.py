"""Charts of how training went, over its steps: returns, laps and reward terms, of one run or of seeds together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hotlap.evaluation.curves import Curve
from hotlap.evaluation.page import Picture
from hotlap.evaluation.plots.chart import (
    DRIVER,
    GAIN,
    LOSS,
    OPTIMUM,
    TITLE_IN,
    legend_height_in,
    new_chart,
    to_png,
    write_legend,
    write_title,
)
from hotlap.evaluation.records import RunGroup, RunRecord
from hotlap.evaluation.statistics import spread_of
from hotlap.evaluation.trace import Floats
from hotlap.tracks.pictures import FAINT, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# None is the optimum's or that of a loss.
GROUP_COLOURS = (DRIVER, "#4fa8ff", "#3fd0a6", "#ff7eb6", "#d7dce1", "#e08a4a")
EVALUATED = TEXT
DIM = "#8a7a4a"  # the driver's colour, for what matters less
TERM_COLOURS = {
    "progress": GAIN,
    "speed": "#4fa8ff",
    "wall": LOSS,
    "offTrack": "#ff9d4d",
    "backward": "#ff7eb6",
    "stillness": "#c9d1d9",
}
_MOST_MARKED = 60  # values that are still drawn as dots


@dataclass(frozen=True)
class Strand:
    """One curve of a panel."""

    key: str
    name: str
    colour: str
    has_dots: bool = False


@dataclass(frozen=True)
class Panel:
    """What a panel shows of a single run; of several it shows `shared`, the first of these that any run has."""

    label: str
    height_in: float
    strands: tuple[Strand, ...]
    shared: tuple[str, ...] = ()
    factor: float = 1.0

    def shared_key(self, runs: Sequence[RunRecord]) -> str | None:
        """What the runs can be compared by."""
        return next((key for key in self.shared if any(len(run.curve(key)) for run in runs)), None)


@dataclass(frozen=True)
class Yardsticks:
    """Lap times (s) to measure a learner by, where known."""

    casual_lap_s: float | None = None
    optimal_lap_s: float | None = None


_TRAINED = Strand("metrics/reward", "training, mean of the last 100 episodes", DRIVER)
_JUDGED = Strand("eval/mean_reward", "evaluation without exploring", EVALUATED, has_dots=True)
_RETURN = Panel("return", 2.5, (_TRAINED,), ("metrics/reward",))
_JUDGED_RETURN = Panel("return, evaluated", 2.0, (), ("eval/mean_reward",))
_LENGTH = Panel(
    "episode length", 1.25, (Strand("metrics/episode_length", _TRAINED.name, DRIVER),), ("metrics/episode_length",)
)
_LOSS = Panel("loss", 1.25, (Strand("metrics/loss", "loss of the last update", "#4fa8ff"),))
_LAP_TIME = Panel(
    "lap time (s)",
    2.9,
    (
        Strand("racer/mean_lap_time_sec", "training, mean", DIM),
        Strand("racer/best_lap_time_sec", "training, best", DRIVER),
        Strand("eval/median_lap_time_sec", "evaluation, median clean flying lap", EVALUATED, has_dots=True),
    ),
    ("eval/median_lap_time_sec", "racer/mean_lap_time_sec"),
)
_COMPLETION = Panel(
    "share (%)",
    1.5,
    (
        Strand("racer/completion_rate", "training, episodes with a lap", DIM),
        Strand("eval/completion_rate", "evaluation, completed", EVALUATED, has_dots=True),
        Strand("eval/clean_lap_rate", "evaluation, clean laps", GAIN, has_dots=True),
    ),
    ("eval/completion_rate", "racer/completion_rate"),
    factor=100.0,
)


def draw_learning(groups: Sequence[RunGroup]) -> Picture | None:
    """Return, episode length and loss over the steps; None where no episode has ended yet."""
    runs = _all_runs(groups)
    is_racer, is_single = runs[0].track is not None, len(runs) == 1
    # The racer is evaluated over whole laps, other than in training; elsewhere an episode is an episode.
    returns = _RETURN if is_racer or not is_single else replace(_RETURN, strands=(_TRAINED, _JUDGED))
    panels = [returns, _LENGTH, _LOSS] if is_single else [returns, *([] if is_racer else [_JUDGED_RETURN]), _LENGTH]
    chart = _draw(groups, panels, "Learning curve")
    if chart is None:
        return None
    figure, drawn = chart
    threshold = runs[0].reward_threshold
    if threshold is not None:
        for panel in (_RETURN.label, _JUDGED_RETURN.label):
            if panel in drawn:
                _draw_yardstick(drawn[panel], threshold, f"solved: {threshold:g}", GAIN)
    if is_single:
        _number_episodes(next(iter(drawn.values())), runs[0].curve("metrics/episode"))
    if _LOSS.label in drawn:
        _leave_out_spikes(drawn[_LOSS.label], runs[0].curve("metrics/loss").value)
    caption = "What an episode was worth while the policy was learning."
    return Picture("learning.png", "Learning", caption, to_png(figure), is_chart=True)


def draw_progress(groups: Sequence[RunGroup], yardsticks: Yardsticks) -> Picture | None:
    """Lap times and completion over the steps, beside the yardsticks; None where no car has come round yet."""
    chart = _draw(groups, [_LAP_TIME, _COMPLETION], "Lap times")
    if chart is None:
        return None
    figure, drawn = chart
    if _LAP_TIME.label in drawn:
        axes = drawn[_LAP_TIME.label]
        _limit_lap_times(axes, yardsticks)
        for lap_s, name, colour in (
            (yardsticks.casual_lap_s, "casual driver", FAINT),
            (yardsticks.optimal_lap_s, "optimum", OPTIMUM),
        ):
            if lap_s is not None:
                _draw_yardstick(axes, lap_s, f"{name}  {lap_s:.2f} s", colour)
    if _COMPLETION.label in drawn:
        drawn[_COMPLETION.label].set_ylim(-4.0, 104.0)
    caption = "Laps while exploring and, where it is judged, without. No point: nobody came round."
    return Picture("laps.png", "Laps", caption, to_png(figure), is_chart=True)


def draw_terms(group: RunGroup) -> Picture | None:
    """The reward's terms over the steps: of one run, or their medians over seeds; None where none was logged."""
    found: dict[str, Curve] = {}
    for name in TERM_COLOURS:
        curves = [run.curve(f"reward/{name}") for run in group.runs]
        spread = spread_of([curve for curve in curves if len(curve)])
        if spread is not None:
            found[name] = Curve(spread.step, spread.median)
    shown = {name: curve for name, curve in found.items() if np.any(curve.value != 0.0)}
    if not shown:
        return None
    entries = [(name, TERM_COLOURS[name]) for name in shown]
    top_in = TITLE_IN + legend_height_in(list(shown)) + 0.15
    figure, [axes] = new_chart([2.9], top_in=top_in, limit=_limit(group.runs), x_label="steps")
    _format_steps(axes)
    axes.axhline(0.0, color=FAINT, linewidth=1.0, zorder=2)
    for name, curve in shown.items():
        axes.plot(curve.step, 1000.0 * curve.value, color=TERM_COLOURS[name], linewidth=1.8, zorder=5)
    axes.set_ylabel("per 1,000 decisions", color=FAINT, fontsize=10)
    whose = _about(group.runs[0]) if len(group.runs) == 1 else f"median of {len(group.runs)} seeds"
    write_title(figure, "Reward terms", whose)
    write_legend(figure, entries)
    silent = [name for name in found if name not in shown]
    none = f" Always zero: {', '.join(silent)}." if silent else ""
    caption = f"What the reward was made of, mean over all cars and decisions of a rollout.{none}"
    return Picture("reward-terms.png", "Reward terms", caption, to_png(figure), is_chart=True)


def _all_runs(groups: Sequence[RunGroup]) -> list[RunRecord]:
    return [run for group in groups for run in group.runs]


def _limit(runs: Sequence[RunRecord]) -> float:
    return max(1.0, *(float(run.step) for run in runs))


def _about(run: RunRecord) -> str:
    return f"{run.name}   ·   {run.step:,} steps"


def _draw(groups: Sequence[RunGroup], panels: Sequence[Panel], title: str) -> tuple["Figure", dict[str, "Axes"]] | None:
    """The panels that have something to show, by their labels."""
    runs = _all_runs(groups)
    is_single = len(runs) == 1
    if is_single:
        used = [panel for panel in panels if any(len(runs[0].curve(strand.key)) for strand in panel.strands)]
    else:
        used = [panel for panel in panels if panel.shared_key(runs) is not None]
    if not used:
        return None
    entries = _single_entries(runs[0], used) if is_single else _group_entries(groups)
    top_in = TITLE_IN + legend_height_in([name for name, _ in entries]) + (0.4 if is_single else 0.2)
    heights_in = [panel.height_in for panel in used]
    figure, axes = new_chart(heights_in, top_in=top_in, limit=_limit(runs), x_label="steps")
    for each, panel in zip(axes, used, strict=True):
        _format_steps(each)
        each.set_ylabel(panel.label, color=FAINT, fontsize=10)
        if is_single:
            _draw_strands(each, panel, runs[0])
        else:
            _draw_groups(each, panel, groups)
    subtitle = _about(runs[0]) if is_single else "thick: median; shaded: the middle half of the seeds; thin: each seed"
    write_title(figure, title, subtitle)
    write_legend(figure, entries)
    return figure, dict(zip((panel.label for panel in used), axes, strict=True))


def _single_entries(run: RunRecord, panels: Sequence[Panel]) -> list[tuple[str, str]]:
    strands = [strand for panel in panels for strand in panel.strands if len(run.curve(strand.key))]
    return list(dict.fromkeys((strand.name, strand.colour) for strand in strands))


def _group_entries(groups: Sequence[RunGroup]) -> list[tuple[str, str]]:
    counted = [(group.label, len(group.runs)) for group in groups]
    names = [f"{label}   ({count} seed{'' if count == 1 else 's'})" for label, count in counted]
    return [(name, colour_of(index)) for index, name in enumerate(names)]


def colour_of(index: int) -> str:
    """The colour of a group or a run by its place among the others."""
    return GROUP_COLOURS[index % len(GROUP_COLOURS)]


def _draw_strands(axes: "Axes", panel: Panel, run: RunRecord) -> None:
    for level, strand in enumerate(panel.strands):
        curve = run.curve(strand.key)
        _plot(axes, curve.step, panel.factor * curve.value, strand.colour, has_dots=strand.has_dots, zorder=4 + level)


def _draw_groups(axes: "Axes", panel: Panel, groups: Sequence[RunGroup]) -> None:
    key = panel.shared_key(_all_runs(groups))
    for index, group in enumerate(groups):
        colour = colour_of(index)
        curves = [run.curve(str(key)) for run in group.runs]
        for curve in curves:
            axes.plot(curve.step, panel.factor * curve.value, color=colour, alpha=0.35, linewidth=0.9, zorder=4)
        spread = spread_of(curves)
        if spread is None:
            continue
        lower, upper = panel.factor * spread.lower, panel.factor * spread.upper
        axes.fill_between(spread.step, lower, upper, color=colour, alpha=0.20, linewidth=0.0, zorder=3)
        _plot(axes, spread.step, panel.factor * spread.median, colour, has_dots=len(spread.step) < 2, zorder=6)


def _plot(axes: "Axes", step: Any, value: Floats, colour: str, *, has_dots: bool, zorder: int) -> None:
    style: dict[str, Any] = {"linewidth": 1.9}
    if has_dots and len(step) <= _MOST_MARKED:
        style = {"linewidth": 1.2, "marker": "o", "markersize": 4.5}
    axes.plot(step, value, color=colour, zorder=zorder, **style)


def _format_steps(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def short_number(value: float) -> str:
    """A count for an axis: 2.5 M, 250 k."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _draw_yardstick(axes: "Axes", value: float, text: str, colour: str) -> None:
    """A level line with its name above its right end."""
    axes.axhline(value, color=colour, linewidth=1.6, linestyle=(0, (5, 3)), zorder=3)
    place: dict[str, Any] = {"xycoords": axes.get_yaxis_transform(), "textcoords": "offset points"}
    axes.annotate(text, (1.0, value), (-2, 4), color=colour, fontsize=9.5, ha="right", va="bottom", **place)


def _number_episodes(axes: "Axes", episodes: Curve) -> None:
    """How many episodes had ended, above the panel at each mark of the axis."""
    if not len(episodes):
        return
    low, high = axes.get_xlim()
    style: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "fontsize": 9.0}
    for tick in axes.get_xticks():
        if low < tick <= high:
            count = float(np.interp(tick, episodes.step, episodes.value))
            axes.annotate(f"{count:,.0f}", (tick, 1.0), (0, 6), color=FAINT, ha="center", **style)
    axes.annotate("episodes", (0.0, 1.0), (0, 6), color=FAINT, ha="left", **style)


def _leave_out_spikes(axes: "Axes", values: Floats) -> None:
    low, high = np.quantile(values, (0.01, 0.99)).tolist()
    room = 0.1 * (high - low) or 1.0
    axes.set_ylim(low - room, high + room)


def _limit_lap_times(axes: "Axes", yardsticks: Yardsticks) -> None:
    """All the good laps, and of the bad ones what lies near the yardsticks."""
    low_s, high_s = axes.get_ylim()
    known = [lap_s for lap_s in (yardsticks.casual_lap_s, yardsticks.optimal_lap_s) if lap_s is not None]
    if known:
        low_s, high_s = min(low_s, *known), max(known) * 1.06 if high_s < max(known) else min(high_s, 1.5 * max(known))
    axes.set_ylim(low_s - 0.04 * (high_s - low_s), high_s + 0.04 * (high_s - low_s))
