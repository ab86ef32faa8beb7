"""Curves over training steps: the learning curve, lap times with their baselines, and the reward terms."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hotlap.drawing.axes import Axes
from hotlap.drawing.ticks import choose_ticks
from hotlap.evaluation.telemetry import Floats
from hotlap.reports.curves import Curve
from hotlap.reports.html import Picture
from hotlap.reports.model_laps import Baselines
from hotlap.reports.plots.chart import (
    DRIVER,
    GAIN,
    LOSS,
    OPTIMUM,
    TITLE_IN,
    label_panel,
    legend_height_in,
    new_chart,
    to_png,
    write_legend,
    write_title,
)
from hotlap.reports.plots.panels import (
    Panel,
    Series,
    all_runs,
    describe,
    draw_panels,
    format_steps,
    furthest_step,
)
from hotlap.reports.run_record import RunGroup
from hotlap.reports.statistics import compute_spread
from hotlap.tracks.maps.map_colours import FAINT, TEXT

EVALUATED = TEXT
DIM = "#8a7a4a"  # the driver's colour, darker, for less important series
TERM_COLOURS = {
    "progress": GAIN,
    "speed": "#4fa8ff",
    "wall": LOSS,
    "offTrack": "#ff9d4d",
    "backward": "#ff7eb6",
    "stillness": "#c9d1d9",
}

_TRAINING = "training, mean of the last 100 episodes"
_RETURN = Panel("return", 2.5, (Series("metrics/reward", _TRAINING, DRIVER),), ("metrics/reward",))
_EVALUATION = Series("eval/mean_reward", "evaluation, deterministic", EVALUATED, has_dots=True)
_EVALUATED_RETURN = Panel("return, evaluated", 2.0, (), ("eval/mean_reward",))
_LENGTH = Panel(
    "episode length", 1.25, (Series("metrics/episode_length", _TRAINING, DRIVER),), ("metrics/episode_length",)
)
_LOSS = Panel("loss", 1.25, (Series("metrics/loss", "of the last update", "#4fa8ff"),))
_LAP_TIME = Panel(
    "lap time (s)",
    2.9,
    (
        Series("racer/mean_lap_time_sec", "all laps, mean", DIM),
        Series("racer/best_lap_time_sec", "all laps, best", DRIVER),
        Series("eval/median_lap_time_sec", "evaluation, median clean flying lap", EVALUATED, has_dots=True),
    ),
    ("eval/median_lap_time_sec", "racer/mean_lap_time_sec"),
    shared_label="median lap (s)",
)
_COMPLETION = Panel(
    "fraction (%)",
    1.5,
    (
        Series("racer/completion_rate", "episodes with a lap", DIM),
        Series("eval/completion_rate", "evaluation, completed", EVALUATED, has_dots=True),
        Series("eval/clean_lap_rate", "evaluation, clean laps", GAIN, has_dots=True),
    ),
    ("eval/completion_rate", "racer/completion_rate"),
    shared_label="completed (%)",
    factor=100.0,
)


def draw_learning_curve(groups: Sequence[RunGroup]) -> Picture | None:
    """Return, episode length and loss over the steps; None if no episode has ended yet."""
    runs = all_runs(groups)
    is_racer, is_single = runs[0].track is not None, len(runs) == 1
    if is_single:
        # A racer's evaluation episodes differ from its training episodes, so their returns are not comparable.
        returns = _RETURN if is_racer else replace(_RETURN, series=(*_RETURN.series, _EVALUATION))
        panels = [returns, _LENGTH, _LOSS]
    else:
        panels = [_RETURN, _LENGTH] if is_racer else [_RETURN, _EVALUATED_RETURN, _LENGTH]
    chart = draw_panels(groups, panels, "Learning curve", has_episodes=is_single)
    if chart is None:
        return None
    threshold = runs[0].reward_threshold
    for label, axes in chart.panels.items():
        if threshold is not None and label in (_RETURN.label, _EVALUATED_RETURN.label):
            _draw_level(axes, threshold, f"solved: {threshold:g}", GAIN, is_left=True)
        if label == _LOSS.label:
            _clip_spikes(axes, runs[0].curve("metrics/loss").value)
    if is_single:
        _write_episode_counts(next(iter(chart.panels.values())), runs[0].curve("metrics/episode"))
    caption = "Return, length and loss during training."
    return Picture("learning.png", "Learning", caption, to_png(chart.figure), is_chart=True)


def draw_lap_times(groups: Sequence[RunGroup], baselines: Baselines) -> Picture | None:
    """Lap times and completion over the steps, with the baselines; None if no lap was finished yet."""
    chart = draw_panels(groups, [_LAP_TIME, _COMPLETION], "Lap times")
    if chart is None or _LAP_TIME.label not in chart.panels:
        return None
    axes = chart.panels[_LAP_TIME.label]
    _limit_lap_times(axes, baselines)
    # Laps come close to the optimum at the end of a run, so its name stands at the start.
    for lap_s, name, colour, is_left in (
        (baselines.casual_lap_s, "casual driver", FAINT, False),
        (baselines.optimal_lap_s, "optimum", OPTIMUM, True),
    ):
        if lap_s is not None:
            _draw_level(axes, lap_s, f"{name}  {lap_s:.2f} s", colour, is_left=is_left)
    if _COMPLETION.label in chart.panels:
        chart.panels[_COMPLETION.label].y.limits = -4.0, 104.0
    caption = (
        "All laps are those of training (with exploration) or, where its episodes are too short for a lap, of "
        "evaluations (without). No point means that no lap was finished."
    )
    return Picture("laps.png", "Laps", caption, to_png(chart.figure), is_chart=True)


def draw_reward_terms(group: RunGroup) -> Picture | None:
    """The reward terms over the steps, as medians over the seeds; None if none was logged."""
    found: dict[str, Curve] = {}
    for name in TERM_COLOURS:
        spread = compute_spread([curve for run in group.runs if len(curve := run.curve(f"reward/{name}"))])
        if spread is not None:
            found[name] = Curve(spread.step, spread.median)
    shown = {name: curve for name, curve in found.items() if np.any(curve.value != 0.0)}
    if not shown:
        return None
    top_in = TITLE_IN + legend_height_in(list(shown)) + 0.15
    figure, [axes] = new_chart([2.9], top_in=top_in, limit=furthest_step(group.runs), x_label="steps")
    format_steps(axes)
    label_panel(axes, "per 1,000 decisions")
    axes.horizontal(0.0, FAINT, 1.0, layer=2)
    for name, curve in shown.items():
        axes.line(curve.step, 1000.0 * curve.value, TERM_COLOURS[name], layer=5)
    is_single = len(group.runs) == 1
    write_title(figure, "Reward terms", describe(group.runs[0]) if is_single else f"median of {len(group.runs)} seeds")
    write_legend(figure, [(name, TERM_COLOURS[name]) for name in shown])
    zero = [name for name in found if name not in shown]
    note = f" Always zero: {', '.join(zero)}." if zero else ""
    caption = f"Each term of the reward, averaged over all cars and decisions of a rollout.{note}"
    return Picture("reward-terms.png", "Reward terms", caption, to_png(figure), is_chart=True)


def _draw_level(axes: Axes, value: float, text: str, colour: str, *, is_left: bool = False) -> None:
    """A dashed horizontal line with its name above the right or left end."""
    axes.horizontal(value, colour, 1.6, dashes=(5, 3), layer=3)
    x, align = (-np.inf, "left") if is_left else (np.inf, "right")
    axes.text(text, x, value, colour, 9.5, align=align, vertical="bottom", offset_pt=(0.0, 3.0))


def _write_episode_counts(axes: Axes, episodes: Curve) -> None:
    """The number of episodes ended so far, above the panel at each tick of the step axis."""
    if not len(episodes):
        return
    low, high = axes.x_range
    for tick in choose_ticks(low, high, axes.x.max_intervals):
        if low < tick <= high:
            count = float(np.interp(tick, episodes.step, episodes.value))
            axes.text(
                f"{count:,.0f}", tick, np.inf, FAINT, 9.0, align="centre", vertical="bottom", offset_pt=(0.0, 4.0)
            )
    axes.text("episodes", -np.inf, np.inf, FAINT, 9.0, vertical="bottom", offset_pt=(0.0, 4.0))


def _clip_spikes(axes: Axes, values: Floats) -> None:
    low, high = np.quantile(values, (0.01, 0.99)).tolist()
    room = 0.1 * (high - low) or 1.0
    axes.y.limits = low - room, high + room


def _limit_lap_times(axes: Axes, baselines: Baselines) -> None:
    """Limit the axis to both baselines and the fast laps; of the slow laps only those near them."""
    low_s, high_s = axes.y_range
    known = [lap_s for lap_s in (baselines.casual_lap_s, baselines.optimal_lap_s) if lap_s is not None]
    if known:
        low_s, high_s = min(low_s, *known), min(max(high_s, 1.06 * max(known)), 1.5 * max(known))
    axes.y.limits = low_s - 0.04 * (high_s - low_s), high_s + 0.04 * (high_s - low_s)
