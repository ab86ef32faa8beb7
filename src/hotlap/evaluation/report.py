"""The report on a driver: pictures of where it loses time against the optimal lap, and the page that shows them."""

import os
import shutil
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotlap.errors import OutputFileError
from hotlap.evaluation.comparison import Comparison, compare
from hotlap.evaluation.page import PAGE_COLOURS, Picture, render_page, signed
from hotlap.evaluation.trace import Floats, Trace
from hotlap.tracks.files import Raceline
from hotlap.tracks.pictures import (
    BACKGROUND,
    BADGE,
    EDGE,
    FAINT,
    ROAD,
    TEXT,
    SpeedLine,
    draw_colour_bar,
    draw_ribbon,
    draw_speed_line,
    draw_start_line,
    find_corners,
    label_corners,
    new_map,
)
from hotlap.tracks.registry import Track

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

PAGE_NAME = "report.html"
DPI = 190

DRIVER, OPTIMUM, LOSS, GAIN = (PAGE_COLOURS[name] for name in ("driver", "optimum", "loss", "gain"))

_MAP_WIDTH_IN = 6.8
_CHART_WIDTH_IN = 9.4
_CHART_LEFT_IN, _CHART_RIGHT_IN = 0.85, 0.35
_CHART_TITLE_IN, _CHART_FOOT_IN = 0.95, 0.65
_LEVEL_IN = 0.30  # height of a row of corner numbers
_SMOOTH_M = 15.0
_LEAST_RATE = 0.1  # s per 100 m at the red end of the scale, so that a near-perfect lap is not painted red
_NAME_LENGTH = 40


def write_report(
    trace: Trace, track: Track, raceline: Raceline, optimal_lap_s: float, folder: Path, driver_name: str
) -> Path:
    """Write `report.html` and its pictures into `folder`, each whole or not at all; returns the page's path.

    The page carries its pictures inside, so it can be sent alone.
    """
    comparison = compare(trace, track, raceline, optimal_lap_s)
    name = _short(driver_name)
    drafts = folder / f".report.{os.getpid()}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        drafts.mkdir(exist_ok=True)
        plates = _draw_all(comparison, track, name)
        for picture in plates:
            (drafts / picture.file_name).write_bytes(picture.png)
        page = render_page(comparison, track, name, plates)
        (drafts / PAGE_NAME).write_text(page, encoding="utf-8", newline="\n")
        for file_name in (*(picture.file_name for picture in plates), PAGE_NAME):
            (drafts / file_name).replace(folder / file_name)
    except OSError as error:
        raise OutputFileError(
            f"{folder}: the report cannot be written ({error.strerror or error}). Choose another folder."
        ) from None
    finally:
        shutil.rmtree(drafts, ignore_errors=True)
    return folder / PAGE_NAME


def _draw_all(comparison: Comparison, track: Track, name: str) -> list[Picture]:
    driver, optimum = comparison.driver_line, comparison.optimal_line
    both_mps = np.concatenate([driver[2], optimum[2]])
    range_mps = (float(both_mps.min()), float(both_mps.max()))
    return [
        Picture(
            "time-lost.png",
            "Where the time goes",
            "The redder the road, the more time is lost there. Beside each corner: the seconds lost around it.",
            _png(_draw_losses(comparison, track, name)),
        ),
        Picture(
            "delta.png",
            "How the gap grows",
            "Where the curve climbs, the driver loses time; where it is level, it keeps up with the optimum.",
            _png(_draw_delta(comparison, name)),
            is_chart=True,
        ),
        Picture(
            "telemetry.png",
            "Speed, throttle and brake",
            "The driver's pedals are recorded. The optimum's are estimated from its acceleration: air and rolling "
            "drag are counted, what the tyres scrub off in bends is not, so there its throttle reads too low.",
            _png(_draw_telemetry(comparison, name)),
            is_chart=True,
        ),
        Picture(
            "line-driver.png",
            f"The line of {name}",
            "Coloured by speed, on the same scale as the optimum's.",
            _png(_draw_line(track, driver, range_mps, (name, comparison.lap.time_s, DRIVER))),
            is_half=True,
        ),
        Picture(
            "line-optimum.png",
            "The optimum's line",
            "Coloured by speed, on the same scale as the driver's.",
            _png(_draw_line(track, optimum, range_mps, ("optimum", comparison.optimal_lap_s, OPTIMUM))),
            is_half=True,
        ),
    ]


