"""Statistics over runs, against answers computed by hand."""

import math

import numpy as np
import pytest

from hotlap.reports.statistics import bootstrap_interval, compute_spread, interquartile_mean, summarise
from reports.written_runs import curve


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([5.0], 5.0),
        ([1.0, 2.0, 6.0], 3.0),
        ([4.0, 1.0, 1000.0, 2.0], 3.0),  # the middle two of 1, 2, 4, 1000
        ([0.0, 1.0, 2.0, 3.0, 100.0], 2.0),  # a quarter of five is one, rounded down
        ([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, -99.0], 4.5),
    ],
)
def test_interquartile_mean_drops_a_quarter_at_each_end(values, answer):
    assert float(interquartile_mean(np.array(values))) == pytest.approx(answer)


def mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=-1)


def test_interval_of_two_values_and_of_equal_values():
    # The mean of two draws is 0 or 1 with probability 1/4 each, far above 2.5 %.
    assert bootstrap_interval(np.array([0.0, 1.0]), mean, rng()) == (0.0, 1.0)
    assert bootstrap_interval(np.full(5, 3.0), interquartile_mean, rng()) == (3.0, 3.0)
    # It depends only on the values and the generator.
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    one, again = (bootstrap_interval(values, interquartile_mean, rng(3)) for _ in range(2))
    assert one == again


def test_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = rng(1).normal(10.0, 2.0, size=400)
    half = 1.96 * values.std() / math.sqrt(400)
    low, high = bootstrap_interval(values, mean, rng())
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)


@pytest.mark.parametrize(("is_higher_better", "worst"), [(True, 1.0), (False, 9.0)])
def test_worst_is_the_lowest_or_the_highest(is_higher_better, worst):
    found = summarise([4.0, 1.0, 9.0], is_higher_better=is_higher_better, rng=rng())
    assert (found.count, found.median, found.worst) == (3, 4.0, worst)
    assert found.interquartile_mean == pytest.approx(14.0 / 3.0)
    assert 1.0 <= found.interval[0] < 14.0 / 3.0 < found.interval[1] <= 9.0


def test_run_without_the_figure_is_the_worst_and_fewer_than_three_runs_have_no_interval():
    lap = summarise([30.0, None, 32.0], is_higher_better=False, rng=rng())
    assert (lap.median, lap.worst, lap.interquartile_mean, lap.interval) == (32.0, None, None, None)
    fraction = summarise([0.9, None, 0.8], is_higher_better=True, rng=rng())
    assert (fraction.median, fraction.worst) == (0.8, None)
    assert summarise([30.0, None, None], is_higher_better=False, rng=rng()).median is None
    assert summarise([30.0, None], is_higher_better=False, rng=rng()).median is None
    two = summarise([1.0, 2.0], is_higher_better=True, rng=rng())
    assert (two.median, two.interquartile_mean, two.interval) == (1.5, 1.5, None)
    none = summarise([], is_higher_better=True, rng=rng())
    assert (none.count, none.median, none.worst) == (0, None, None)


def test_curves_are_interpolated():
    found = compute_spread(
        [curve((0, 0.0), (100, 100.0)), curve((0, 10.0), (50, 10.0), (100, 30.0)), curve((0, 1.0), (100, 1.0))]
    )
    assert found.step.tolist() == [0, 50, 100]
    assert found.median.tolist() == [1.0, 10.0, 30.0]
    assert found.lower.tolist() == [0.5, 5.5, 15.5]  # numpy's quartiles: halfway between the lower two
    assert found.upper.tolist() == [5.5, 30.0, 65.0]


def test_spread_covers_only_common_steps():
    found = compute_spread([curve((0, 1.0), (50, 2.0), (70, 2.0)), curve((40, 3.0), (100, 3.0))])
    assert (found.step[0], found.step[-1]) == (40, 70)
    assert found.median[0] == pytest.approx((1.8 + 3.0) / 2.0)
    single = compute_spread([curve((10, 1.0)), curve((10, 3.0))])
    assert (single.step.tolist(), single.median.tolist()) == ([10], [2.0])
    assert compute_spread([curve((0, 1.0), (10, 1.0)), curve((20, 1.0))]) is None
    assert compute_spread([curve((0, 1.0)), curve()]) is None
    assert compute_spread([]) is None


def test_spread_of_long_curves_is_thinned():
    long = curve(*((step, float(step)) for step in range(5000)))
    found = compute_spread([long, long])
    assert len(found.step) <= 400
    assert (found.step[0], found.step[-1]) == (0, 4999)
    assert found.median == pytest.approx(found.step)
