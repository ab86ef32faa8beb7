"""Whole pictures."""

from io import BytesIO

import numpy as np
from PIL import Image

from hotlap.drawing.axes import Axes, AxesStyle
from hotlap.drawing.colours import even_scale
from hotlap.drawing.figure import Figure


def make_figure() -> Figure:
    figure = Figure(2.0, 1.5, "#102030")
    axes = figure.add_axes(Axes(0.4, 0.2, 1.0, 1.0, AxesStyle(grid="#404040", text="#ffffff")))
    axes.line(np.arange(9.0), np.sin(np.arange(9.0)), "#ffc640", dashes=(3, 2))
    figure.text("title", 0.1, 0.1, "#ffffff", 9.0)
    figure.line((0.1, 0.5), 1.4, "#ff0000", 2.0)
    return figure


def read(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png)))


def test_a_picture_has_its_size_and_background_and_the_same_bytes_each_time():
    png = make_figure().to_png(80.0)
    assert make_figure().to_png(80.0) == png
    assert read(png).shape == (120, 160, 3)
    assert read(png)[0, 0].tolist() == [0x10, 0x20, 0x30]
    assert read(png)[112, 20].tolist() == [255, 0, 0]
    assert [label.text for label in make_figure().labels] == ["title"]
    # 0.29 times 100 is a little less than 29.
    assert read(Figure(0.29, 0.57, "#000000").to_png(100.0)).shape == (57, 29, 3)


def test_a_colour_bar_has_low_values_at_the_bottom():
    figure = Figure(1.0, 2.0, "#000000")
    figure.colour_bar(even_scale(["#ff0000", "#0000ff"], 0.0, 10.0), (0.2, 0.5, 0.2, 1.0), "#ffffff")
    pixels = read(figure.to_png(100.0))
    assert (pixels[148, 30, 0] > 250, pixels[51, 30, 2] > 250) == (True, True)
    np.testing.assert_allclose(pixels[100, 30].astype(int), (127.5, 0.0, 127.5), atol=2.0)
    assert pixels[49, 30].max() == pixels[151, 30].max() == 0
    assert [label.text for label in figure.labels] == ["0", "5", "10"]
