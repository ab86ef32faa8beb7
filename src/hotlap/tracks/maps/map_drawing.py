"""The parts of a track map: the empty map, the ribbon, the start line, speed lines and corner labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotlap.drawing.axes import Axes, Axis
from hotlap.drawing.colours import ColourScale, even_scale
from hotlap.drawing.figure import Figure
from hotlap.drawing.lettering import LINE_HEIGHT, POINTS_PER_INCH
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.corners import Corner
from hotlap.tracks.geometry.node_builder import edge_points, find_crossings, wall_lines
from hotlap.tracks.geometry.spline import FloatArray, IntArray
from hotlap.tracks.maps.map_colours import (
    ACCENT,
    BACKGROUND,
    BADGE,
    EDGE,
    FAINT,
    KERB_RED,
    ROAD,
    RUNOFF,
    SPEED_COLOURS,
    TEXT,
    WALL,
)

SpeedLine = tuple[FloatArray, FloatArray, FloatArray]  # x (m), y (m), speed (m/s) along a driven lap

MARGIN_IN = 0.45
_PLOT_WIDTH_IN = 11.0
_PLOT_HEIGHT_IN = (4.5, 9.5)
_PAD_FRACTION = 0.05  # of the track's extent, free around it
_TITLE_IN = 1.15
_FOOTER_IN = 0.85
_COLOUR_BAR_IN = 1.0
_BAR_IN = 0.16  # width of the bar itself

_KERB_CURVATURE = 1.0 / 60.0
_KERB_LEAD_M = 6.0
_KERB_WIDTH_M = 1.1
_KERB_BLOCK_M = 2.5
_COMPASS = np.array([[1, 0], [0.7, 0.7], [0, 1], [-0.7, 0.7], [-1, 0], [-0.7, -0.7], [0, -1], [0.7, -0.7]])


@dataclass(frozen=True)
class Canvas:
    """Axes in metres, and the scale that keeps small things visible on long tracks."""

    axes: Axes
    metres_per_point: float


def new_map(
    nodes: RibbonNodes,
    *,
    has_colour_bar: bool,
    width_in: float = _PLOT_WIDTH_IN,
    footer_in: float = _FOOTER_IN,
    pad_fraction: float = _PAD_FRACTION,
) -> tuple[Figure, Canvas]:
    """An empty map of the track with room for a title; texts are relatively larger on a narrower map."""
    points = np.concatenate(wall_lines(nodes))
    low, high = points.min(axis=0), points.max(axis=0)
    pad = pad_fraction * float((high - low).max()) + 4.0
    span_x, span_y = (high - low + 2.0 * pad).tolist()
    lowest, highest = (limit * width_in / _PLOT_WIDTH_IN for limit in _PLOT_HEIGHT_IN)
    height_in = min(max(width_in * span_y / span_x, lowest), highest)
    extra_in = _COLOUR_BAR_IN if has_colour_bar else 0.0
    figure = Figure(width_in + 2.0 * MARGIN_IN + extra_in, height_in + _TITLE_IN + footer_in, BACKGROUND)
    canvas = new_canvas((MARGIN_IN, _TITLE_IN, width_in, height_in), low - pad, high + pad)
    figure.add_axes(canvas.axes)
    return figure, canvas


def new_canvas(box_in: tuple[float, float, float, float], low: FloatArray, high: FloatArray) -> Canvas:
    """A canvas with the points from `low` to `high` in its middle; the box is left, top, width and height in inches."""
    size_in = np.array(box_in[2:])
    metres_per_inch = float(((high - low) / size_in).max())
    middle, half = 0.5 * (low + high), 0.5 * metres_per_inch * size_in
    limits = np.stack((middle - half, middle + half), axis=1).tolist()
    x, y = (Axis(limits=(start, end)) for start, end in limits)
    return Canvas(Axes(*box_in, x=x, y=y), metres_per_inch / POINTS_PER_INCH)


def draw_ribbon(canvas: Canvas, nodes: RibbonNodes, road: str | FloatArray = ROAD) -> None:
    """Runoff, walls, road and kerbs of the whole lap, then each overpass again, on top of the road it crosses.

    `road` is the asphalt's colour, one for all or red, green and blue for each node (num_nodes, 3).
    """
    size = nodes.x_m.size
    _draw_piece(canvas, nodes, np.arange(-1, size + 2) % size, road, level=1)
    reach = float(np.maximum(nodes.wall_left_m, nodes.wall_right_m).max())
    for crossing in find_crossings(nodes):
        a, b = crossing.first, crossing.second
        sine = abs(float(nodes.tangent_x[a] * nodes.tangent_y[b] - nodes.tangent_y[a] * nodes.tangent_x[b]))
        cosine = abs(float(nodes.tangent_x[a] * nodes.tangent_x[b] + nodes.tangent_y[a] * nodes.tangent_y[b]))
        half = round(min(reach * (1.1 + cosine) / max(sine, 0.1), 150.0) / nodes.step_m) + 2
        _draw_piece(canvas, nodes, np.arange(b - half, b + half + 1) % size, road, level=2)


def _draw_piece(canvas: Canvas, nodes: RibbonNodes, at: IntArray, road: str | FloatArray, *, level: int) -> None:
    axes, base = canvas.axes, 10 * level
    inner = at[1:-1]  # bands end a node before the lines, so that they do not cover the lines' ends
    _fill_band(axes, nodes, inner, (nodes.wall_left_m, -nodes.wall_right_m), RUNOFF, base)
    for distance in (nodes.wall_left_m, -nodes.wall_right_m):
        wall = edge_points(nodes, distance)[at]
        axes.line(wall[:, 0], wall[:, 1], WALL, 1.1, layer=base + 1)
    _draw_kerbs(canvas, nodes, inner, base + 2)
    _fill_band(axes, nodes, inner, (nodes.road_left_m, -nodes.road_right_m), road, base + 3)
    for distance in (nodes.road_left_m, -nodes.road_right_m):
        edge = edge_points(nodes, distance)[at]
        axes.line(edge[:, 0], edge[:, 1], EDGE, 1.0, layer=base + 4)


def _fill_band(
    axes: Axes,
    nodes: RibbonNodes,
    at: IntArray,
    sides: tuple[FloatArray, FloatArray],
    colour: str | FloatArray,
    layer: int,
) -> None:
    """Fill between two distances from the centreline, quad by quad: a polygon would fail where the track overlaps."""
    one, other = (edge_points(nodes, side)[at] for side in sides)
    quads = np.stack((one[:-1], one[1:], other[1:], other[:-1]), axis=1)
    axes.polygons(quads, colour if isinstance(colour, str) else colour[at[:-1]], layer=layer)


def _draw_kerbs(canvas: Canvas, nodes: RibbonNodes, at: IntArray, layer: int) -> None:
    """Red and white blocks along the inside of tight bends."""
    width = max(_KERB_WIDTH_M, 3.0 * canvas.metres_per_point)
    block = max(round(max(_KERB_BLOCK_M, 4.0 * canvas.metres_per_point) / nodes.step_m), 1)
    sides = ((1.0, nodes.road_left_m, nodes.wall_left_m), (-1.0, nodes.road_right_m, nodes.wall_right_m))
    for sign, road, wall in sides:
        inner = edge_points(nodes, sign * road)[at]
        outer = edge_points(nodes, sign * np.minimum(road + width, np.maximum(wall, road)))[at]
        is_kerb = _widen(sign * nodes.curvature_radpm > _KERB_CURVATURE, round(_KERB_LEAD_M / nodes.step_m))[at[:-1]]
        quads = np.stack((inner[:-1], inner[1:], outer[1:], outer[:-1]), axis=1)[is_kerb]
        is_red = (at[:-1][is_kerb] // block) % 2 == 0
        canvas.axes.polygons(quads, np.where(is_red, KERB_RED, EDGE).tolist(), layer=layer)


def _widen(is_set: NDArray[np.bool_], num_nodes: int) -> NDArray[np.bool_]:
    """Set the flag on `num_nodes` more nodes before and after each one that has it."""
    count = np.cumsum(np.concatenate((is_set[-num_nodes - 1 :], is_set, is_set[:num_nodes])))
    return np.asarray(count[2 * num_nodes + 1 :] > count[: -2 * num_nodes - 1])


def draw_start_line(canvas: Canvas, nodes: RibbonNodes) -> None:
    """Two rows of squares across the road at node 0."""
    size = max(0.9, 2.6 * canvas.metres_per_point)
    across = max(2 * round((nodes.road_left_m[0] + nodes.road_right_m[0]) / size / 2.0), 4)
    marks = np.linspace(-nodes.road_right_m[0], nodes.road_left_m[0], across + 1)
    squares, colours = [], []
    for row in range(2):
        for column in range(across):
            along = np.array([row - 1.0, row, row, row - 1.0]) * size
            side = marks[[column, column, column + 1, column + 1]]
            x = nodes.x_m[0] + nodes.tangent_x[0] * along - nodes.tangent_y[0] * side
            y = nodes.y_m[0] + nodes.tangent_y[0] * along + nodes.tangent_x[0] * side
            squares.append(np.stack((x, y), axis=1))
            colours.append("#ffffff" if (row + column) % 2 else "#0b0d10")
    canvas.axes.polygons(np.array(squares), colours, layer=30)


def draw_speed_line(
    figure: Figure, canvas: Canvas, line: SpeedLine, *, range_mps: tuple[float, float] | None = None
) -> None:
    """A driven line coloured by speed, with a colour bar in km/h.

    `range_mps` is the range of the colours, by default that of the line's own speeds.
    """
    x, y, speed_mps = (np.asarray(column, dtype=np.float64) for column in line)
    x, y = np.append(x, x[0]), np.append(y, y[0])
    hops = np.hypot(np.diff(x), np.diff(y))
    # An open lap keeps its gap.
    y[1:][hops > 5.0 * np.median(hops) + 1.0] = np.nan
    low_mps, high_mps = range_mps or (float(speed_mps.min()), float(speed_mps.max()))
    scale = even_scale(SPEED_COLOURS, 3.6 * low_mps, 3.6 * high_mps)
    canvas.axes.line(x, y, scale(3.6 * speed_mps), 2.2, layer=31)
    draw_colour_bar(figure, canvas, scale, "km/h")


def draw_colour_bar(figure: Figure, canvas: Canvas, scale: ColourScale, unit: str) -> None:
    """A colour bar beside the map, its unit above it."""
    axes = canvas.axes
    left_in, top_in = axes.left_in + axes.width_in + 0.1, axes.top_in + 0.15 * axes.height_in
    figure.colour_bar(scale, (left_in, top_in, _BAR_IN, 0.7 * axes.height_in), FAINT)
    for row, text in enumerate(reversed(unit.split("\n"))):
        up = (0.0, 9.0 + row * LINE_HEIGHT * 9.0)
        figure.text(
            text, left_in + 0.5 * _BAR_IN, top_in, FAINT, 9.0, align="centre", vertical="baseline", offset_pt=up
        )


def label_corners(
    canvas: Canvas, nodes: RibbonNodes, corners: Sequence[Corner], notes: Sequence[str] | None = None
) -> None:
    """Corner numbers, each with its note from `notes`, and the arrow of travel, where there is free space."""
    axes, points = canvas.axes, canvas.metres_per_point
    taken = np.concatenate((*wall_lines(nodes), np.stack((nodes.x_m, nodes.y_m), axis=1)))
    spot = _free_spot(nodes, 0, -1.0, 18.4 * points, taken)
    if spot is not None:
        taken = np.concatenate((taken, _draw_arrow(canvas, nodes, spot)))
    for index, corner in enumerate(corners):
        note = notes[index] if notes is not None else ""
        # Without room for the note the number is drawn alone.
        for text, radius in ((note, 22.5 * points), ("", 11.5 * points)) if note else (("", 11.5 * points),):
            spot = _free_spot(nodes, corner.apex, -float(np.sign(corner.turn_rad)), radius, taken)
            if spot is None:
                continue
            taken = np.concatenate((taken, spot + radius * _COMPASS))
            _draw_badge(axes, spot, str(index + 1), text, points)
            break


def _draw_badge(axes: Axes, spot: FloatArray, number: str, note: str, metres_per_point: float) -> None:
    """A corner's number in a disc, with a note under it."""
    x, y = spot.tolist()
    if note:
        axes.text(note, x, y - 11.0 * metres_per_point, TEXT, 9.5, align="centre", layer=40)
        y += 6.0 * metres_per_point
    axes.text(number, x, y, TEXT, 10.0, is_bold=True, align="centre", disc=BADGE, disc_pt=20.0, layer=40)


