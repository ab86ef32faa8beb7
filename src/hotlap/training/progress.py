"""Reports a run's progress a few times a second."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

INTERVAL_S = 0.25
MIN_FRACTION = 0.002  # of a run, before which its speed is mostly that of its start


@dataclass(frozen=True)
class TrainingProgress:
    """How far a run is; figures that do not exist yet are None. Those of laps are the newest under `racer/*`."""

    step: int
    total: int
    steps_per_s: float
    mean_return: float | None = None
    completion_rate: float | None = None
    mean_lap_s: float | None = None
    best_lap_s: float | None = None
    gap: float | None = None
    is_end: bool = False  # the last report

    @property
    def left_s(self) -> float | None:
        """The time that the rest takes at the speed so far; None where too little is done to tell."""
        if self.steps_per_s <= 0.0 or self.step < MIN_FRACTION * self.total:
            return None
        return max(self.total - self.step, 0) / self.steps_per_s


OnProgress = Callable[[TrainingProgress], None]


class ProgressReporter:
    """Calls `on_progress`, if there is one, at the start, a few times a second, and at the end."""

    def __init__(
        self,
        on_progress: OnProgress | None,
        total: int,
        mean_return: Callable[[], float | None] = lambda: None,
        latest_racer: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`mean_return` is that of the last episodes; `latest_racer` has the newest value of each key `racer/*`."""
        self._on_progress, self._total = on_progress, total
        self._mean_return, self._latest_racer = mean_return, latest_racer

    def begin(self, step: int) -> None:
        """Report the start."""
        self._started_s, self._first_step = time.monotonic(), step
        self._report(step)

    def note(self, step: int) -> None:
        """Report, if it is time."""
        if time.monotonic() - self._reported_s >= INTERVAL_S:
            self._report(step)

    def end(self, step: int) -> None:
        """Report the end."""
        self._report(step, is_end=True)

    def _report(self, step: int, *, is_end: bool = False) -> None:
        self._reported_s = time.monotonic()
        if self._on_progress is None:
            return
        elapsed_s = max(self._reported_s - self._started_s, 1e-9)
        laps = self._latest_racer()
        self._on_progress(
            TrainingProgress(
                step,
                self._total,
                (step - self._first_step) / elapsed_s,
                self._mean_return(),
                laps.get("completion_rate"),
                laps.get("mean_lap_time_sec"),
                laps.get("best_lap_time_sec"),
                laps.get("gap_to_optimal"),
                is_end,
            )
        )
