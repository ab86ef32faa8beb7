"""Charts of laps over distance, read back from their pixels."""

import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports.plots import chart
from hotlap.reports.plots.lap_charts import draw_comparison, draw_deltas
from hotlap.tracks.registry import load_track
from reports.plots.pixels import share_of


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def comparison(track):
    raceline = centreline_raceline(track)
    return compare(follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1]))


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """Few pixels draw faster."""
    monkeypatch.setattr(chart, "DPI", 80)


def test_driver_and_optimum_have_the_same_colours_everywhere(comparison, track):
    pictures = draw_comparison(comparison, track, "casual")
    charts = [picture for picture in pictures if picture.is_chart]
    assert [picture.file_name for picture in charts] == ["delta.png", "telemetry.png"]
    for picture in charts:
        assert share_of(picture.png, chart.DRIVER) > 5e-4
        assert share_of(picture.png, chart.OPTIMUM) > 2e-4
    assert [picture.is_half for picture in pictures] == [False, False, False, True, True]


def test_each_lap_has_its_own_colour(comparison):
    picture = draw_deltas([("one", "#4fa8ff", comparison), ("two", "#ff7eb6", comparison)])
    # They are the same lap, so the second covers the first but for the legend.
    assert share_of(picture.png, "#ff7eb6") > 2.0 * share_of(picture.png, "#4fa8ff") > 0.0
    assert share_of(picture.png, chart.OPTIMUM) > 2e-4