def _png(figure: "Figure") -> bytes:
    content = BytesIO()
    figure.savefig(content, dpi=DPI, format="png", facecolor=BACKGROUND)
    return content.getvalue()


def _short(name: str) -> str:
    """A driver's name on one line, cut where it would not fit a heading."""
    line = " ".join("".join(c if c.isprintable() else " " for c in name).split()) or "driver"
    return line if len(line) <= _NAME_LENGTH else line[: _NAME_LENGTH - 1] + "…"


def loss_rate(comparison: Comparison) -> Floats:
    """Time lost per 100 m (s) at each node, smoothed over some metres; round the lap, as it is closed."""
    delta_s, step_m = comparison.delta_s, float(comparison.arc_m[1])
    size, reach = len(delta_s) - 1, max(round(_SMOOTH_M / step_m), 1)
    total_s = float(delta_s[-1])
    around = np.arange(-reach, size + reach)
    # On the lap before and after, the driver is a whole lap's loss behind and ahead of where it is on this one.
    unrolled_s = delta_s[around % size] + total_s * (around // size)
    rate: Floats = 100.0 * (unrolled_s[2 * reach :] - unrolled_s[: -2 * reach]) / (2 * reach * step_m)
    return rate


def _loss_colours(rate: Floats) -> "ScalarMappable":
    """Grey where nothing is lost, red where most is, green where the driver gains."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    high, low = max(float(rate.max()), _LEAST_RATE), min(float(rate.min()), 0.0)
    zero = -low / (high - low)
    stops = [(zero, ROAD), (zero + 0.5 * (1.0 - zero), "#96453f"), (1.0, LOSS)]
    scale = LinearSegmentedColormap.from_list("loss", [(0.0, GAIN), *stops] if zero > 0.0 else stops)
    return ScalarMappable(Normalize(low, high), scale)


def _draw_losses(comparison: Comparison, track: Track, name: str) -> "Figure":
    """The road coloured by time lost, with both lines on it and each corner's loss beside it."""
    rate = loss_rate(comparison)
    colours = _loss_colours(rate)
    figure, canvas = new_map(track.nodes, has_colour_bar=True, width_in=_MAP_WIDTH_IN, footer_in=0.3, pad_share=0.08)
    road: Floats = np.asarray(colours.to_rgba(rate), dtype=np.float64)
    draw_ribbon(canvas, track.nodes, road)
    draw_start_line(canvas, track.nodes)
    road_points = float(np.median(track.nodes.road_left_m + track.nodes.road_right_m)) / canvas.metres_per_point
    # On a long track the road is thin: the lines must leave some of its colour to be seen.
    stroke = min(max(0.08 * road_points, 0.6), 1.7)
    for (x, y, _), colour in ((comparison.optimal_line, OPTIMUM), (comparison.driver_line, DRIVER)):
        canvas.axes.plot(np.append(x, x[0]), np.append(y, y[0]), color=colour, linewidth=stroke, zorder=32)
    draw_colour_bar(figure, canvas, colours, "s lost\nper 100 m")
    notes = [f"{signed(sector.lost_s)} s" for sector in sorted(comparison.sectors, key=lambda one: one.number)]
    label_corners(canvas, track.nodes, find_corners(track.nodes), notes)
    _title(figure, f"{signed(float(comparison.delta_s[-1]))} s a lap", f"{track.name}, best flying lap", name)
    return figure


def _draw_line(
    track: Track, line: SpeedLine, range_mps: tuple[float, float], whose: tuple[str, float, str]
) -> "Figure":
    """One line on the track, coloured by speed on the scale of both."""
    name, time_s, colour = whose
    figure, canvas = new_map(track.nodes, has_colour_bar=True, width_in=_MAP_WIDTH_IN, footer_in=0.3)
    draw_ribbon(canvas, track.nodes)
    draw_start_line(canvas, track.nodes)
    draw_speed_line(figure, canvas, line, range_mps=range_mps)
    label_corners(canvas, track.nodes, find_corners(track.nodes))
    speeds = f"{3.6 * float(line[2].min()):.0f} to {3.6 * float(line[2].max()):.0f} km/h"
    _title(figure, name, f"{time_s:.2f} s   ·   {speeds}", colour=colour)
    return figure


def _draw_delta(comparison: Comparison, name: str) -> "Figure":
    """Time lost against distance, the area under it in the map's colours."""
    from matplotlib.collections import PolyCollection

    figure, [axes], levels = _new_chart(comparison, [2.9], has_notes=True)
    _mark_corners(axes, comparison, levels, has_notes=True)
    arc_m, delta_s = comparison.arc_m, comparison.delta_s
    rate = loss_rate(comparison)
    flat = np.zeros(len(rate))
    corners = ((arc_m[:-1], flat), (arc_m[1:], flat), (arc_m[1:], delta_s[1:]), (arc_m[:-1], delta_s[:-1]))
    strips = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)  # (num_nodes, 4, 2)
    colours = _loss_colours(rate).to_rgba(rate)
    axes.add_collection(PolyCollection(list(strips), facecolors=colours, edgecolors=colours, linewidths=0.4, zorder=2))
    ends_m = np.array([sector.end_m for sector in comparison.sectors])
    axes.vlines(ends_m, 0.0, np.interp(ends_m, arc_m, delta_s), color=BACKGROUND, linewidth=1.6, zorder=3)
    axes.axhline(0.0, color=OPTIMUM, linewidth=2.4, zorder=4)
    axes.plot(arc_m, delta_s, color=DRIVER, linewidth=2.4, zorder=5)
    low, high = min(float(delta_s.min()), 0.0), max(float(delta_s.max()), 0.05)
    axes.set_ylim(low - 0.04 * (high - low), high + 0.16 * (high - low))
    axes.set_ylabel("time lost (s)", color=FAINT, fontsize=10)
    final_s = float(delta_s[-1])
    end: dict[str, Any] = {"textcoords": "offset points", "ha": "right", "va": "bottom", "weight": "bold"}
    axes.annotate(f"{signed(final_s)} s", (float(arc_m[-1]), final_s), (0, 7), color=TEXT, fontsize=12, **end)
    _title(figure, "Time lost since the line", "redder: more lost per metre; gaps: halfway between corners", name)
    return figure


