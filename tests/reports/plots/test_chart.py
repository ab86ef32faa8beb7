"""The frame of charts: names that fit, legends that wrap, panels."""

from hotlap.reports.plots.chart import FOOT_IN, LEGEND_IN, legend_height_in, new_chart, short_name


def test_name_is_cut_to_one_line_and_legend_wraps():
    assert short_name("ppo\n seed\t1") == "ppo seed 1"
    assert short_name(" ") == "driver"
    assert len(short_name("x" * 100)) == 40
    heights_in = [legend_height_in(["a rather long name of a setting of the algorithm"] * count) for count in range(4)]
    assert heights_in == [0.0, LEGEND_IN, LEGEND_IN, 2 * LEGEND_IN]


def test_panels_share_one_axis():
    figure, [upper, lower] = new_chart([2.0, 1.0], top_in=1.0, limit=50.0, x_label="steps", gap_in=0.5)
    assert upper.x_range == lower.x_range == (0.0, 50.0)
    assert (upper.top_in, upper.bottom_in, lower.top_in, lower.bottom_in) == (1.0, 3.0, 3.5, 4.5)
    assert figure.height_in == 4.5 + FOOT_IN
    assert (upper.x.has_names, lower.x.has_names, lower.x.label) == (False, True, "steps")
