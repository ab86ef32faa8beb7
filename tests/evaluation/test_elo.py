"""Elo ratings, against games whose ratings are known."""

import numpy as np
import pytest

from hotlap.evaluation.elo import elo_intervals, fit_elo


def test_a_driver_who_wins_ten_of_eleven_is_four_hundred_points_better():
    wins = np.array([[0.0, 10_000.0], [1_000.0, 0.0]])
    ratings = fit_elo(wins)
    assert ratings[0] - ratings[1] == pytest.approx(400.0, abs=1.0)
    assert ratings.mean() == pytest.approx(1500.0)


def test_the_ratings_of_three_drivers_are_found_again():
    true = np.array([1650.0, 1480.0, 1370.0])
    chance = 1.0 / (1.0 + 10.0 ** ((true - true[:, None]) / 400.0))
    ratings = fit_elo(1e6 * chance * (1.0 - np.eye(3)))
    assert ratings == pytest.approx(true, abs=1.0)


def test_a_driver_who_never_lost_has_a_finite_rating_and_one_alone_the_mean():
    ratings = fit_elo(np.array([[0.0, 50.0], [0.0, 0.0]]))
    assert 1500.0 < ratings[0] < 2500.0
    assert list(fit_elo(np.zeros((1, 1)))) == [1500.0]


def test_intervals_hold_the_truth_and_shrink_with_more_races():
    rng = np.random.default_rng(1)
    widths = []
    for num_races in (50, 800):
        first = rng.random(num_races) < 0.75
        wins = np.zeros((num_races, 2, 2))
        wins[:, 0, 1], wins[:, 1, 0] = first, ~first
        low, high = elo_intervals(wins)
        truth = 1500.0 + 200.0 * np.log10(3.0)
        assert low[0] < truth < high[0]
        widths.append(high[0] - low[0])
    assert widths[1] < 0.5 * widths[0]
