"""Charts of laps against the optimum over distance: time lost, speed and pedals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotlap.evaluation.lap_comparison import Comparison
from hotlap.reports.formatting import signed
from hotlap.reports.html import Picture
from hotlap.reports.plots.chart import (
    DRIVER,
    LOSS,
    OPTIMUM,
    PLOT_IN,
    TITLE_IN,
    label_panel,
    legend_height_in,
    new_chart,
    to_png,
    write_driver_legend,
    write_legend,
    write_title,
)
from hotlap.reports.plots.maps import draw_racing_lines, draw_time_lost, loss_colours, loss_rate
from hotlap.tracks.maps.map_colours import BACKGROUND, BADGE, EDGE, TEXT
from hotlap.tracks.registry import Track

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEVEL_IN = 0.30  # height of a row of corner numbers


def draw_comparison(comparison: Comparison, track: Track, name: str) -> list[Picture]:
    """All pictures of one lap against the optimum: the map of time lost first, the two racing lines last."""
    return [
        draw_time_lost(comparison, track, name),
        Picture(
            "delta.png",
            "Time lost over the lap",
            "The driver loses time where the curve rises and is as fast as the optimum where it is level.",
            to_png(_draw_delta(comparison, name)),
            is_chart=True,
        ),
        Picture(
            "telemetry.png",
            "Speed, throttle and brake",
            "The driver's pedals are recorded. The optimum's are estimated from its acceleration, with air drag and "
            "rolling resistance but without the tyres' cornering drag, so its throttle reads too low in corners.",
            to_png(_draw_telemetry(comparison, name)),
            is_chart=True,
        ),
        *draw_racing_lines(comparison, track, name),
    ]


def _draw_delta(comparison: Comparison, name: str) -> "Figure":
    """Time lost over distance, the area under it in the colours of the map."""
    from matplotlib.collections import PolyCollection

    figure, [axes], levels = _new_lap_chart(comparison, [2.9], has_notes=True)
    _mark_corners(axes, comparison, levels, has_notes=True)
    arc_m, delta_s = comparison.arc_m, comparison.delta_s
    rate = loss_rate(comparison)
    flat = np.zeros(len(rate))
    corners = ((arc_m[:-1], flat), (arc_m[1:], flat), (arc_m[1:], delta_s[1:]), (arc_m[:-1], delta_s[:-1]))
    strips = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)  # (num_nodes, 4, 2)
    colours = loss_colours(rate).to_rgba(rate)
    axes.add_collection(PolyCollection(list(strips), facecolors=colours, edgecolors=colours, linewidths=0.4, zorder=2))
    ends_m = np.array([sector.end_m for sector in comparison.sectors])
    axes.vlines(ends_m, 0.0, np.interp(ends_m, arc_m, delta_s), color=BACKGROUND, linewidth=1.6, zorder=3)
    axes.axhline(0.0, color=OPTIMUM, linewidth=2.4, zorder=4)
    axes.plot(arc_m, delta_s, color=DRIVER, linewidth=2.4, zorder=5)
    low, high = min(float(delta_s.min()), 0.0), max(float(delta_s.max()), 0.05)
    axes.set_ylim(low - 0.04 * (high - low), high + 0.16 * (high - low))
    label_panel(axes, "time lost (s)")
    final_s = float(delta_s[-1])
    end: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "bottom", "weight": "bold"}
    axes.annotate(f"{signed(final_s)} s", (float(arc_m[-1]), final_s), (0, 7), color=TEXT, fontsize=12, **end)
    write_title(
        figure, "Time lost since the line", "redder: more time lost per metre; dividers: halfway between corners"
    )
    write_driver_legend(figure, name)
    return figure


def _draw_telemetry(comparison: Comparison, name: str) -> "Figure":
    """Speed, throttle and brake of driver and optimum over distance."""
    figure, panels, levels = _new_lap_chart(comparison, [2.6, 1.05, 1.05], has_notes=False)
    rows = (
        ("speed (km/h)", 3.6, comparison.driver_speed_mps, comparison.optimal_speed_mps),
        ("throttle (%)", 100.0, comparison.driver_throttle, comparison.optimal_throttle),
        ("brake (%)", 100.0, comparison.driver_brake, comparison.optimal_brake),
    )
    for axes, (label, factor, driver, optimum) in zip(panels, rows, strict=True):
        _mark_corners(axes, comparison, levels if axes is panels[0] else None, has_notes=False)
        axes.plot(comparison.arc_m, factor * optimum, color=OPTIMUM, linewidth=1.8, zorder=4)
        axes.plot(comparison.arc_m, factor * driver, color=DRIVER, linewidth=1.8, zorder=5)
        label_panel(axes, label)
        if axes is not panels[0]:
            axes.set_ylim(-5.0, 105.0)
            axes.set_yticks([0, 50, 100])
    slow, fast = 3.6 * comparison.driver_speed_mps, 3.6 * comparison.optimal_speed_mps
    panels[0].fill_between(comparison.arc_m, slow, fast, where=(slow < fast).tolist(), color=LOSS, alpha=0.16, zorder=2)
    panels[0].set_ylim(0.0, 1.06 * max(float(slow.max()), float(fast.max())))
    write_title(figure, "Speed and pedals", "optimum's pedals estimated from its acceleration: too low in corners")
    write_driver_legend(figure, name)
    return figure


def draw_deltas(comparisons: Sequence[tuple[str, str, Comparison]]) -> Picture:
    """Time lost over distance for several laps, each with its name and colour."""
    first = comparisons[0][2]
    entries = [(f"{name} {signed(float(lap.delta_s[-1]))} s", colour) for name, colour, lap in comparisons]
    entries.append(("optimum", OPTIMUM))
    extra_in = legend_height_in([name for name, _ in entries])
    figure, [axes], levels = _new_lap_chart(first, [3.2], has_notes=False, extra_in=extra_in)
    _mark_corners(axes, first, levels, has_notes=False)
    axes.axhline(0.0, color=OPTIMUM, linewidth=2.4, zorder=4)
    for _, colour, lap in comparisons:
        axes.plot(lap.arc_m, lap.delta_s, color=colour, linewidth=1.8, zorder=5)
    low = min(0.0, *(float(lap.delta_s.min()) for _, _, lap in comparisons))
    high = max(0.05, *(float(lap.delta_s.max()) for _, _, lap in comparisons))
    axes.set_ylim(low - 0.04 * (high - low), high + 0.06 * (high - low))
    label_panel(axes, "time lost (s)")
    write_title(figure, "Time lost since the line", "each run's best flying lap against the optimum")
    write_legend(figure, entries)
    caption = "A run loses time where its curve rises and is as fast as the optimum where it is level."
    return Picture("deltas.png", "Time lost by each run", caption, to_png(figure), is_chart=True)


def _new_lap_chart(
    comparison: Comparison, heights_in: Sequence[float], *, has_notes: bool, extra_in: float = 0.0
) -> tuple["Figure", list["Axes"], list[int]]:
    """Panels on a common distance axis, and the label row of each corner's number."""
    limit_m = float(comparison.arc_m[-1])
    levels = _corner_levels(comparison, (0.72 if has_notes else 0.32) / PLOT_IN * limit_m)
    figure, panels = new_chart(
        heights_in,
        top_in=TITLE_IN + extra_in + _LEVEL_IN * (max(levels, default=-1) + 1) + 0.1,
        limit=limit_m,
        x_label="distance from the start line, along the centreline (m)",
    )
    return figure, panels, levels


