"""Panels of curves: which are drawn for one run and for several."""

from pathlib import Path

import pytest

from hotlap.drawing.marks import Polygons
from hotlap.reports.plots.panels import Panel, Series, colour_of, draw_panels, short_number
from hotlap.reports.run_record import group_runs
from reports.written_runs import curve, record

UPPER = Panel("upper", 1.0, (Series("a", "A", "#111111"), Series("b", "B", "#222222")), ("b", "a"), factor=10.0)
LOWER = Panel("lower", 1.0, (Series("c", "C", "#333333", has_dots=True),), ("c",), shared_label="together")


def lines(axes):
    return [(line.colour, line.points.tolist()) for line in axes.lines]


def test_every_series_of_a_single_run_is_drawn():
    run = record(curves={"a": curve((1, 2.0), (2, 3.0)), "c": curve((1, 5.0))})
    chart = draw_panels(group_runs([run]), [UPPER, LOWER], "title")
    assert lines(chart.panels["upper"]) == [("#111111", [[1.0, 20.0], [2.0, 30.0]])]
    assert lines(chart.panels["lower"]) == [("#333333", [[1.0, 5.0]])]
    assert chart.panels["upper"].y.label == "upper"
    assert chart.panels["lower"].y.label == "lower"


def test_panel_without_data_is_left_out():
    chart = draw_panels(group_runs([record(curves={"c": curve((1, 5.0))})]), [UPPER, LOWER], "title")
    assert list(chart.panels) == ["lower"]
    assert draw_panels(group_runs([record(curves={})]), [UPPER, LOWER], "title") is None
    assert draw_panels(group_runs([record(1, curves={}), record(2, curves={})]), [UPPER], "title") is None


def test_several_runs_are_thin_and_their_median_thick():
    runs = [record(seed, curves={"b": curve((0, 0.0), (10, float(seed)))}) for seed in (1, 2, 6)]
    chart = draw_panels(group_runs(runs), [UPPER, LOWER], "title")
    [axes] = chart.panels.values()
    *thin, thick = axes.lines
    assert [line.points[-1, 1] for line in thin] == [10.0, 20.0, 60.0]
    assert thick.points[:, 1].tolist() == [0.0, 20.0]
    assert thick.width_pt > thin[0].width_pt
    [band] = [mark for mark in axes.marks if isinstance(mark, Polygons)]
    corners = band.extent()
    heights = corners[corners[:, 0] == 10.0, 1]
    assert (heights.min(), heights.max()) == pytest.approx((15.0, 40.0))  # quartiles of 1, 2, 6 are 1.5 and 4


def test_runs_are_compared_by_the_first_key_that_any_has():
    runs = [record(1, curves={"a": curve((0, 1.0))}), record(2, curves={"a": curve((0, 2.0)), "b": curve((0, 9.0))})]
    assert UPPER.shared_key(runs) == "b"
    assert UPPER.shared_key(runs[:1]) == "a"
    assert UPPER.shared_key([record(curves={})]) is None
    chart = draw_panels(group_runs([record(seed, curves={"c": curve((0, 1.0))}) for seed in (1, 2)]), [LOWER], "title")
    assert chart.panels["lower"].y.label == "together"


def test_each_group_has_its_own_colour():
    other = record(2, settings={"ppo.gamma": 0.5}, folder=Path("other"), curves={"c": curve((0, 2.0), (9, 2.0))})
    chart = draw_panels(group_runs([record(1, curves={"c": curve((0, 1.0), (9, 1.0))}), other]), [LOWER], "title")
    assert {line.colour for line in chart.panels["lower"].lines} == {colour_of(0), colour_of(1)}
    assert colour_of(0) == colour_of(6) != colour_of(1)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (250, "250"), (2500, "2.5 k"), (1e6, "1 M"), (12.5e6, "12.5 M"), (3e9, "3 G")]
)
def test_counts_are_abbreviated(value, text):
    assert short_number(value) == text
