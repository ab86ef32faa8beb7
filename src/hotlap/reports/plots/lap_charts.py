"""Charts of laps against the optimum over distance: time lost, speed and pedals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hotlap.drawing.axes import Axes
from hotlap.drawing.figure import Figure
from hotlap.drawing.lettering import POINTS_PER_INCH
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


def _draw_delta(comparison: Comparison, name: str) -> Figure:
    """Time lost over distance, the area under it in the colours of the map."""
    figure, [axes], levels = _new_lap_chart(comparison, [2.9], has_notes=True)
    _mark_corners(axes, comparison, levels, has_notes=True)
    arc_m, delta_s = comparison.arc_m, comparison.delta_s
    rate = loss_rate(comparison)
    flat = np.zeros(len(rate))
    corners = ((arc_m[:-1], flat), (arc_m[1:], flat), (arc_m[1:], delta_s[1:]), (arc_m[:-1], delta_s[:-1]))
    strips = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)  # (num_nodes, 4, 2)
    axes.polygons(strips, loss_colours(rate)(rate), layer=2)
    for end_m in (sector.end_m for sector in comparison.sectors):
        axes.line(end_m, (0.0, float(np.interp(end_m, arc_m, delta_s))), BACKGROUND, 1.6, layer=3)
    axes.horizontal(0.0, OPTIMUM, 2.4, layer=4)
    axes.line(arc_m, delta_s, DRIVER, 2.4, layer=5)
    low, high = min(float(delta_s.min()), 0.0), max(float(delta_s.max()), 0.05)
    axes.y.limits = low - 0.04 * (high - low), high + 0.16 * (high - low)
    label_panel(axes, "time lost (s)")
    final_s = float(delta_s[-1])
    final = f"{signed(final_s)} s"
    axes.text(
        final, float(arc_m[-1]), final_s, TEXT, 12.0, is_bold=True, align="right", vertical="bottom", offset_pt=(0, 7)
    )
    write_title(
        figure, "Time lost since the line", "redder: more time lost per metre; dividers: halfway between corners"
    )
    write_driver_legend(figure, name)
    return figure


def _draw_telemetry(comparison: Comparison, name: str) -> Figure:
    """Speed, throttle and brake of driver and optimum over distance."""
    figure, panels, levels = _new_lap_chart(comparison, [2.6, 1.05, 1.05], has_notes=False)
    rows = (
        ("speed (km/h)", 3.6, comparison.driver_speed_mps, comparison.optimal_speed_mps),
        ("throttle (%)", 100.0, comparison.driver_throttle, comparison.optimal_throttle),
        ("brake (%)", 100.0, comparison.driver_brake, comparison.optimal_brake),
    )
    for axes, (label, factor, driver, optimum) in zip(panels, rows, strict=True):
        _mark_corners(axes, comparison, levels if axes is panels[0] else None, has_notes=False)
        axes.line(comparison.arc_m, factor * optimum, OPTIMUM, layer=4)
        axes.line(comparison.arc_m, factor * driver, DRIVER, layer=5)
        label_panel(axes, label)
        if axes is not panels[0]:
            axes.y.limits, axes.y.ticks = (-5.0, 105.0), (0, 50, 100)
    slow, fast = 3.6 * comparison.driver_speed_mps, 3.6 * comparison.optimal_speed_mps
    panels[0].band(comparison.arc_m, slow, np.maximum(slow, fast), LOSS, opacity=0.16, layer=2)
    panels[0].y.limits = 0.0, 1.06 * max(float(slow.max()), float(fast.max()))
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
    axes.horizontal(0.0, OPTIMUM, 2.4, layer=4)
    for _, colour, lap in comparisons:
        axes.line(lap.arc_m, lap.delta_s, colour, layer=5)
    low = min(0.0, *(float(lap.delta_s.min()) for _, _, lap in comparisons))
    high = max(0.05, *(float(lap.delta_s.max()) for _, _, lap in comparisons))
    axes.y.limits = low - 0.04 * (high - low), high + 0.06 * (high - low)
    label_panel(axes, "time lost (s)")
    write_title(figure, "Time lost since the line", "each run's best flying lap against the optimum")
    write_legend(figure, entries)
    caption = "A run loses time where its curve rises and is as fast as the optimum where it is level."
    return Picture("deltas.png", "Time lost by each run", caption, to_png(figure), is_chart=True)


def _new_lap_chart(
    comparison: Comparison, heights_in: Sequence[float], *, has_notes: bool, extra_in: float = 0.0
) -> tuple[Figure, list[Axes], list[int]]:
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


def _mark_corners(axes: Axes, comparison: Comparison, levels: list[int] | None, *, has_notes: bool) -> None:
    """A faint line at each corner; with `levels`, also its number (and time lost) above the panel."""
    sectors = sorted(comparison.sectors, key=lambda one: one.number)
    for index, sector in enumerate(sectors):
        if not sector.number:
            continue
        axes.vertical(sector.apex_m, EDGE, 1.0, opacity=0.22, dashes=(2, 3), layer=3)
        if levels is None:
            continue
        up_pt, left_pt = POINTS_PER_INCH * _LEVEL_IN * (levels[index] + 0.5) + 3.0, -14.0 if has_notes else 0.0
        badge: dict[str, Any] = {"is_bold": True, "align": "centre", "disc": BADGE, "disc_pt": 15.0}
        axes.text(str(sector.number), sector.apex_m, np.inf, TEXT, 9.0, offset_pt=(left_pt, up_pt), **badge)
        if has_notes:
            axes.text(signed(sector.lost_s), sector.apex_m, np.inf, TEXT, 9.0, offset_pt=(-3.0, up_pt))
