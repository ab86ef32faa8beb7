"""Drivers that are evaluated in compiled code: the same laps as in Python, on any number of threads."""

import numpy as np
import pytest

from evaluation.reflex import Interpreted, Reflex
from hotlap.errors import ActionError
from hotlap.evaluation import evaluate as evaluate_module
from hotlap.evaluation.evaluate import LapCounter, drive_compiled, evaluate, make_evaluation_fleet
from hotlap.runs.find_driver import find_driver

STILL = {"bias": (0.0, 0.0, 0.0), "gain": 0.0}
CIRCLING = {"bias": (1.0, 0.15, 0.0), "gain": 0.0}


@pytest.mark.parametrize(
    ("start", "options"),
    [
        ("line", {}),
        ("random", {}),
        ("random", {"bias": (0.0, 0.9, -0.2), "centring": 0.0}),
        ("line", STILL),
        ("random", CIRCLING),
    ],
    ids=["line", "random", "reckless", "still", "circling"],
)
def test_compiled_and_interpreted_drives_have_the_same_figures_to_the_bit(monkeypatch, start, options):
    monkeypatch.setattr(evaluate_module, "STUCK_AFTER_S", 20)
    figures = [
        evaluate(driver, "track-01", episodes=5, start=start, seed=3)
        for driver in (Reflex(**options), Interpreted(Reflex(**options)))
    ]
    assert figures[0] == figures[1]
    if not options:
        assert figures[0].completion_rate >= 0.8
        assert figures[0].clean_lap_rate > 0.0


def compiled_drive(num_cars: int, num_threads: int = 1, first_seed: int = 0) -> LapCounter:
    fleet = make_evaluation_fleet("track-01", num_cars)
    fleet.seed(np.arange(first_seed, first_seed + num_cars, dtype=np.uint64))
    fleet.reset(start="random")
    return drive_compiled(Reflex(), fleet, num_laps=1, num_threads=num_threads)


def test_a_car_drives_the_same_lap_alone_or_among_others_on_any_number_of_threads_in_calls_of_any_length(monkeypatch):
    together = compiled_drive(7)
    assert len(together.laps) >= 5
    for num_threads in (2, 3, 16):
        threaded = compiled_drive(7, num_threads)
        assert threaded.laps == together.laps
        assert threaded.returns.tolist() == together.returns.tolist()
    for car in range(7):
        alone = compiled_drive(1, first_seed=car)
        assert [lap.time_s for lap in alone.laps] == [lap.time_s for lap in together.laps if lap.car == car]
        assert alone.returns[0] == together.returns[car]
    monkeypatch.setattr(evaluate_module, "MAX_TICKS_PER_CAR", 7)
    assert compiled_drive(7).laps == together.laps


def test_the_progress_of_a_compiled_drive_rises_to_the_end():
    fractions: list[float] = []
    evaluate(Reflex(), "track-01", episodes=3, start="random", progress=fractions.append)
    assert len(fractions) > 2
    assert fractions[-1] == 1.0
    assert (np.diff(fractions) > -0.02).all()


def test_a_policy_whose_action_is_not_finite_is_refused():
    with pytest.raises(ActionError, match=r"reflex: the action of car 0 must be finite, got \[nan"):
        evaluate(Reflex(bias=(np.nan, 0.3, 0.0)), "track-01", episodes=2)


def test_a_policy_of_the_road_is_not_driven_by_a_fleet_that_sees_only_rays():
    fleet = make_evaluation_fleet("track-01", 2, "rays")
    fleet.reset(start="line")
    with pytest.raises(ValueError, match="champion sees 58 observations, and the fleet has 14"):
        drive_compiled(find_driver("champion"), fleet, 1)
