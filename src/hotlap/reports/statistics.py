"""Statistics over several runs: median, worst, interquartile mean with its bootstrap interval, and quartile bands."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hotlap.evaluation.telemetry import Floats
from hotlap.reports.curves import Curve, Ints

CONFIDENCE = 0.95
NUM_RESAMPLES = 10_000
# Resampling fewer runs says nothing about runs that were not made.
MIN_RUNS_FOR_INTERVAL = 3
MAX_GRID_STEPS = 400

Statistic = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Summary:
    """Statistics of a figure over several runs; None if a run that a statistic depends on lacks the figure."""

    count: int
    median: float | None
    worst: float | None
    interquartile_mean: float | None
    interval: tuple[float, float] | None  # of the interquartile mean


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of several curves, over the steps that all of them cover."""

    step: Ints
    lower: Floats  # first quartile
    median: Floats
    upper: Floats  # third quartile


def interquartile_mean(values: Floats) -> Floats:
    """The mean without the lowest and the highest quarter of the values (rounded down), along the last axis.

    Recommended for few runs by Agarwal et al. (2021): less sensitive to outliers than the mean, more efficient than
    the median. For fewer than four values it is the mean.
    """
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    middle: Floats = np.asarray(ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1))
    return middle


def bootstrap_interval(values: Floats, statistic: Statistic, rng: np.random.Generator) -> tuple[float, float]:
    """The percentile bootstrap interval of a statistic.

    `statistic` reduces the last axis of (NUM_RESAMPLES, num_values).
    """
    drawn = rng.choice(values, size=(NUM_RESAMPLES, len(values)))
    tail = 0.5 * (1.0 - CONFIDENCE)
    low, high = np.quantile(statistic(drawn), (tail, 1.0 - tail)).tolist()
    return low, high


def summarise(values: Sequence[float | None], *, is_higher_better: bool, rng: np.random.Generator) -> Summary:
    """Median, worst and interquartile mean over runs; a run without the figure ranks below all that have it."""
    missing = -math.inf if is_higher_better else math.inf
    numbers = np.array([missing if value is None else value for value in values], np.float64)
    if not len(numbers):
        return Summary(0, None, None, None, None)
    is_complete = bool(np.isfinite(numbers).all())
    has_interval = is_complete and len(numbers) >= MIN_RUNS_FOR_INTERVAL
    return Summary(
        count=len(numbers),
        median=_median(numbers),
        worst=_finite(numbers.min() if is_higher_better else numbers.max()),
        interquartile_mean=_finite(interquartile_mean(numbers)) if is_complete else None,
        interval=bootstrap_interval(numbers, interquartile_mean, rng) if has_interval else None,
    )


def _median(numbers: Floats) -> float | None:
    """The median; None if it depends on a missing value."""
    ordered = np.sort(numbers)
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return float(0.5 * (lower + upper)) if math.isfinite(lower) and math.isfinite(upper) else None


def _finite(number: float | Floats) -> float | None:
    return float(number) if math.isfinite(number) else None


def compute_spread(curves: Sequence[Curve]) -> Spread | None:
    """Median and quartiles of linearly interpolated curves; None if they have no step in common."""
    if not curves or not all(len(curve) for curve in curves):
        return None
    first, last = max(int(curve.step[0]) for curve in curves), min(int(curve.step[-1]) for curve in curves)
    if first > last:
        return None
    steps = np.unique(np.concatenate([curve.step for curve in curves] + [np.array([first, last])]))
    steps = steps[(steps >= first) & (steps <= last)]
    if len(steps) > MAX_GRID_STEPS:
        steps = np.unique(np.linspace(first, last, MAX_GRID_STEPS).round().astype(np.int64))
    values = np.stack([np.interp(steps, curve.step, curve.value) for curve in curves])
    lower, median, upper = np.quantile(values, (0.25, 0.5, 0.75), axis=0)
    return Spread(steps, lower, median, upper)
