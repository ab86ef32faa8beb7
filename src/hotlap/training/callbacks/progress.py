"""Reports a run's progress a few times a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from stable_baselines3.common.callbacks import BaseCallback

INTERVAL_S = 0.25


@dataclass(frozen=True)
class TrainingProgress:
    """How far a run is; figures that do not exist yet are None."""

    step: int
    total: int
    steps_per_s: float
    mean_return: float | None
    best_lap_s: float | None  # in training, or the median of an evaluation
    gap: float | None  # of the best lap to the optimal one


OnProgress = Callable[[TrainingProgress], None]


class ProgressCallback(BaseCallback):
    """Calls `on_progress` at the start, a few times a second, and at the end."""

    def __init__(
        self,
        on_progress: OnProgress,
        total: int,
        optimal_lap_s: float | None,
        evaluated_lap_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """`evaluated_lap_s` gives the best lap of the evaluations: training episodes may be shorter than a lap."""
        super().__init__()
        self._evaluated_lap_s = evaluated_lap_s
        self._on_progress, self._total, self._optimal_lap_s = on_progress, total, optimal_lap_s
        self._best_lap_s: float | None = None
        self._reported_s = 0.0

    def _on_training_start(self) -> None:
        self._started_s, self._first_step = time.monotonic(), self.num_timesteps
        self._report()

    def _on_step(self) -> bool:
        if time.monotonic() - self._reported_s >= INTERVAL_S:
            self._report()
        return True

    def _on_rollout_end(self) -> None:
        # The racer's callback comes before this one, so its figures are in the logger and not dumped yet.
        lap_s = self.logger.name_to_value.get("racer/best_lap_time_sec")
        if lap_s is not None and (self._best_lap_s is None or lap_s < self._best_lap_s):
            self._best_lap_s = float(lap_s)

    def _on_training_end(self) -> None:
        self._report()

    def _report(self) -> None:
        self._reported_s = time.monotonic()
        elapsed_s = max(self._reported_s - self._started_s, 1e-9)
        episodes = self.model.ep_info_buffer or ()
        returns = [info["r"] for info in episodes]
        laps_s = [each for each in (self._best_lap_s, self._evaluated_lap_s()) if each is not None]
        lap_s, optimal_s = min(laps_s, default=None), self._optimal_lap_s
        self._on_progress(
            TrainingProgress(
                self.num_timesteps,
                self._total,
                (self.num_timesteps - self._first_step) / elapsed_s,
                sum(returns) / len(returns) if returns else None,
                lap_s,
                lap_s / optimal_s - 1.0 if lap_s is not None and optimal_s else None,
            )
        )