def _draw_telemetry(comparison: Comparison, name: str) -> "Figure":
    """Speed, throttle and brake of both against distance."""
    figure, panels, levels = _new_chart(comparison, [2.6, 1.05, 1.05], has_notes=False)
    rows = (
        ("speed (km/h)", 3.6, comparison.driver_speed_mps, comparison.optimal_speed_mps),
        ("throttle (%)", 100.0, comparison.driver_throttle, comparison.optimal_throttle),
        ("brake (%)", 100.0, comparison.driver_brake, comparison.optimal_brake),
    )
    for axes, (label, factor, driver, optimum) in zip(panels, rows, strict=True):
        _mark_corners(axes, comparison, levels if axes is panels[0] else None, has_notes=False)
        axes.plot(comparison.arc_m, factor * optimum, color=OPTIMUM, linewidth=1.8, zorder=4)
        axes.plot(comparison.arc_m, factor * driver, color=DRIVER, linewidth=1.8, zorder=5)
        axes.set_ylabel(label, color=FAINT, fontsize=10)
        if axes is not panels[0]:
            axes.set_ylim(-5.0, 105.0)
            axes.set_yticks([0, 50, 100])
    slow, fast = 3.6 * comparison.driver_speed_mps, 3.6 * comparison.optimal_speed_mps
    panels[0].fill_between(comparison.arc_m, slow, fast, where=(slow < fast).tolist(), color=LOSS, alpha=0.16, zorder=2)
    panels[0].set_ylim(0.0, 1.06 * max(float(slow.max()), float(fast.max())))
    _title(figure, "Speed and pedals", "optimum's pedals estimated from its acceleration: too low in bends", name)
    return figure