def _corner_levels(comparison: Comparison, width_m: float) -> list[int]:
    """Label rows of the corners in driving order, so that labels `width_m` wide do not overlap."""
    last_m: list[float] = []
    levels = []
    for sector in sorted(comparison.sectors, key=lambda one: one.number):
        free = [level for level, end_m in enumerate(last_m) if sector.apex_m - end_m >= width_m]
        level = free[0] if free else len(last_m)
        last_m[level : level + 1] = [sector.apex_m]
        levels.append(level)
    return levels


def _mark_corners(axes: "Axes", comparison: Comparison, levels: list[int] | None, *, has_notes: bool) -> None:
    """A faint line at each corner; with `levels`, also its number (and time lost) above the panel."""
    sectors = sorted(comparison.sectors, key=lambda one: one.number)
    for index, sector in enumerate(sectors):
        if not sector.number:
            continue
        axes.axvline(sector.apex_m, color=EDGE, alpha=0.22, linewidth=1.0, linestyle=(0, (2, 3)), zorder=3)
        if levels is None:
            continue
        style: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "va": "center"}
        up = 72.0 * _LEVEL_IN * (levels[index] + 0.5) + 3.0
        badge = {"boxstyle": "circle,pad=0.28", "facecolor": BADGE, "edgecolor": "none"}
        place, left = (sector.apex_m, 1.0), -14.0 if has_notes else 0.0
        number: dict[str, Any] = {"fontsize": 9, "weight": "bold", "ha": "center", "bbox": badge, **style}
        axes.annotate(str(sector.number), place, (left, up), color=TEXT, **number)
        if has_notes:
            axes.annotate(signed(sector.lost_s), place, (-3.0, up), color=TEXT, fontsize=9, **style)
