"""Track maps of a report: the road coloured by time lost, and racing lines coloured by speed."""

from io import BytesIO

import numpy as np
from PIL import Image

from hotlap.drawing.colours import ColourScale
from hotlap.drawing.figure import Figure
from hotlap.evaluation.failures import Failures
from hotlap.evaluation.lap_comparison import Comparison, best_flying_lap, lap_line
from hotlap.evaluation.telemetry import Floats, Telemetry
from hotlap.reports.formatting import signed
from hotlap.reports.html import Picture
from hotlap.reports.plots.chart import DRIVER, GAIN, LOSS, OPTIMUM, to_png, write_driver_legend, write_title
from hotlap.tracks.geometry.corners import find_corners
from hotlap.tracks.maps.map_colours import BACKGROUND, ROAD, TEXT
from hotlap.tracks.maps.map_drawing import (
    Canvas,
    SpeedLine,
    draw_colour_bar,
    draw_ribbon,
    draw_speed_line,
    draw_start_line,
    label_corners,
    new_map,
)
from hotlap.tracks.registry import Track

_MAP_WIDTH_IN = 6.8
_HALF_MAP_WIDTH_IN = 4.4  # shown at half the page width, so its text must be larger in relation
_SMOOTH_M = 15.0
_MIN_RED_RATE = 0.1  # s per 100 m at the red end of the scale, so that a near-perfect lap is not drawn red


def draw_time_lost(comparison: Comparison, track: Track, name: str) -> Picture:
    """The road coloured by time lost, with both racing lines and the time lost in each corner."""
    rate = loss_rate(comparison)
    colours = loss_colours(rate)
    figure, canvas = new_map(track.nodes, has_colour_bar=True, width_in=_MAP_WIDTH_IN, footer_in=0.3, pad_fraction=0.08)
    draw_ribbon(canvas, track.nodes, colours(rate))
    draw_start_line(canvas, track.nodes)
    road_points = float(np.median(track.nodes.road_left_m + track.nodes.road_right_m)) / canvas.metres_per_point
    # On a long track the road is thin; thinner lines leave its colour visible.
    stroke = min(max(0.08 * road_points, 0.6), 1.7)
    for (x, y, _), colour in ((comparison.optimal_line, OPTIMUM), (comparison.driver_line, DRIVER)):
        canvas.axes.line(np.append(x, x[0]), np.append(y, y[0]), colour, stroke, layer=32)
    draw_colour_bar(figure, canvas, colours, "s lost\nper 100 m")
    notes = [f"{signed(sector.lost_s)} s" for sector in sorted(comparison.sectors, key=lambda one: one.number)]
    label_corners(canvas, track.nodes, find_corners(track.nodes), notes)
    write_title(figure, f"{signed(float(comparison.delta_s[-1]))} s a lap", f"{track.name}, best flying lap")
    write_driver_legend(figure, name)
    caption = "The redder the road, the more time is lost there. Beside each corner: the seconds lost in it."
    return Picture("time-lost.png", "Where time is lost", caption, to_png(figure))


def draw_racing_lines(comparison: Comparison, track: Track, name: str) -> list[Picture]:
    """The racing lines of driver and optimum: two pictures of one size with one speed scale."""
    driver, optimum = comparison.driver_line, comparison.optimal_line
    both_mps = np.concatenate([driver[2], optimum[2]])
    range_mps = (float(both_mps.min()), float(both_mps.max()))
    return [
        Picture(
            "line-driver.png",
            f"Racing line of {name}",
            "Coloured by speed, on the same scale as the optimum.",
            to_png(_draw_line(track, driver, range_mps, (name, comparison.lap.time_s, DRIVER))[0]),
            is_half=True,
        ),
        Picture(
            "line-optimum.png",
            "Racing line of the optimum",
            "Coloured by speed, on the same scale as the driver.",
            to_png(_draw_line(track, optimum, range_mps, ("optimum", comparison.optimal_lap_s, OPTIMUM))[0]),
            is_half=True,
        ),
    ]


def _draw_line(
    track: Track, line: SpeedLine, range_mps: tuple[float, float], label: tuple[str, float, str]
) -> tuple[Figure, Canvas]:
    """One racing line on the track, coloured by speed within `range_mps`."""
    name, time_s, colour = label
    figure, canvas = new_map(track.nodes, has_colour_bar=True, width_in=_HALF_MAP_WIDTH_IN, footer_in=0.3)
    draw_ribbon(canvas, track.nodes)
    draw_start_line(canvas, track.nodes)
    draw_speed_line(figure, canvas, line, range_mps=range_mps)
    label_corners(canvas, track.nodes, find_corners(track.nodes))
    speeds = f"{3.6 * float(line[2].min()):.0f} to {3.6 * float(line[2].max()):.0f} km/h"
    write_title(figure, f"{name}   {time_s:.2f} s", speeds, colour=colour)
    return figure, canvas