def _new_chart(
    comparison: Comparison, heights_in: Sequence[float], *, has_notes: bool
) -> tuple["Figure", list["Axes"], list[int]]:
    """Panels over one another on a common distance axis, and the row each corner's number stands in."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    plot_in, gap_in = _CHART_WIDTH_IN - _CHART_LEFT_IN - _CHART_RIGHT_IN, 0.22
    levels = _corner_levels(comparison, (0.72 if has_notes else 0.32) / plot_in * float(comparison.arc_m[-1]))
    top_in = _CHART_TITLE_IN + _LEVEL_IN * (max(levels, default=-1) + 1) + 0.1
    full_in = top_in + sum(heights_in) + gap_in * (len(heights_in) - 1) + _CHART_FOOT_IN
    figure = Figure(figsize=(_CHART_WIDTH_IN, full_in), facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    panels: list[Axes] = []
    upper_in = full_in - top_in
    for height_in in heights_in:
        box = (_CHART_LEFT_IN / _CHART_WIDTH_IN, (upper_in - height_in) / full_in)
        axes = figure.add_axes((*box, plot_in / _CHART_WIDTH_IN, height_in / full_in), facecolor=BACKGROUND)
        axes.set_xlim(0.0, float(comparison.arc_m[-1]))
        axes.tick_params(colors=FAINT, labelsize=10, length=0, labelbottom=False)
        axes.grid(axis="y", color=BADGE, linewidth=0.8, zorder=0)
        axes.spines[:].set_visible(False)
        panels.append(axes)
        upper_in -= height_in + gap_in
    panels[-1].tick_params(labelbottom=True)
    panels[-1].set_xlabel("distance from the start line, along the centreline (m)", color=FAINT, fontsize=10)
    return figure, panels, levels


def _corner_levels(comparison: Comparison, width_m: float) -> list[int]:
    """Rows for labels `width_m` wide at the corners in driving order, so that none covers another."""
    last_m: list[float] = []
    levels = []
    for sector in sorted(comparison.sectors, key=lambda one: one.number):
        free = [level for level, end_m in enumerate(last_m) if sector.apex_m - end_m >= width_m]
        level = free[0] if free else len(last_m)
        last_m[level : level + 1] = [sector.apex_m]
        levels.append(level)
    return levels


def _mark_corners(axes: "Axes", comparison: Comparison, levels: list[int] | None, *, has_notes: bool) -> None:
    """A faint line at each corner, with its number (and loss) above the panel where `levels` are given."""
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
        number = str(sector.number)
        left = -14.0 if has_notes else 0.0
        axes.annotate(
            number,
            (sector.apex_m, 1.0),
            (left, up),
            color=TEXT,
            fontsize=9,
            weight="bold",
            ha="center",
            bbox=badge,
            **style,
        )
        if has_notes:
            axes.annotate(signed(sector.lost_s), (sector.apex_m, 1.0), (-3.0, up), color=TEXT, fontsize=9, **style)


def _title(figure: "Figure", title: str, subtitle: str, driver_name: str | None = None, colour: str = "") -> None:
    """Heading, with who has which colour: both on the right, or the one whose picture it is before the heading."""
    width, height = figure.get_figwidth(), figure.get_figheight()
    first_in, second_in = 0.38, 0.70
    text: dict[str, Any] = {"va": "center", "parse_math": False}
    indent_in = 0.45
    if colour:
        _swatch(figure, indent_in, first_in, colour)
        indent_in += 0.42
    size = min(18.0, 0.60 * width * 72.0 / (0.67 * max(len(title), 1)))
    figure.text(indent_in / width, 1.0 - first_in / height, title, fontsize=size, color=TEXT, weight="bold", **text)
    figure.text(indent_in / width, 1.0 - second_in / height, subtitle, fontsize=10.5, color=FAINT, **text)
    if driver_name is None:
        return
    for name, line_colour, down_in in ((driver_name, DRIVER, first_in), ("optimum", OPTIMUM, second_in)):
        _swatch(figure, width - 0.70, down_in, line_colour)
        small = min(11.0, 0.30 * width * 72.0 / (0.67 * len(name)))
        place = (1.0 - 0.82 / width, 1.0 - down_in / height)
        figure.text(*place, name, fontsize=small, color=TEXT, ha="right", **text)


def _swatch(figure: "Figure", left_in: float, down_in: float, colour: str) -> None:
    """A short stroke in a driver's colour."""
    from matplotlib.lines import Line2D

    width, height = figure.get_figwidth(), figure.get_figheight()
    y = 1.0 - down_in / height
    figure.add_artist(Line2D((left_in / width, (left_in + 0.3) / width), (y, y), color=colour, linewidth=3.0))
