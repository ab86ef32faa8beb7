"""Draws generated roads beside real ones: their corners as clouds of points, and maps."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from hotlap.drawing.axes import Axes, AxesStyle
from hotlap.drawing.figure import Figure
from hotlap.reports.plots.chart import to_png, write_legend, write_title
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.node_builder import wall_lines
from hotlap.tracks.geometry.road_statistics import CornerStatistics
from hotlap.tracks.maps.map_colours import ACCENT, BACKGROUND, BADGE, FAINT, SPEED_COLOURS
from hotlap.tracks.maps.map_drawing import draw_ribbon, new_canvas

GENERATED, REAL = SPEED_COLOURS[-1], ACCENT
_WIDTH_IN, _HEIGHT_IN = 12.0, 9.6
_MAP_COLUMNS, _MAP_ROWS = 6, 2
NUM_MAPS = _MAP_COLUMNS * _MAP_ROWS
_MAX_POINTS = 4000  # of a cloud; more would hide its density
_ENTRY_TICKS_M = (0, 50, 100, 200, 400, 800, 1600)
_RADIUS_TICKS_M = (6, 10, 20, 40, 80, 150)
_ENTRY_OFFSET_M = 50.0  # of the logarithmic scale of straights, which begins at 0

_MAP_IN, _MAP_STEP_IN = (1.78, 1.61), (1.94, 1.87)
_STYLE = AxesStyle(grid=BADGE, text=FAINT, tick_size_pt=9.0, grid_pt=0.6)

_Measure = Callable[[CornerStatistics], float]


def draw_roads(
    real: Sequence[CornerStatistics], generated: Sequence[CornerStatistics], maps: Sequence[RibbonNodes]
) -> bytes:
    """A PNG: radius over the straight before, width and angle over radius, and maps of generated circuits."""
    figure = Figure(_WIDTH_IN, _HEIGHT_IN, BACKGROUND)
    write_title(figure, "Corners of generated and real circuits", "each point is a corner")
    write_legend(figure, [("generated", GENERATED), ("real", REAL)])
    clouds = (generated[:: len(generated) // _MAX_POINTS + 1], GENERATED, 1.4), (real, REAL, 4.2)
    panels: list[tuple[str, _Measure, str, _Measure]] = [
        ("straight before (m)", _log_entry, "radius (m)", _log_radius),
        ("radius (m)", _log_radius, "width (m)", lambda corner: corner.width_m),
        ("radius (m)", _log_radius, "angle (°)", lambda corner: math.degrees(abs(corner.turn_rad))),
    ]
    for index, (x_label, x_of, y_label, y_of) in enumerate(panels):
        axes = figure.add_axes(Axes(0.78 + 3.84 * index, 1.54, 3.12, 3.55, _STYLE))
        axes.x.label, axes.y.label = x_label, y_label
        for corners, colour, size_pt in clouds:
            axes.dots(list(map(x_of, corners)), list(map(y_of, corners)), colour, size_pt)
        radii, names = list(map(math.log, _RADIUS_TICKS_M)), list(map(str, _RADIUS_TICKS_M))
        if x_of is _log_entry:
            axes.x.ticks = [math.log(tick + _ENTRY_OFFSET_M) for tick in _ENTRY_TICKS_M]
            axes.x.names = list(map(str, _ENTRY_TICKS_M))
            axes.y.ticks, axes.y.names = radii, names
        else:
            axes.x.ticks, axes.x.names = radii, names
    for index, nodes in enumerate(maps[:NUM_MAPS]):
        _draw_map(figure, index, nodes)
    return to_png(figure)


def _log_entry(corner: CornerStatistics) -> float:
    return math.log(corner.entry_m + _ENTRY_OFFSET_M)


def _log_radius(corner: CornerStatistics) -> float:
    return math.log(corner.radius_m)


def _draw_map(figure: Figure, index: int, nodes: RibbonNodes) -> None:
    """A small map of a circuit, each to a scale of its own."""
    row, column = divmod(index, _MAP_COLUMNS)
    left_in, top_in = 0.18 + column * _MAP_STEP_IN[0], 6.0 + row * _MAP_STEP_IN[1]
    points = np.concatenate(wall_lines(nodes))
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.01 * (high - low).max()  # half a line lies outside of its points
    canvas = new_canvas((left_in, top_in, *_MAP_IN), low - margin, high + margin)
    figure.add_axes(canvas.axes)
    draw_ribbon(canvas, nodes)
    figure.text(
        f"{0.001 * nodes.length_m:.1f} km", left_in + 0.5 * _MAP_IN[0], top_in - 0.1, FAINT, 8.0, align="centre"
    )
