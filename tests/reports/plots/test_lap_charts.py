"""Charts of laps over distance, checked by their pixels."""

from hotlap.reports.plots import chart
from hotlap.reports.plots.lap_charts import draw_comparison, draw_deltas
from reports.plots.pixels import fraction_of


def test_driver_and_optimum_have_their_colours_in_all_charts(comparison, track):
    pictures = draw_comparison(comparison, track, "casual")
    charts = [picture for picture in pictures if picture.is_chart]
    assert [picture.file_name for picture in charts] == ["delta.png", "telemetry.png"]
    for picture in charts:
        assert fraction_of(picture.png, chart.DRIVER) > 5e-4
        assert fraction_of(picture.png, chart.OPTIMUM) > 2e-4
    assert [picture.is_half for picture in pictures] == [False, False, False, True, True]


def test_each_lap_has_its_own_colour(comparison):
    picture = draw_deltas([("one", "#4fa8ff", comparison), ("two", "#ff7eb6", comparison)])
    # Both are the same lap, so the second covers the first except in the legend.
    assert fraction_of(picture.png, "#ff7eb6") > 2.0 * fraction_of(picture.png, "#4fa8ff") > 0.0
    assert fraction_of(picture.png, chart.OPTIMUM) > 2e-4
