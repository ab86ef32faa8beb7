"""Reports a run's progress a few times a second."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback

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


class ProgressCallback(BaseCallback):
    """Calls `on_progress` at the start, a few times a second, and at the end."""

    def __init__(
        self,
        on_progress: OnProgress,
        total: int,
        latest_racer: Callable[[], Mapping[str, float]] = dict,
    ) -> None:
        """`latest_racer` gives the newest value of each key under `racer/*`."""
        super().__init__()
        self._on_progress, self._total, self._latest_racer = on_progress, total, latest_racer
        self._reported_s = 0.0

    def _on_training_start(self) -> None:
        self._started_s, self._first_step = time.monotonic(), self.num_timesteps
        self._report()

    def _on_step(self) -> bool:
        if time.monotonic() - self._reported_s >= INTERVAL_S:
            self._report()
        return True

    def _on_training_end(self) -> None:
        self._report(is_end=True)

    def _report(self, *, is_end: bool = False) -> None:
        self._reported_s = time.monotonic()
        elapsed_s = max(self._reported_s - self._started_s, 1e-9)
        episodes = self.model.ep_info_buffer or ()
        returns = [info["r"] for info in episodes]
        laps = self._latest_racer()
        self._on_progress(
            TrainingProgress(
                self.num_timesteps,
                self._total,
                (self.num_timesteps - self._first_step) / elapsed_s,
                sum(returns) / len(returns) if returns else None,
                laps.get("completion_rate"),
                laps.get("mean_lap_time_sec"),
                laps.get("best_lap_time_sec"),
                laps.get("gap_to_optimal"),
                is_end,
            )
        )
