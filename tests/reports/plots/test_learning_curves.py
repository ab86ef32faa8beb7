"""Curves of training, checked by their marks and pixels."""

import pytest

from hotlap.reports.model_laps import Baselines
from hotlap.reports.plots import chart, learning_curves
from hotlap.reports.plots.learning_curves import TERM_COLOURS, draw_lap_times, draw_learning_curve, draw_reward_terms
from hotlap.reports.run_record import group_runs
from reports.plots.pixels import fraction_of
from reports.written_runs import RACER_CURVES, curve, lander, record


@pytest.fixture
def drawn(monkeypatch):
    """The figures instead of PNGs."""
    figures = []

    def keep(figure):
        figures.append(figure)
        return b""

    monkeypatch.setattr(learning_curves, "to_png", keep)
    return figures


def labels(figure) -> list[str]:
    return [axes.y.label for axes in figure.axes]


def words(figure) -> str:
    return " | ".join(label.text for part in (*figure.axes, figure) for label in part.labels)


def heights(line) -> list[float]:
    return line.points[:, 1].tolist()


def test_learning_curve_of_a_racer(drawn):
    draw_learning_curve(group_runs([record()]))
    assert labels(drawn[0]) == ["return", "episode length", "loss"]
    [line] = drawn[0].axes[0].lines
    assert heights(line) == [-1.0, 0.5, 1.4]
    # 70 episodes had ended at step 4,000, the end of the axis, and 30 at its middle.
    assert "70" in words(drawn[0])
    assert "30" in words(drawn[0])
    assert "solved" not in words(drawn[0])


def test_learning_curve_of_a_lander_has_evaluations_and_threshold(drawn):
    draw_learning_curve(group_runs([lander()]))
    upper = drawn[0].axes[0]
    assert [heights(line)[-1] for line in upper.lines[:2]] == [1.4, 190.0]
    assert "solved: 200" in words(drawn[0])
    assert heights(upper.lines[2])[0] == 200.0
    # Several landers have a panel for evaluations.
    draw_learning_curve(group_runs([lander(1), lander(2)]))
    assert labels(drawn[1]) == ["return", "return, evaluated", "episode length"]
    assert words(drawn[1]).count("solved: 200") == 2


def test_loss_spike_and_slow_first_laps_do_not_flatten_the_curves(drawn):
    spiky = curve((1, 1e6), *((step, 1.0 + step % 2) for step in range(2, 400)))
    slow = curve((100, 900.0), (4000, 34.0))
    groups = group_runs([record(curves={**RACER_CURVES, "metrics/loss": spiky, "racer/mean_lap_time_sec": slow})])
    draw_learning_curve(groups)
    low, high = drawn[0].axes[2].y_range
    assert low < 1.0 < 2.0 < high < 3.0
    draw_lap_times(groups, Baselines(40.0, 28.0))
    assert drawn[1].axes[0].y_range[1] < 70.0


def test_lap_times_are_drawn_with_their_baselines_if_known(drawn):
    draw_lap_times(group_runs([record()]), Baselines(40.5, 28.25))
    upper, lower = drawn[0].axes
    assert [heights(line)[-1] for line in upper.lines[:3]] == [34.0, 33.0, 32.0]
    assert [heights(line)[0] for line in upper.lines[3:]] == [40.5, 28.25]
    assert "casual driver  40.50 s" in words(drawn[0])
    assert "optimum  28.25 s" in words(drawn[0])
    low, high = upper.y_range
    assert low < 28.25 < 40.5 < high
    assert [heights(line)[-1] for line in lower.lines] == pytest.approx([80.0, 100.0, 90.0])
    draw_lap_times(group_runs([record()]), Baselines())
    assert len(drawn[1].axes[0].lines) == 3


def test_several_racers_are_compared_by_their_evaluations(drawn):
    draw_lap_times(group_runs([record(1), record(2)]), Baselines())
    assert labels(drawn[0]) == ["median lap (s)", "completed (%)"]
    assert heights(drawn[0].axes[0].lines[0]) == [37.0, 32.0]


def test_no_picture_without_data():
    curves = {"racer/completion_rate": curve((500, 0.0), (1000, 0.0))}
    assert draw_lap_times(group_runs([record(curves=curves)]), Baselines(40.0, 28.0)) is None
    assert draw_learning_curve(group_runs([record(curves={})])) is None
    assert draw_reward_terms(group_runs([record(curves={})])[0]) is None


def test_reward_terms_that_are_always_zero_are_named_but_not_drawn(drawn):
    picture = draw_reward_terms(group_runs([record()])[0])
    assert "Always zero: speed." in picture.caption
    [axes] = drawn[0].axes
    _, progress, wall = axes.lines  # after the line at zero
    assert heights(progress) == pytest.approx([0.5, 2.0])  # per 1,000 decisions
    assert heights(wall) == pytest.approx([-0.5, -0.01])


def test_reward_terms_of_several_seeds_are_medians(drawn):
    curves = [{"reward/wall": curve((0, value), (10, value))} for value in (-1e-3, -2e-3, -9e-3)]
    draw_reward_terms(group_runs([record(seed, curves=one) for seed, one in enumerate(curves, start=1)])[0])
    assert heights(drawn[0].axes[0].lines[1]) == pytest.approx([-2.0, -2.0])
    assert "median of 3 seeds" in words(drawn[0])


def test_colours_appear_in_the_pictures():
    terms = draw_reward_terms(group_runs([record()])[0])
    assert fraction_of(terms.png, TERM_COLOURS["progress"]) > 5e-4
    laps = draw_lap_times(group_runs([record()]), Baselines(40.0, 28.0))
    assert fraction_of(laps.png, chart.OPTIMUM, 60) > 5e-4
    assert fraction_of(laps.png, chart.DRIVER) > 5e-4
    several = draw_learning_curve(group_runs([lander(1), lander(2)]))
    assert fraction_of(several.png, chart.DRIVER) > 5e-4
