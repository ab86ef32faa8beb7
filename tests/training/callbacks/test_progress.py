"""How far a run is: told at the start, now and then, and at the end, with figures that are true."""

from types import SimpleNamespace

import pytest

from hotlap.training.callbacks import progress as progress_module
from hotlap.training.callbacks.progress import INTERVAL_S, ProgressCallback, TrainingProgress


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress_module, "time", clock)
    return clock


class Run:
    """A learner's part of the conversation with a callback."""

    def __init__(self, clock: Clock, begun_at: int = 0, optimal_lap_s: float | None = None) -> None:
        self.told: list[TrainingProgress] = []
        self.clock = clock
        self.log: dict[str, float] = {}
        self.model = SimpleNamespace(
            num_timesteps=begun_at,
            ep_info_buffer=None,
            logger=SimpleNamespace(name_to_value=self.log),
            get_env=lambda: None,
        )
        self.callback = ProgressCallback(self.told.append, 1000, optimal_lap_s)
        self.callback.init_callback(self.model)
        self.callback.on_training_start({}, {})

    def step(self, seconds: float, steps: int) -> None:
        self.clock.now_s += seconds
        self.model.num_timesteps += steps
        assert self.callback.on_step()


def test_the_start_and_the_end_are_told_whatever_the_time(clock):
    run = Run(clock)
    run.step(0.0, 5)
    run.callback.on_training_end()
    assert [one.step for one in run.told] == [0, 5]
    assert {one.total for one in run.told} == {1000}


def test_in_between_it_is_told_a_few_times_a_second(clock):
    run = Run(clock)
    for _ in range(80):
        run.step(INTERVAL_S / 8, 1)  # an eighth: no rounding
    assert [one.step for one in run.told] == list(range(0, 81, 8))


def test_the_pace_is_of_this_session_only(clock):
    run = Run(clock, begun_at=500)
    assert run.told[0].steps_per_s == 0.0
    assert run.told[0].left_s is None
    run.step(2.0, 100)
    assert run.told[-1].step == 600
    assert run.told[-1].steps_per_s == pytest.approx(50.0)
    assert run.told[-1].left_s == pytest.approx(8.0)


def test_what_does_not_exist_yet_is_none(clock):
    first = Run(clock, optimal_lap_s=30.0).told[0]
    assert (first.mean_return, first.best_lap_s, first.gap) == (None, None, None)


def test_the_return_is_the_mean_of_the_last_episodes(clock):
    run = Run(clock)
    run.model.ep_info_buffer = [{"r": 1.0}, {"r": 2.0}]
    run.callback.on_training_end()
    assert run.told[-1].mean_return == 1.5


def test_the_best_lap_is_kept_over_rollouts_and_set_against_the_optimal_one(clock):
    run = Run(clock, optimal_lap_s=25.0)
    for lap_s in (40.0, 30.0, 35.0, None):
        run.log.clear()
        if lap_s is not None:
            run.log["racer/best_lap_time_sec"] = lap_s
        run.callback.on_rollout_end()
    run.step(1.0, 1)
    assert run.told[-1].best_lap_s == 30.0
    assert run.told[-1].gap == pytest.approx(0.2)


def test_without_an_optimal_lap_there_is_no_gap(clock):
    run = Run(clock)
    run.log["racer/best_lap_time_sec"] = 30.0
    run.callback.on_rollout_end()
    run.step(1.0, 1)
    assert run.told[-1].best_lap_s == 30.0
    assert run.told[-1].gap is None
