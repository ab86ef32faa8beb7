"""A track from above as a PNG: road, kerbs, runoff, walls, corners, and the line driven on it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.drawing.figure import Figure
from hotlap.drawing.lettering import POINTS_PER_INCH, fitting_size
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.corners import Corner, find_corners
from hotlap.tracks.maps.map_colours import FAINT, MEDAL_COLOURS, TEXT
from hotlap.tracks.maps.map_drawing import (
    MARGIN_IN,
    Canvas,
    SpeedLine,
    draw_ribbon,
    draw_speed_line,
    draw_start_line,
    label_corners,
    new_map,
)

DPI = 150
_MEDAL_IN = 1.15


def draw_track(
    nodes: RibbonNodes,
    path: str | os.PathLike[str],
    *,
    title: str,
    subtitle: str = "",
    raceline: SpeedLine | None = None,
    medals: Mapping[str, float] | None = None,
) -> None:
    """Draw the track from above into a PNG.

    `raceline` is x (m), y (m) and speed (m/s) along a driven lap; `medals` gives lap times in seconds by name.
    """
    figure, canvas = new_map(nodes, has_colour_bar=raceline is not None)
    corners = find_corners(nodes)
    draw_ribbon(canvas, nodes)
    draw_start_line(canvas, nodes)
    if raceline is not None:
        draw_speed_line(figure, canvas, raceline)
    label_corners(canvas, nodes, corners)
    _write_texts(figure, nodes, corners, (title, subtitle), medals or {})
    _draw_scale(figure, canvas)
    write_atomically(Path(path), figure.to_png(DPI))


def _write_texts(
    figure: Figure,
    nodes: RibbonNodes,
    corners: Sequence[Corner],
    titles: tuple[str, str],
    medals: Mapping[str, float],
) -> None:
    room_in = figure.width_in - 2.0 * MARGIN_IN - _MEDAL_IN * len(medals)
    title, subtitle = titles
    size_pt = fitting_size(title, 22.0, room_in, is_bold=True)
    figure.text(title, MARGIN_IN, 0.5, TEXT, size_pt, is_bold=True)
    figure.text(subtitle, MARGIN_IN, 0.88, FAINT, fitting_size(subtitle, 12.0, room_in))
    road = nodes.road_left_m + nodes.road_right_m
    widths = f"{road.min():.0f}" if road.max() - road.min() < 0.5 else f"{road.min():.0f} to {road.max():.0f}"
    facts = [
        f"{nodes.step_m * nodes.x_m.size:,.0f} m",
        f"{len(corners)} corner{'' if len(corners) == 1 else 's'}",
        f"road {widths} m wide",
        f"tightest radius {1.0 / max(float(np.abs(nodes.curvature_radpm).max()), 1e-6):.0f} m",
    ]
    figure.text("   ·   ".join(facts), MARGIN_IN, figure.height_in - 0.42, FAINT, 11.0)
    for index, (name, time_s) in enumerate(reversed(list(medals.items()))):
        right_in = figure.width_in - MARGIN_IN - _MEDAL_IN * index
        figure.text(f"{time_s:.2f} s", right_in, 0.47, TEXT, 13.0, align="right")
        colour = MEDAL_COLOURS.get(name, TEXT)
        figure.text(name.upper(), right_in, 0.82, colour, 9.0, is_bold=True, align="right")


def _draw_scale(figure: Figure, canvas: Canvas) -> None:
    """A scale bar of round length at the lower right."""
    metres_per_inch = POINTS_PER_INCH * canvas.metres_per_point
    length_m = max((m for m in (10, 20, 50, 100, 200, 500, 1000, 2000) if m <= 1.8 * metres_per_inch), default=10)
    right_in, down_in = figure.width_in - MARGIN_IN, figure.height_in - 0.34
    left_in = right_in - length_m / metres_per_inch
    figure.line((left_in, right_in), down_in, FAINT, 1.4)
    for end_in in (left_in, right_in):
        figure.line(end_in, (down_in - 0.05, down_in + 0.05), FAINT, 1.4)
    figure.text(f"{length_m} m", 0.5 * (left_in + right_in), down_in - 0.14, FAINT, 9.0, align="centre")
