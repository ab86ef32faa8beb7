"""CMA-ES finds the least of functions whose least is known."""

import numpy as np
import pytest

from covariance_search import CovarianceSearch

TARGET = np.array([0.3, -1.2, 2.0, 0.0, 0.7, -0.4, 1.1, -2.2])


def sphere(points):
    return ((points - TARGET) ** 2).sum(axis=1)


def ellipsoid(points):
    """A thousand times steeper in one direction than in another, and turned."""
    turned = (points - TARGET) @ np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, TARGET.size)))[0]
    return (turned**2 * np.logspace(0.0, 6.0, TARGET.size)).sum(axis=1)


def minimize(function, rounds, seed=1):
    search = CovarianceSearch(TARGET.size, population=16, spread=0.5, seed=seed)
    for _ in range(rounds):
        search.tell(function(search.ask()))
    return search


@pytest.mark.parametrize(("function", "rounds"), [(sphere, 150), (ellipsoid, 500)])
def test_the_mean_comes_to_the_least_value(function, rounds):
    search = minimize(function, rounds)
    np.testing.assert_allclose(search.mean, TARGET, atol=1e-6)
    assert search.spread < 1e-3


def test_only_the_order_of_scores_counts_and_a_seed_repeats():
    plain, warped = minimize(sphere, 40), minimize(lambda points: np.exp(sphere(points)) - 7.0, 40)
    np.testing.assert_array_equal(plain.mean, warped.mean)
    assert not np.array_equal(plain.mean, minimize(sphere, 40, seed=2).mean)


def test_the_cloud_grows_where_steps_go_one_way():
    search = CovarianceSearch(TARGET.size, population=16, spread=0.01, seed=1)
    for _ in range(60):
        search.tell(search.ask()[:, 0])  # without a least value
    assert search.spread > 1.0
    assert search.mean[0] < -10.0
