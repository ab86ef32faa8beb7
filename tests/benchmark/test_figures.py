"""Figures with answers known beforehand."""

import numpy as np
import pytest

from hotlap.benchmark.figures import EntryFigures, part_figures, passing_figures, read_figures, track_figures
from hotlap.benchmark.lap_replays import LapOutcomes
from hotlap.benchmark.overtaking_replays import PassingOutcomes

NAN = np.nan


def outcomes(times_s, is_clean):
    count = len(times_s)
    return LapOutcomes(
        np.array(times_s, np.float32), np.array(is_clean), np.zeros(count, np.int32), np.zeros(count, np.int64)
    )


def test_a_start_without_a_clean_lap_counts_as_one_hundred():
    found = track_figures(outcomes([30.0, 33.0, 33.0, NAN], [True, True, False, False]), 30.0)
    assert (found.starts, found.completed_rate, found.clean_rate) == (4, 0.75, 0.5)
    assert found.median_gap == pytest.approx(0.05)
    assert found.worst_gap == pytest.approx(0.1)
    assert found.score == pytest.approx((0.0 + 0.1 + 1.0 + 1.0) / 4)
    assert found.median_lap_s == pytest.approx(31.5)


def test_a_track_without_a_clean_lap_has_no_gap_and_the_worst_score():
    found = track_figures(outcomes([NAN, 40.0], [False, False]), 30.0)
    assert (found.completed_rate, found.clean_rate, found.median_gap, found.score) == (0.5, 0.0, None, 1.0)


def test_every_track_of_a_part_counts_as_much_as_another():
    one = track_figures(outcomes([33.0], [True]), 30.0)
    two = track_figures(outcomes([36.0, 36.0, 36.0], [True] * 3), 30.0)
    found = part_figures([one, two])
    assert (found.starts, found.clean_rate) == (4, 1.0)
    assert found.score == pytest.approx(0.15)
    assert found.worst_gap == pytest.approx(0.2)
    none = track_figures(outcomes([NAN], [False]), 30.0)
    assert part_figures([one, none]).worst_gap is None
    assert part_figures([one, none]).score == pytest.approx(0.55)


def test_passings_are_counted_and_figures_come_back_from_plain_values():
    yes, no = np.ones(4, np.bool_), np.array([True, False, False, False])
    found = passing_figures(PassingOutcomes(yes, no, ~yes, ~yes, no))
    assert (found.scenarios, found.safe_rate, found.overtake_rate, found.off_road_rate) == (4, 1.0, 0.25, 0.25)
    assert found.overtake_low < 0.25 < found.overtake_high
    one = track_figures(outcomes([33.0], [True]), 30.0)
    figures = EntryFigures({"a": one}, {"b": part_figures([one])}, found)
    assert read_figures(figures.as_dict()) == figures