def _free_spot(nodes: RibbonNodes, node: int, outside: float, radius: float, taken: FloatArray) -> FloatArray | None:
    """A point beside a node with `radius` free around it: outside the bend, else inside, else further away."""
    for further in (1.15, 1.8, 2.6):
        for sign in (outside, -outside):
            wall = nodes.wall_left_m[node] if sign > 0.0 else nodes.wall_right_m[node]
            spot: FloatArray = edge_points(nodes, sign * (wall + further * radius))[node]
            clear = ((taken - spot) ** 2).sum(axis=1).min()
            if clear >= radius * radius:
                return spot
    return None


def _draw_arrow(canvas: Canvas, nodes: RibbonNodes, spot: FloatArray) -> FloatArray:
    """An arrow in the direction of travel at the start; returns points along it, for labels to avoid."""
    forward = np.array([nodes.tangent_x[0], nodes.tangent_y[0]])
    half = 17.0 * canvas.metres_per_point
    tail, tip = spot - half * forward, spot + half * forward
    side = np.array([-forward[1], forward[0]])
    length, width = 8.5 * canvas.metres_per_point, 4.5 * canvas.metres_per_point
    neck = tip - length * forward
    canvas.axes.line((tail[0], neck[0]), (tail[1], neck[1]), ACCENT, 2.4, layer=40)
    canvas.axes.polygons(np.array([[tip, neck + width * side, neck - width * side]]), ACCENT, layer=40)
    return tail + np.linspace(0.0, 1.0, 9)[:, None] * (tip - tail)
