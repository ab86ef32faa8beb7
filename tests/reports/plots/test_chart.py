"""The frame of charts: names that fit, legends that wrap, panels."""

from hotlap.reports.plots.chart import LEGEND_IN, legend_height_in, new_chart, short_name


def test_name_is_cut_to_one_line_and_legend_wraps():
    assert short_name("ppo\n seed\t1") == "ppo seed 1"
    assert short_name(" ") == "driver"
    assert len(short_name("x" * 100)) == 40
    heights_in = [legend_height_in(["a rather long name of a setting"] * count) for count in range(4)]
    assert heights_in == [0.0, LEGEND_IN, LEGEND_IN, 2 * LEGEND_IN]


def test_panels_share_one_axis():
    figure, [upper, lower] = new_chart([2.0, 1.0], top_in=1.0, limit=50.0, x_label="steps", gap_in=0.5)
    assert upper.get_xlim() == lower.get_xlim() == (0.0, 50.0)
    height_in = figure.get_figheight()
    gap_in = height_in * (upper.get_position().y0 - lower.get_position().y1)
    assert abs(gap_in - 0.5) < 1e-6
    assert abs(height_in * (1.0 - upper.get_position().y1) - 1.0) < 1e-6
