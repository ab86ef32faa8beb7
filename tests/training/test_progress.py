"""Progress is reported at the start, at intervals and at the end, with the right figures."""

from types import SimpleNamespace

import pytest

from hotlap.training import progress as progress_module
from hotlap.training.progress import INTERVAL_S, ProgressReporter, TrainingProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test advances."""
    clock = SimpleNamespace(now_s=100.0, monotonic=lambda: clock.now_s)
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


class Run:
    """Steps of a run, reported as they come."""

    def __init__(self, clock, first_step: int = 0, **more) -> None:
        self.reports: list[TrainingProgress] = []
        self.clock, self.num_steps = clock, first_step
        self.reporter = ProgressReporter(self.reports.append, 1000, **more)
        self.reporter.begin(first_step)

    def step(self, seconds: float, steps: int) -> None:
        self.clock.now_s += seconds
        self.num_steps += steps
        self.reporter.note(self.num_steps)

    def end(self) -> None:
        self.reporter.end(self.num_steps)


def test_the_start_the_end_and_every_interval_are_reported(clock):
    run = Run(clock)
    for _ in range(84):
        run.step(INTERVAL_S / 8, 1)  # an eighth: no rounding
    run.end()
    assert [one.step for one in run.reports] == [*range(0, 81, 8), 84]
    assert {one.total for one in run.reports} == {1000}
    assert [one.step for one in run.reports if one.is_end] == [84]


def test_the_speed_is_that_of_this_process_only(clock):
    run = Run(clock, first_step=500)
    assert run.reports[0].steps_per_s == 0.0
    run.step(2.0, 100)
    assert run.reports[-1].step == 600
    assert run.reports[-1].steps_per_s == pytest.approx(50.0)


def test_the_return_is_the_mean_of_the_last_episodes(clock):
    found = [None, 1.5]
    run = Run(clock, mean_return=lambda: found.pop(0))
    assert run.reports[-1].mean_return is None
    run.end()
    assert run.reports[-1].mean_return == 1.5


def test_the_laps_are_the_newest_figures_under_racer(clock):
    latest = {}
    run = Run(clock, latest_racer=lambda: latest)
    found = run.reports[-1]
    assert (found.completion_rate, found.mean_lap_s, found.best_lap_s, found.gap) == (None, None, None, None)
    latest |= {"completion_rate": 0.5, "mean_lap_time_sec": 31.0, "best_lap_time_sec": 30.0, "gap_to_optimal": 0.1}
    run.step(1.0, 1)
    found = run.reports[-1]
    assert (found.completion_rate, found.mean_lap_s, found.best_lap_s, found.gap) == (0.5, 31.0, 30.0, 0.1)


def test_the_time_left_is_known_from_the_first_steps_on(clock):
    run = Run(clock, first_step=500)
    assert run.reports[-1].left_s is None
    run.step(1.0, 20)
    assert run.reports[-1].left_s == pytest.approx(480 / 20)
    run.step(24.0, 490)  # over the total by a part of a vector step
    assert run.reports[-1].left_s == 0.0


def test_the_time_left_is_not_told_from_the_start_up_of_a_long_run():
    """A GPU's program is compiled in the first rollout: 4,096 of 120 million steps after ten seconds."""
    assert TrainingProgress(4096, 120_000_000, 410.0).left_s is None
    assert TrainingProgress(240_000, 120_000_000, 10_000.0).left_s == pytest.approx(11_976.0)
