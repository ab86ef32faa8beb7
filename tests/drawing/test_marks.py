"""Marks as pixels."""

import numpy as np
import pytest

from hotlap.drawing.coverage import Box
from hotlap.drawing.figure import FigureView
from hotlap.drawing.marks import Crosses, Dots, Label, Line, Polygons, join
from hotlap.drawing.raster import Raster

WHITE = "#ffffff"


def paint(*marks, size=(100, 60), dpi=72.0) -> np.ndarray:
    """The red of each pixel on black; at 72 dots per inch a point is a pixel, and so is a seventy-second of an inch."""
    raster = Raster(*size, "#000000")
    for mark in marks:
        mark.draw(raster, FigureView(dpi, raster.box))
    return raster.pixels[:, :, 0].astype(np.int64)


def line(x, y, width_pt=4.0, **style) -> Line:
    return Line(join(np.array(x) / 72.0, np.array(y) / 72.0), WHITE, width_pt, **style)


def test_a_line_has_its_width_its_colour_and_gaps_where_points_are_missing():
    found = paint(line((10, 40, np.nan, 60, 90), (30, 30, 30, 30, 30)))
    assert (found[28:32, 10:40] == 255).all()
    assert found[27].max() == found[32].max() == 0
    assert found[:, 43:57].max() == 0
    assert (found[28:32, 60:90] == 255).all()
    assert paint(line((10,), (30,))).max() == 0


def test_dashes_have_their_lengths():
    found = paint(line((0, 100), (30, 30), width_pt=2.0, dashes=(5, 5)))[30]
    assert (found > 127).sum() == pytest.approx(50, abs=3)
    assert (np.diff((found > 127).astype(int)) != 0).sum() == 9  # 5 dashes, the first from the edge


def test_a_line_over_itself_is_no_darker_where_it_can_be_seen_through():
    found = paint(line((10, 90, 90, 50, 50), (30, 30, 50, 50, 10), opacity=0.5))
    assert set(np.unique(found[28:32, 20:80]).tolist()) == {128}


def test_segments_have_their_own_colours():
    colours = np.array([(255.0, 0.0, 0.0), (0.0, 255.0, 0.0)])
    raster = Raster(100, 60, "#000000")
    Line(join((0.0, 0.7, 1.4), 0.4), colours, 4.0).draw(raster, FigureView(72.0, raster.box))
    assert raster.pixels[29, 20].tolist() == [255, 0, 0]
    assert raster.pixels[29, 80].tolist() == [0, 255, 0]


def test_polygons_mix_their_colours_at_a_common_edge():
    corners = np.array([[(0, 0), (10.5, 0), (10.5, 20), (0, 20)], [(10.5, 0), (30, 0), (30, 20), (10.5, 20)]]) / 72.0
    found = paint(Polygons(corners, ["#640000", "#c80000"]))
    assert found[5, 8:13].tolist() == [100, 100, 150, 200, 200]
    assert paint(Polygons(np.empty((0, 4, 2)), [])).max() == 0


def test_dots_and_crosses_have_rims():
    found = paint(Dots(join(0.5, 0.5), "#640000", 10.0, rim=WHITE))
    assert found[36, 36] == 100
    assert found[36, 41] > 240
    assert found[36, 43] == 0
    found = paint(Crosses(join(0.5, 0.5), "#640000", 16.0, rim=WHITE))
    assert (found[36, 36], found[31, 31], found[36, 28]) == (100, 100, 0)
    assert (
        paint(Dots(np.empty((0, 2)), WHITE, 9.0, rim=WHITE), Crosses(np.empty((0, 2)), WHITE, 9.0, rim=WHITE)).max()
        == 0
    )


def where(found) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of what was painted."""
    rows, columns = np.nonzero(found)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def test_texts_are_aligned_and_moved_and_upright_ones_are_turned():
    def label(**style):
        return where(paint(Label("HIH", (0.7, 0.4), WHITE, 12.0, **style)))

    left, top, right, bottom = label()
    width, height = right - left, bottom - top
    assert (top + bottom) / 2.0 == pytest.approx(0.4 * 72.0, abs=1)
    assert left == pytest.approx(0.7 * 72.0, abs=2)
    assert label(align="right")[2] == pytest.approx(0.7 * 72.0, abs=2)
    assert sum(label(align="centre")[::2]) / 2.0 == pytest.approx(0.7 * 72.0, abs=1)
    assert label(vertical="baseline")[3] == pytest.approx(0.4 * 72.0, abs=1)
    assert label(vertical="top")[1] == pytest.approx(0.4 * 72.0, abs=1)
    assert label(offset_pt=(5.0, 10.0)) == (left + 5, top - 10, right + 5, bottom - 10)
    turned = label(align="centre", is_upright=True)
    assert (turned[2] - turned[0], turned[3] - turned[1]) == (height, width)
    assert (turned[0] + turned[2]) / 2.0 == pytest.approx(0.7 * 72.0, abs=1)


def test_texts_at_the_edge_are_cut_and_may_stand_on_a_disc():
    assert paint(Label("a long text", (1.2, 0.0), WHITE, 30.0), Label("x", (-9.0, 9.0), WHITE, 9.0)).max() > 0
    assert paint(Label("", (0.5, 0.5), WHITE, 9.0, disc=WHITE, disc_pt=9.0)).max() == 0
    found = paint(Label("1", (0.5, 0.5), WHITE, 9.0, align="centre", disc="#640000", disc_pt=20.0))
    assert found[36, 29] == 100
    assert found.max() > 200


def test_nothing_is_painted_outside_of_the_clip():
    raster = Raster(40, 40, "#000000")
    raster.fill(np.array([[(0.0, 0.0), (40, 0), (40, 40), (0, 40)]]), np.full(3, 255.0), clip=Box(10, 5, 20, 15))
    assert where(raster.pixels[:, :, 0]) == (10, 5, 20, 15)
    raster.stroke(np.array([[(0.0, 30.0), (40.0, 30.0)]]), 4.0, np.full(3, 255.0), clip=Box(10, 25, 20, 31))
    assert where(raster.pixels[20:, :, 0]) == (10, 8, 20, 11)
    raster.fill(np.array([[(0.0, 0.0), (80, 0), (80, 80), (0, 80)]]), np.full(3, 9.0), clip=Box(35, -9, 60, 60))
    assert (raster.pixels[:, 35:] == 9).all()
    assert (raster.pixels[:, :35] != 9).all()
