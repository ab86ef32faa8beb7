"""Pictures of training, read back from what was drawn and from their pixels."""

from dataclasses import replace

import pytest

from hotlap.reports.model_laps import Yardsticks
from hotlap.reports.plots import chart
from hotlap.reports.plots import training_charts as training
from hotlap.reports.plots.training_charts import TERM_COLOURS, draw_learning, draw_progress, draw_terms
from hotlap.reports.run_record import group_runs
from reports.plots.pixels import share_of
from reports.written_runs import LANDER_CURVES, RACER_CURVES, curve, lander, record


@pytest.fixture
def drawn(monkeypatch):
    """The figures as they are before they become PNGs."""
    figures = []

    def keep(figure):
        figures.append(figure)
        return b""

    monkeypatch.setattr(training, "to_png", keep)
    return figures


def labels(figure) -> list[str]:
    return [axes.get_ylabel() for axes in figure.axes]


def words(figure) -> str:
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    return " | ".join([*texts, *(text.get_text() for text in figure.texts)])


def test_a_racers_learning_curve(drawn):
    draw_learning(group_runs([record()]))
    assert labels(drawn[0]) == ["return", "episode length", "loss"]
    [line] = drawn[0].axes[0].lines
    assert line.get_ydata().tolist() == [-1.0, 0.5, 1.4]
    # The 70 episodes that had ended by step 4,000 stand over the end of the axis, the 30 over its middle.
    assert "70" in words(drawn[0])
    assert "30" in words(drawn[0])
    assert "solved" not in words(drawn[0])


def test_a_landers_learning_curve_has_evaluations_and_the_threshold(drawn):
    draw_learning(group_runs([lander()]))
    upper = drawn[0].axes[0]
    assert [line.get_ydata()[-1] for line in upper.lines[:2]] == [1.4, 190.0]
    assert "solved: 200" in words(drawn[0])
    assert upper.lines[2].get_ydata()[0] == 200.0


def test_several_landers_have_a_panel_for_evaluations(drawn):
    draw_learning(group_runs([lander(1), lander(2)]))
    assert labels(drawn[0]) == ["return", "return, evaluated", "episode length"]
    assert words(drawn[0]).count("solved: 200") == 2


def test_the_first_losses_do_not_flatten_the_rest(drawn):
    spiky = curve((1, 1e6), *((step, 1.0 + step % 2) for step in range(2, 400)))
    draw_learning(group_runs([record(curves={**RACER_CURVES, "metrics/loss": spiky})]))
    low, high = drawn[0].axes[2].get_ylim()
    assert low < 1.0 < 2.0 < high < 3.0


def test_lap_times_stand_beside_their_yardsticks(drawn):
    draw_progress(group_runs([record()]), Yardsticks(40.5, 28.25))
    upper, lower = drawn[0].axes
    assert [line.get_ydata()[-1] for line in upper.lines[:3]] == [34.0, 33.0, 32.0]
    assert [line.get_ydata()[0] for line in upper.lines[3:]] == [40.5, 28.25]
    assert "casual driver  40.50 s" in words(drawn[0])
    assert "optimum  28.25 s" in words(drawn[0])
    low, high = upper.get_ylim()
    assert low < 28.25 < 40.5 < high
    assert [line.get_ydata()[-1] for line in lower.lines] == pytest.approx([80.0, 100.0, 90.0])


def test_slow_first_laps_do_not_flatten_the_rest(drawn):
    slow = {**RACER_CURVES, "racer/mean_lap_time_sec": curve((100, 900.0), (4000, 34.0))}
    draw_progress(group_runs([record(curves=slow)]), Yardsticks(40.0, 28.0))
    assert drawn[0].axes[0].get_ylim()[1] < 70.0


def test_without_yardsticks_the_laps_are_still_drawn(drawn):
    draw_progress(group_runs([record()]), Yardsticks())
    assert len(drawn[0].axes[0].lines) == 3


def test_several_racers_are_compared_by_their_evaluations(drawn):
    draw_progress(group_runs([record(1), record(2)]), Yardsticks())
    assert labels(drawn[0]) == ["median lap (s)", "completed (%)"]
    assert drawn[0].axes[0].lines[0].get_ydata().tolist() == [37.0, 32.0]


def test_where_nobody_came_round_there_is_no_picture():
    curves = {"racer/completion_rate": curve((500, 0.0), (1000, 0.0))}
    assert draw_progress(group_runs([record(curves=curves)]), Yardsticks(40.0, 28.0)) is None
    assert draw_learning(group_runs([record(curves={})])) is None
    assert draw_terms(group_runs([record(curves={})])[0]) is None


def test_terms_that_are_always_zero_are_named_and_not_drawn(drawn):
    picture = draw_terms(group_runs([record()])[0])
    assert picture is not None
    assert "Always zero: speed." in picture.caption
    [axes] = drawn[0].axes
    _, progress, wall = axes.lines  # after the line at zero
    assert progress.get_ydata() == pytest.approx([0.5, 2.0])  # per 1,000 decisions
    assert wall.get_ydata() == pytest.approx([-0.5, -0.01])


def test_terms_of_several_seeds_are_medians(drawn):
    curves = [{"reward/wall": curve((0, value), (10, value))} for value in (-1e-3, -2e-3, -9e-3)]
    draw_terms(group_runs([record(seed, curves=one) for seed, one in enumerate(curves, start=1)])[0])
    assert drawn[0].axes[0].lines[1].get_ydata() == pytest.approx([-2.0, -2.0])
    assert "median of 3 seeds" in words(drawn[0])


def test_the_colours_get_into_the_picture(monkeypatch):
    monkeypatch.setattr(chart, "DPI", 80)
    terms = draw_terms(group_runs([record()])[0])
    assert terms is not None
    assert share_of(terms.png, TERM_COLOURS["progress"]) > 5e-4
    laps = draw_progress(group_runs([record()]), Yardsticks(40.0, 28.0))
    assert laps is not None
    assert share_of(laps.png, chart.OPTIMUM, 60) > 5e-4
    assert share_of(laps.png, chart.DRIVER) > 5e-4
    several = draw_learning(group_runs([lander(1), replace(lander(2), curves=LANDER_CURVES)]))
    assert several is not None
    assert share_of(several.png, chart.DRIVER) > 5e-4
