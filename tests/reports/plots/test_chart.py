"""What charts have in common: names that fit, legends that break lines."""

from hotlap.reports.plots.chart import LEGEND_IN, legend_height_in, new_chart, short_name


def test_a_name_fits_one_line():
    assert short_name("ppo\n seed\t1") == "ppo seed 1"
    assert short_name(" ") == "driver"
    assert len(short_name("x" * 100)) == 40


def test_a_legend_takes_as_many_lines_as_it_needs():
    assert legend_height_in(["PPO"]) == LEGEND_IN
    assert legend_height_in(["a rather long name of a setting"] * 2) == LEGEND_IN
    assert legend_height_in(["a rather long name of a setting"] * 3) == 2 * LEGEND_IN
    assert legend_height_in([]) == 0.0


def test_panels_stand_over_one_another_on_one_axis():
    figure, [upper, lower] = new_chart([2.0, 1.0], top_in=1.0, limit=50.0, x_label="steps", gap_in=0.5)
    assert upper.get_xlim() == lower.get_xlim() == (0.0, 50.0)
    height_in = figure.get_figheight()
    gap_in = height_in * (upper.get_position().y0 - lower.get_position().y1)
    assert abs(gap_in - 0.5) < 1e-6
    assert abs(height_in * (1.0 - upper.get_position().y1) - 1.0) < 1e-6
