"""Maps of laps: whose colours are on them, and on which scale."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports.plots import chart, maps
from hotlap.reports.plots.maps import draw_lines, draw_losses, draw_side_by_side, draw_way, loss_rate
from hotlap.tracks.registry import load_track
from reports.plots.pixels import share_of


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def inputs(track):
    raceline = centreline_raceline(track)
    return follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1])


@pytest.fixture(scope="module")
def comparison(inputs):
    return compare(*inputs)


def test_losses_are_red_where_time_is_lost(inputs, comparison):
    png = draw_losses(comparison, inputs[1], "casual").png
    assert share_of(png, chart.LOSS, 40) > 1e-3
    assert share_of(png, chart.DRIVER) > 5e-4
    assert share_of(png, chart.OPTIMUM) > 2e-4
    rate = loss_rate(comparison)
    assert rate.mean() == pytest.approx(100.0 * (inputs[3] / 9.0) / inputs[1].nodes.length_m, rel=1e-3)
    assert rate.min() > 0.0


def test_both_lines_share_one_scale_of_speed(comparison, track, monkeypatch):
    ranges = []
    monkeypatch.setattr(maps, "draw_speed_line", lambda *_, range_mps: ranges.append(range_mps))
    draw_lines(comparison, track, "casual")
    slowest, fastest = comparison.driver_line[2].min(), comparison.optimal_line[2].max()
    assert ranges == [pytest.approx((slowest, fastest))] * 2


def test_side_by_side_the_drivers_line_is_on_the_left(comparison, track, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 60)
    whole = Image.open(BytesIO(draw_side_by_side(comparison, track, "learned")))
    parts = [Image.open(BytesIO(picture.png)).convert("RGB") for picture in draw_lines(comparison, track, "learned")]
    assert whole.width == 2 * parts[0].width
    assert np.array_equal(np.asarray(whole), np.hstack([np.asarray(part) for part in parts]))


def test_the_way_of_a_car_that_got_stuck_ends_in_a_cross(inputs, track):
    trace = inputs[0]
    picture = draw_way(track, trace.line, "slowcoach")
    assert picture.file_name == "line-driver.png"
    assert share_of(picture.png, chart.LOSS, 4) > 1e-4
    parked = tuple(part[:1] for part in trace.line)
    assert share_of(draw_way(track, parked, "parked").png, chart.LOSS, 4) > 1e-4
