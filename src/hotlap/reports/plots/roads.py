"""Draws generated roads beside real ones: their corners as clouds of points, and maps."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hotlap.reports.plots.chart import to_png, write_legend, write_title
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.node_builder import wall_lines
from hotlap.tracks.geometry.road_statistics import CornerStatistics
from hotlap.tracks.maps.map_colours import ACCENT, BACKGROUND, BADGE, FAINT, SPEED_COLOURS
from hotlap.tracks.maps.map_drawing import Canvas, draw_ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GENERATED, REAL = SPEED_COLOURS[-1], ACCENT
_WIDTH_IN, _HEIGHT_IN = 12.0, 9.6
_MAP_COLUMNS, _MAP_ROWS = 6, 2
NUM_MAPS = _MAP_COLUMNS * _MAP_ROWS
_MAX_POINTS = 4000  # of a cloud; more would hide its density
_ENTRY_TICKS_M = (0, 50, 100, 200, 400, 800, 1600)
_RADIUS_TICKS_M = (6, 10, 20, 40, 80, 150)
_ENTRY_OFFSET_M = 50.0  # of the logarithmic scale of straights, which begins at 0

_Measure = Callable[[CornerStatistics], float]


def draw_roads(
    real: Sequence[CornerStatistics], generated: Sequence[CornerStatistics], maps: Sequence[RibbonNodes]
) -> bytes:
    """A PNG: radius over the straight before, width and angle over radius, and maps of generated circuits."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_WIDTH_IN, _HEIGHT_IN), facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    write_title(figure, "Corners of generated and real circuits", "each point is a corner")
    write_legend(figure, [("generated", GENERATED), ("real", REAL)])
    clouds = (generated[:: len(generated) // _MAX_POINTS + 1], GENERATED, 2.0), (real, REAL, 18.0)
    panels: list[tuple[str, _Measure, str, _Measure]] = [
        ("straight before (m)", _log_entry, "radius (m)", _log_radius),
        ("radius (m)", _log_radius, "width (m)", lambda corner: corner.width_m),
        ("radius (m)", _log_radius, "angle (°)", lambda corner: math.degrees(abs(corner.turn_rad))),
    ]
    for index, (x_label, x_of, y_label, y_of) in enumerate(panels):
        axes = figure.add_axes((0.065 + 0.32 * index, 0.47, 0.26, 0.37), facecolor=BACKGROUND)
        for corners, colour, size in clouds:
            axes.scatter(list(map(x_of, corners)), list(map(y_of, corners)), s=size, color=colour, linewidths=0.0)
        _style(axes, x_label, y_label)
        radii = list(map(math.log, _RADIUS_TICKS_M)), list(map(str, _RADIUS_TICKS_M))
        if x_of is _log_entry:
            entries_m = [math.log(tick + _ENTRY_OFFSET_M) for tick in _ENTRY_TICKS_M]
            axes.set_xticks(entries_m, list(map(str, _ENTRY_TICKS_M)))
            axes.set_yticks(*radii)
        else:
            axes.set_xticks(*radii)
    for index, nodes in enumerate(maps[:NUM_MAPS]):
        _draw_map(figure, index, nodes)
    return to_png(figure)


def _log_entry(corner: CornerStatistics) -> float:
    return math.log(corner.entry_m + _ENTRY_OFFSET_M)


def _log_radius(corner: CornerStatistics) -> float:
    return math.log(corner.radius_m)


def _style(axes: "Axes", x_label: str, y_label: str) -> None:
    axes.set_xlabel(x_label, color=FAINT, fontsize=10)
    axes.set_ylabel(y_label, color=FAINT, fontsize=10)
    axes.tick_params(colors=FAINT, labelsize=9, length=0)
    axes.minorticks_off()
    axes.grid(color=BADGE, linewidth=0.6, zorder=0)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _draw_map(figure: "Figure", index: int, nodes: RibbonNodes) -> None:
    """A small map of a circuit, each to a scale of its own."""
    row, column = divmod(index, _MAP_COLUMNS)
    width, height = 0.97 / _MAP_COLUMNS, 0.39 / _MAP_ROWS
    box = (0.015 + column * width, 0.01 + (_MAP_ROWS - 1 - row) * height, 0.92 * width, 0.86 * height)
    axes = figure.add_axes(box)
    axes.set_axis_off()
    points = np.concatenate(wall_lines(nodes))
    low, high = points.min(axis=0), points.max(axis=0)
    across_in, up_in = box[2] * _WIDTH_IN, box[3] * _HEIGHT_IN
    metres_per_inch = max((high[0] - low[0]) / across_in, (high[1] - low[1]) / up_in)
    middle = 0.5 * (low + high)
    axes.set_xlim(middle[0] - 0.5 * metres_per_inch * across_in, middle[0] + 0.5 * metres_per_inch * across_in)
    axes.set_ylim(middle[1] - 0.5 * metres_per_inch * up_in, middle[1] + 0.5 * metres_per_inch * up_in)
    draw_ribbon(Canvas(axes, metres_per_inch / 72.0), nodes)
    place = (box[0] + 0.5 * box[2], box[1] + box[3] + 0.01)
    figure.text(*place, f"{0.001 * nodes.length_m:.1f} km", color=FAINT, fontsize=8, ha="center", va="center")
