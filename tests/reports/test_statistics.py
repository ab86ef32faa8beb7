"""Statistics over runs, against answers worked out by hand and against other people's functions."""

import math

import numpy as np
import pytest

from hotlap.reports.statistics import bootstrap_interval, interquartile_mean, spread_of, summarise
from reports.written_runs import curve


def rng(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("values", "answer"),
    [
        ([5.0], 5.0),
        ([1.0, 2.0, 6.0], 3.0),
        ([4.0, 1.0, 1000.0, 2.0], 3.0),  # of 1, 2, 4, 1000 the middle two
        ([0.0, 1.0, 2.0, 3.0, 100.0], 2.0),  # a quarter of five is one, rounded down
        ([8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, -99.0], 4.5),
    ],
)
def test_the_interquartile_mean_leaves_out_a_quarter_at_each_end(values, answer):
    assert float(interquartile_mean(np.array(values))) == pytest.approx(answer)


def test_the_interquartile_mean_is_the_trimmed_mean_of_others():
    stats = pytest.importorskip("scipy.stats")
    draw = rng()
    for count in range(1, 30):
        values = draw.normal(size=(3, count))
        assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25, axis=-1))


def mean(values: np.ndarray) -> np.ndarray:
    return values.mean(axis=-1)


def test_the_interval_of_two_values_spans_them():
    # Their mean over two draws is 0 or 1 with a chance of a quarter each, far over 2.5 %.
    assert bootstrap_interval(np.array([0.0, 1.0]), mean, rng()) == (0.0, 1.0)


def test_equal_values_leave_no_doubt():
    assert bootstrap_interval(np.full(5, 3.0), interquartile_mean, rng()) == (3.0, 3.0)


def test_the_interval_of_a_mean_is_that_of_the_normal_law():
    values = rng(1).normal(10.0, 2.0, size=400)
    half = 1.96 * values.std() / math.sqrt(400)
    low, high = bootstrap_interval(values, mean, rng())
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_the_interval_is_the_generators_and_nothing_elses():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    one = bootstrap_interval(values, interquartile_mean, rng(3))
    assert bootstrap_interval(values, interquartile_mean, rng(3)) == one


@pytest.mark.parametrize(("is_more_better", "worst"), [(True, 1.0), (False, 9.0)])
def test_the_worst_depends_on_what_is_good(is_more_better, worst):
    found = summarise([4.0, 1.0, 9.0], is_more_better=is_more_better, rng=rng())
    assert (found.count, found.median, found.worst) == (3, 4.0, worst)
    assert found.interquartile_mean == pytest.approx(14.0 / 3.0)
    assert found.interval is not None
    assert 1.0 <= found.interval[0] < 14.0 / 3.0 < found.interval[1] <= 9.0


def test_a_run_without_the_figure_is_the_worst():
    lap = summarise([30.0, None, 32.0], is_more_better=False, rng=rng())
    assert (lap.median, lap.worst, lap.interquartile_mean, lap.interval) == (32.0, None, None, None)
    share = summarise([0.9, None, 0.8], is_more_better=True, rng=rng())
    assert (share.median, share.worst) == (0.8, None)
    assert summarise([30.0, None, None], is_more_better=False, rng=rng()).median is None
    assert summarise([30.0, None], is_more_better=False, rng=rng()).median is None


def test_few_runs_have_no_interval_and_none_have_nothing():
    two = summarise([1.0, 2.0], is_more_better=True, rng=rng())
    assert (two.median, two.interquartile_mean, two.interval) == (1.5, 1.5, None)
    none = summarise([], is_more_better=True, rng=rng())
    assert (none.count, none.median, none.worst) == (0, None, None)


def test_curves_are_read_off_between_their_points():
    found = spread_of(
        [curve((0, 0.0), (100, 100.0)), curve((0, 10.0), (50, 10.0), (100, 30.0)), curve((0, 1.0), (100, 1.0))]
    )
    assert found is not None
    assert found.step.tolist() == [0, 50, 100]
    assert found.median.tolist() == [1.0, 10.0, 30.0]
    assert found.lower.tolist() == [0.5, 5.5, 15.5]  # numpy's quartiles: halfway between the lower two
    assert found.upper.tolist() == [5.5, 30.0, 65.0]


def test_only_steps_that_all_curves_have_count():
    found = spread_of([curve((0, 1.0), (50, 2.0), (70, 2.0)), curve((40, 3.0), (100, 3.0))])
    assert found is not None
    assert (found.step[0], found.step[-1]) == (40, 70)
    assert found.median[0] == pytest.approx((1.8 + 3.0) / 2.0)


def test_curves_without_a_step_in_common_have_no_spread():
    assert spread_of([curve((0, 1.0), (10, 1.0)), curve((20, 1.0))]) is None
    assert spread_of([curve((0, 1.0)), curve()]) is None
    assert spread_of([]) is None


def test_a_single_common_step_is_enough():
    found = spread_of([curve((10, 1.0)), curve((10, 3.0))])
    assert found is not None
    assert (found.step.tolist(), found.median.tolist()) == ([10], [2.0])


def test_long_curves_are_read_off_at_few_steps():
    long = curve(*((step, float(step)) for step in range(5000)))
    found = spread_of([long, long])
    assert found is not None
    assert len(found.step) <= 400
    assert (found.step[0], found.step[-1]) == (0, 4999)
    assert found.median == pytest.approx(found.step)
