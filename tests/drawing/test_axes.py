"""Axes: where coordinates are, and what they show."""

import numpy as np
import pytest

from hotlap.drawing.axes import Axes, AxesStyle, AxesView, Axis
from hotlap.drawing.raster import Raster

STYLE = AxesStyle(grid="#ff0000", text="#00ff00")


def places(axes, *points) -> list[list[float]]:
    return AxesView(axes, 10.0).to_pixels(np.array(points, dtype=np.float64)).round(6).tolist()


def paint(axes) -> np.ndarray:
    raster = Raster(150, 150, "#000000")
    axes.draw(raster, 50.0)
    return raster.pixels


def test_limits_are_at_the_edges_and_infinity_too():
    axes = Axes(1.0, 2.0, 4.0, 3.0, x=Axis(limits=(0.0, 8.0)), y=Axis(limits=(10.0, 20.0)))
    assert places(axes, (0, 10), (8, 20), (4, 15)) == [[10, 50], [50, 20], [30, 35]]
    assert places(axes, (-np.inf, -np.inf), (np.inf, np.inf), (4, np.inf)) == [[10, 50], [50, 20], [30, 20]]
    axes.x.is_reversed = axes.y.is_reversed = True
    assert places(axes, (0, 10), (8, 20)) == [[50, 20], [10, 50]]


def test_axes_without_limits_fit_their_marks():
    axes = Axes(0.0, 0.0, 1.0, 1.0)
    axes.line((0.0, 10.0, np.nan), (5.0, 25.0, 99.0), "#ffffff")
    axes.horizontal(45.0, "#ffffff", 1.0)
    axes.text("far away", 500.0, 500.0, "#ffffff")
    assert axes.x_range == pytest.approx((-0.5, 10.5))
    assert axes.y_range == pytest.approx((5.0 - 0.05 * 94.0, 99.0 + 0.05 * 94.0))
    assert [len(line.points) for line in axes.lines] == [3, 2]
    assert [label.text for label in axes.labels] == ["far away"]
    assert Axes(0.0, 0.0, 1.0, 1.0).y_range == pytest.approx((-0.05, 1.05))
    flat = Axes(0.0, 0.0, 1.0, 1.0)
    flat.dots(1.0, 7.0, "#ffffff", 3.0)
    assert flat.y_range[0] < 7.0 < flat.y_range[1]


def test_grid_and_names_are_drawn_where_wanted():
    axes = Axes(
        0.5, 0.5, 2.0, 2.0, STYLE, Axis(limits=(0.0, 2.0), ticks=(0, 1, 2)), Axis(limits=(0.0, 1.0), ticks=(0.5,))
    )
    pixels = paint(axes)
    assert pixels[40, 75, 0] > 50  # the grid at x = 1
    assert pixels[75, 60, 0] > 50  # and at y = 0.5
    assert pixels[126:145, 20:130, 1].max() > 100
    assert pixels[65:85, :24, 1].max() > 100
    axes.x.has_grid = axes.x.has_names = axes.y.has_names = False
    pixels = paint(axes)
    assert pixels[40, 75, 0] == 0
    assert pixels[:, :, 1].max() == 0
    assert paint(Axes(0.5, 0.5, 2.0, 2.0)).max() == 0


def test_names_of_ticks_are_given_or_written():
    axis = Axis(max_intervals=4)
    assert axis.choose(0.0, 2.0) == ([0.0, 0.5, 1.0, 1.5, 2.0], ["0.0", "0.5", "1.0", "1.5", "2.0"])
    axis.write = lambda tick: f"{tick:g} s"
    assert axis.choose(0.0, 1e3)[1][:2] == ["0 s", "250 s"]
    axis.ticks, axis.names = (1, 2), ["a", "b"]
    assert axis.choose(0.0, 9.0) == ((1, 2), ["a", "b"])


def test_lines_end_at_the_edges_and_layers_lie_on_each_other():
    axes = Axes(1.0, 1.0, 1.0, 1.0, x=Axis(limits=(0.0, 1.0)), y=Axis(limits=(0.0, 1.0)))
    axes.line((-9.0, 9.0), 0.5, "#ffffff", 10.0, layer=3)
    axes.band((0.2, 0.8), (0.0, 0.0), (1.0, 1.0), "#640000", layer=4)
    pixels = paint(axes)
    assert pixels[75, 49].max() == pixels[75, 100].max() == 0
    assert pixels[75, 52].tolist() == [255, 255, 255]
    assert pixels[75, 75].tolist() == [100, 0, 0]
    assert pixels[:50].max() == pixels[100:].max() == 0
