"""Track maps of laps: their colours and scales."""

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hotlap.evaluation.failures import Failures, TrackPlace
from hotlap.reports.plots import chart, maps
from hotlap.reports.plots.maps import (
    draw_path,
    draw_racing_lines,
    draw_road,
    draw_side_by_side,
    draw_time_lost,
    loss_rate,
)
from reports.known_laps import known_trace
from reports.plots.pixels import fraction_of


def test_road_is_red_where_time_is_lost(comparison, track, reference, monkeypatch):
    monkeypatch.setattr(chart, "DPI", 190)  # thin lines have few pixels of their pure colour where a picture is small
    png = draw_time_lost(comparison, track, "casual").png
    assert fraction_of(png, chart.LOSS, 40) > 1e-3
    assert fraction_of(png, chart.DRIVER) > 5e-4
    assert fraction_of(png, chart.OPTIMUM) > 2e-4
    rate = loss_rate(comparison)
    assert rate.mean() == pytest.approx(100.0 * (reference.lap_time_s / 9.0) / track.nodes.length_m, rel=1e-3)
    assert rate.min() > 0.0


def test_both_racing_lines_share_one_speed_scale(comparison, track, monkeypatch):
    ranges = []
    monkeypatch.setattr(maps, "draw_speed_line", lambda *_, range_mps: ranges.append(range_mps))
    draw_racing_lines(comparison, track, "casual")
    slowest, fastest = comparison.driver_line[2].min(), comparison.optimal_line[2].max()
    assert ranges == [pytest.approx((slowest, fastest))] * 2


def test_drivers_line_is_on_the_left_of_the_optimums(comparison, track):
    whole = Image.open(BytesIO(draw_side_by_side(comparison, track, "learned")))
    parts = [
        Image.open(BytesIO(picture.png)).convert("RGB") for picture in draw_racing_lines(comparison, track, "learned")
    ]
    assert whole.width == 2 * parts[0].width
    assert np.array_equal(np.asarray(whole), np.hstack([np.asarray(part) for part in parts]))


def test_path_of_a_car_without_a_lap_ends_in_a_cross(track):
    line = known_trace().line
    picture = draw_path(track, line, "stuck")
    assert picture.file_name == "line-driver.png"
    assert fraction_of(picture.png, chart.LOSS, 4) > 1e-4
    parked = tuple(part[:1] for part in line)
    assert fraction_of(draw_path(track, parked, "parked").png, chart.LOSS, 4) > 1e-4


def test_places_where_starts_failed_are_marked_on_the_driven_line(track):
    trace, place = known_trace(), TrackPlace(float(track.nodes.x_m[50]), float(track.nodes.y_m[50]), 50.0)

    def marked(failures):
        return fraction_of(draw_road(track, trace, failures, "casual", "a.png").png, chart.LOSS, 4)

    clear, left, stopped = (marked(failures) for failures in (Failures(), Failures((), (place,)), Failures((place,))))
    assert clear < left < stopped
    assert draw_road(track, replace(trace, laps=[]), Failures(), "casual", "a.png").file_name == "a.png"
