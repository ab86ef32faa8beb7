"""Progress is reported at the start, at intervals and at the end, with the right figures."""

from types import SimpleNamespace

import pytest

from hotlap.training.callbacks import progress as progress_module
from hotlap.training.callbacks.progress import INTERVAL_S, ProgressCallback, TrainingProgress


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test advances."""
    clock = SimpleNamespace(now_s=100.0, monotonic=lambda: clock.now_s)
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


class Run:
    """A double of the learner that the callback watches."""

    def __init__(self, clock, first_step: int = 0, optimal_lap_s: float | None = None, **more) -> None:
        self.reports: list[TrainingProgress] = []
        self.clock, self.log = clock, {}
        logger = SimpleNamespace(name_to_value=self.log)
        self.model = SimpleNamespace(num_timesteps=first_step, ep_info_buffer=None, logger=logger, get_env=lambda: None)
        self.callback = ProgressCallback(self.reports.append, 1000, optimal_lap_s, **more)
        self.callback.init_callback(self.model)
        self.callback.on_training_start({}, {})

    def step(self, seconds: float, steps: int) -> None:
        self.clock.now_s += seconds
        self.model.num_timesteps += steps
        assert self.callback.on_step()


def test_the_start_the_end_and_every_interval_are_reported(clock):
    run = Run(clock)
    for _ in range(84):
        run.step(INTERVAL_S / 8, 1)  # an eighth: no rounding
    run.callback.on_training_end()
    assert [one.step for one in run.reports] == [*range(0, 81, 8), 84]
    assert {one.total for one in run.reports} == {1000}


def test_the_speed_is_that_of_this_process_only(clock):
    run = Run(clock, first_step=500)
    assert run.reports[0].steps_per_s == 0.0
    run.step(2.0, 100)
    assert run.reports[-1].step == 600
    assert run.reports[-1].steps_per_s == pytest.approx(50.0)


def test_the_return_is_the_mean_of_the_last_episodes(clock):
    run = Run(clock)
    assert run.reports[-1].mean_return is None
    run.model.ep_info_buffer = [{"r": 1.0}, {"r": 2.0}]
    run.callback.on_training_end()
    assert run.reports[-1].mean_return == 1.5


@pytest.mark.parametrize(("optimal_lap_s", "gap"), [(25.0, pytest.approx(0.2)), (None, None)])
def test_the_best_lap_is_kept_over_rollouts_and_compared_with_the_optimal_one(clock, optimal_lap_s, gap):
    run = Run(clock, optimal_lap_s=optimal_lap_s)
    assert (run.reports[-1].best_lap_s, run.reports[-1].gap) == (None, None)
    for logged in (40.0, 30.0, 35.0, None):
        run.log.clear()
        run.log.update({} if logged is None else {"racer/best_lap_time_sec": logged})
        run.callback.on_rollout_end()
    run.step(1.0, 1)
    assert (run.reports[-1].best_lap_s, run.reports[-1].gap) == (30.0, gap)


def test_the_lap_of_an_evaluation_counts_where_it_is_the_best(clock):
    evaluated = [None]
    run = Run(clock, optimal_lap_s=25.0, evaluated_lap_s=lambda: evaluated[0])
    run.step(1.0, 1)
    assert run.reports[-1].best_lap_s is None
    evaluated[0] = 30.0
    run.step(1.0, 1)
    assert (run.reports[-1].best_lap_s, run.reports[-1].gap) == (30.0, pytest.approx(0.2))
    run.log["racer/best_lap_time_sec"] = 29.0
    run.callback.on_rollout_end()
    run.step(1.0, 1)
    assert run.reports[-1].best_lap_s == 29.0
