"""Laps and episodes of steps are added up to the figures `racer/*`."""

import numpy as np
import pytest

from hotlap.learning.events import StepEvents
from hotlap.sim.world import INFO_DTYPE
from hotlap.training.racer_metrics import LapTotals


def random_steps(seed, num_steps=200, num_cars=6):
    """Random laps and ends of episodes, and what they are: (time, lap finished, is clean), and the lap at the end."""
    rng = np.random.default_rng(seed)
    laps, ends, steps = [], [], []
    number = np.ones(num_cars, int)
    for step in range(num_steps):
        has_lap, has_ended = rng.random(num_cars) < 0.1, rng.random(num_cars) < 0.05
        number += has_lap
        rows = np.flatnonzero(has_lap | has_ended)
        infos = np.zeros(len(rows), INFO_DTYPE)
        infos["lapTime"] = np.where(has_lap[rows], rng.uniform(20.0, 40.0, len(rows)), np.nan)
        infos["lap"], infos["lapClean"] = number[rows], rng.random(len(rows)) < 0.5
        laps += [
            (float(i["lapTime"]), int(i["lap"]) - 1, bool(i["lapClean"])) for i in infos if not np.isnan(i["lapTime"])
        ]
        ends += number[has_ended].tolist()
        number[has_ended] = 1
        none = np.zeros(len(rows))
        steps.append(StepEvents(step, rows, has_ended[rows], none, none.astype(int), infos))
    return steps, laps, ends


@pytest.mark.parametrize("first_lap_is_flying", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_the_figures_are_those_of_all_laps_and_episodes(seed, first_lap_is_flying):
    steps, laps, ends = random_steps(seed)
    totals = LapTotals()
    for events in steps:
        totals.add(events, first_lap_is_flying=first_lap_is_flying)
    times_s = [time_s for time_s, _, _ in laps]
    flying_s = [time_s for time_s, lap, is_clean in laps if is_clean and (first_lap_is_flying or lap > 1)]
    assert totals.figures(25.0) == {
        "racer/mean_lap_time_sec": pytest.approx(np.mean(times_s)),
        "racer/best_lap_time_sec": min(times_s),
        "racer/completion_rate": pytest.approx(np.mean([lap > 1 for lap in ends])),
        "racer/episodes_this_rollout": len(ends),
        "racer/gap_to_optimal": pytest.approx(np.median(flying_s) / 25.0 - 1.0),
    }


def test_two_totals_together_are_those_of_all_steps():
    steps, _, _ = random_steps(5)
    whole, first, second = LapTotals(), LapTotals(), LapTotals()
    for index, events in enumerate(steps):
        for totals in (whole, first if index < 80 else second):
            totals.add(events, first_lap_is_flying=True)
    assert first.plus(second).figures(25.0) == pytest.approx(whole.figures(25.0))


def test_without_laps_and_episodes_there_are_no_figures():
    totals = LapTotals()
    totals.add(
        StepEvents(1, np.zeros(0, int), np.zeros(0, bool), np.zeros(0), np.zeros(0, int)), first_lap_is_flying=True
    )
    assert totals.is_empty
    assert totals.figures(25.0) == {}
