"""A track from above as a PNG: road, kerbs, runoff, walls, corners, and the line driven on it."""

import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.sim.ribbon_nodes import RibbonNodes
from hotlap.tracks.geometry.corners import Corner, find_corners
from hotlap.tracks.maps.map_colours import BACKGROUND, FAINT, MEDAL_COLOURS, TEXT
from hotlap.tracks.maps.map_drawing import (
    CENTRED,
    MARGIN_IN,
    Canvas,
    SpeedLine,
    draw_ribbon,
    draw_speed_line,
    draw_start_line,
    label_corners,
    new_map,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
_MEDAL_IN = 1.15
_FLUSH_RIGHT: dict[str, Any] = {"ha": "right", "va": "center"}


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
    content = BytesIO()
    figure.savefig(content, dpi=DPI, format="png", facecolor=BACKGROUND)
    write_atomically(Path(path), content.getvalue())


def _write_texts(
    figure: "Figure",
    nodes: RibbonNodes,
    corners: Sequence[Corner],
    titles: tuple[str, str],
    medals: Mapping[str, float],
) -> None:
    width, height = figure.get_figwidth(), figure.get_figheight()
    left, right = MARGIN_IN / width, 1.0 - MARGIN_IN / width
    room = (width - 2.0 * MARGIN_IN - _MEDAL_IN * len(medals)) * 72.0
    for text, y, size, colour, weight in (
        (titles[0], 1.0 - 0.5 / height, 22.0, TEXT, "bold"),
        (titles[1], 1.0 - 0.88 / height, 12.0, FAINT, "normal"),
    ):
        # A glyph is about two thirds as wide as its size; a name too long for the space is set smaller.
        size = min(size, room / (0.67 * max(len(text), 1)))
        figure.text(left, y, text, fontsize=size, color=colour, fontweight=weight, va="center", parse_math=False)
    road = nodes.road_left_m + nodes.road_right_m
    widths = f"{road.min():.0f}" if road.max() - road.min() < 0.5 else f"{road.min():.0f} to {road.max():.0f}"
    facts = [
        f"{nodes.step_m * nodes.x_m.size:,.0f} m".replace(",", " "),
        f"{len(corners)} corner{'' if len(corners) == 1 else 's'}",
        f"road {widths} m wide",
        f"tightest radius {1.0 / max(float(np.abs(nodes.curvature_radpm).max()), 1e-6):.0f} m",
    ]
    figure.text(left, 0.42 / height, "   ·   ".join(facts), color=FAINT, fontsize=11, va="center")
    for k, (name, time_s) in enumerate(reversed(list(medals.items()))):
        place = right - _MEDAL_IN * k / width
        colour = MEDAL_COLOURS.get(name, TEXT)
        figure.text(place, 1.0 - 0.47 / height, f"{time_s:.2f} s", color=TEXT, fontsize=13, **_FLUSH_RIGHT)
        name_y = 1.0 - 0.82 / height
        figure.text(place, name_y, name.upper(), color=colour, fontsize=9, fontweight="bold", **_FLUSH_RIGHT)


def _draw_scale(figure: "Figure", canvas: Canvas) -> None:
    """A scale bar of round length at the lower right."""
    from matplotlib.lines import Line2D

    metres_per_inch = 72.0 * canvas.metres_per_point
    length_m = max((m for m in (10, 20, 50, 100, 200, 500, 1000, 2000) if m <= 1.8 * metres_per_inch), default=10)
    width, height = figure.get_figwidth(), figure.get_figheight()
    right, y = 1.0 - MARGIN_IN / width, 0.34 / height
    left = right - length_m / metres_per_inch / width
    for xs, ys in (
        ((left, right), (y, y)),
        ((left, left), (y - 0.05 / height, y + 0.05 / height)),
        ((right, right), (y - 0.05 / height, y + 0.05 / height)),
    ):
        figure.add_artist(Line2D(xs, ys, color=FAINT, linewidth=1.4))
    middle, above = 0.5 * (left + right), y + 0.14 / height
    figure.text(middle, above, f"{length_m} m", color=FAINT, fontsize=9, **CENTRED)
