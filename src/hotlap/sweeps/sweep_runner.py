"""Runs a sweep on a pool until it is finished or stopped."""

from collections.abc import Callable
from typing import Protocol

from hotlap.errors import TrainingError
from hotlap.sweeps.run_messages import RunReport, RunTask
from hotlap.sweeps.scheduler import Scheduler

POLL_S = 0.5  # how soon a request to stop is noticed


class Pool(Protocol):
    """Where tasks are executed: local processes, or a cluster."""

    @property
    def num_slots(self) -> int:
        """Tasks that may run at a time."""

    @property
    def num_running(self) -> int:
        """Tasks that were started and have not ended."""

    def start(self, task: RunTask) -> None:
        """Start a task; fewer than `num_slots` are running."""

    def wait(self, timeout_s: float) -> list[tuple[RunTask, RunReport]]:
        """The tasks that have ended, waiting for one up to `timeout_s`."""

    def stop(self) -> None:
        """Ask every run to save and end."""


def run_sweep(scheduler: Scheduler, pool: Pool, is_stop_requested: Callable[[], bool] = lambda: False) -> bool:
    """Run all trials; returns whether the sweep is finished, which it is not where a stop was requested."""
    is_stopping = False
    while not scheduler.is_finished:
        if is_stop_requested() and not is_stopping:
            is_stopping = True
            pool.stop()
        while not is_stopping and pool.num_running < pool.num_slots:
            task = scheduler.next_task()
            if task is None:
                break
            pool.start(task)
        if not pool.num_running:
            if is_stopping:
                break
            _refuse_deadlock(scheduler)
            continue
        for task, report in pool.wait(POLL_S):
            scheduler.note(task, report)
    return scheduler.is_finished


def _refuse_deadlock(scheduler: Scheduler) -> None:
    """Nothing runs although trials are left: an error of the scheduler, which is better than waiting for ever."""
    if not scheduler.is_finished:
        raise TrainingError("the sweep cannot continue: nothing runs and nothing can start. Please report this.")