def draw_side_by_side(comparison: Comparison, track: Track, name: str) -> bytes:
    """Both racing lines in one PNG, the driver's on the left."""
    parts = [Image.open(BytesIO(picture.png)) for picture in draw_racing_lines(comparison, track, name)]
    both = Image.new("RGB", (sum(part.width for part in parts), max(part.height for part in parts)), BACKGROUND)
    left = 0
    for part in parts:
        both.paste(part, (left, 0))
        left += part.width
    content = BytesIO()
    both.save(content, format="PNG", optimize=True)
    return content.getvalue()


def draw_path(track: Track, line: SpeedLine, name: str) -> Picture:
    """The path of a car that finished no flying lap."""
    caption = "From a standing start to where it stopped (cross), coloured by speed."
    figure, _ = _draw_path(track, line, name, _MAP_WIDTH_IN)
    return Picture("line-driver.png", f"Path of {name}", caption, to_png(figure))


def _draw_path(track: Track, line: SpeedLine, name: str, width_in: float) -> tuple[Figure, Canvas]:
    x_m, y_m, speed_mps = line
    # A line needs two points, even if the car never moved.
    path = (x_m, y_m, speed_mps) if len(x_m) > 1 else tuple(np.repeat(part, 2) for part in line)
    figure, canvas = new_map(track.nodes, has_colour_bar=True, width_in=width_in, footer_in=0.3)
    draw_ribbon(canvas, track.nodes)
    draw_start_line(canvas, track.nodes)
    fastest_mps = max(float(speed_mps.max()), 1.0)
    draw_speed_line(figure, canvas, (path[0], path[1], path[2]), range_mps=(0.0, fastest_mps))
    canvas.axes.crosses(x_m[-1], y_m[-1], LOSS, 11.0, rim=TEXT, layer=45)
    label_corners(canvas, track.nodes, find_corners(track.nodes))
    write_title(figure, name, f"no flying lap yet   ·   up to {3.6 * fastest_mps:.0f} km/h", colour=DRIVER)
    return figure, canvas


def draw_road(track: Track, trace: Telemetry, failures: Failures, name: str, file_name: str) -> Picture:
    """The best flying lap of a drive, coloured by speed, and where cars left the road (dots) or stopped (crosses)."""
    lap = best_flying_lap(trace.laps)
    if lap is None:
        figure, canvas = _draw_path(track, trace.line, name, _HALF_MAP_WIDTH_IN)
    else:
        line = lap_line(trace, track, lap)
        range_mps = (float(line[2].min()), float(line[2].max()))
        figure, canvas = _draw_line(track, line, range_mps, (name, lap.time_s, DRIVER))
    for places, draw, size_pt in (
        (failures.left_road, canvas.axes.dots, 5.0),
        (failures.stopped, canvas.axes.crosses, 9.0),
    ):
        draw([place.x_m for place in places], [place.y_m for place in places], LOSS, size_pt, rim=TEXT, layer=45)
    return Picture(file_name, track.name, "", to_png(figure), is_half=True)


def loss_rate(comparison: Comparison) -> Floats:
    """Time lost per 100 m (s) at each node, smoothed over some metres; periodic, since the lap is closed."""
    delta_s, step_m = comparison.delta_s, float(comparison.arc_m[1])
    size, reach = len(delta_s) - 1, max(round(_SMOOTH_M / step_m), 1)
    total_s = float(delta_s[-1])
    around = np.arange(-reach, size + reach)
    # Continue the time lost into the laps before and after: each lap adds the whole lap's loss.
    unrolled_s = delta_s[around % size] + total_s * (around // size)
    rate: Floats = 100.0 * (unrolled_s[2 * reach :] - unrolled_s[: -2 * reach]) / (2 * reach * step_m)
    return rate


def loss_colours(rate: Floats) -> ColourScale:
    """A colour scale: grey for no time lost, red for the most, green for time gained."""
    high, low = max(float(rate.max()), _MIN_RED_RATE), min(float(rate.min()), 0.0)
    zero = -low / (high - low)
    stops = [(zero, ROAD), (zero + 0.5 * (1.0 - zero), "#96453f"), (1.0, LOSS)]
    return ColourScale([(0.0, GAIN), *stops] if zero > 0.0 else stops, low, high)
