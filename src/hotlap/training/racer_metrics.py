"""Counts the laps and episodes of cars in training, and turns them into the figures `racer/*`."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.learning.events import StepEvents

FIRST_LAP = 1


class LapTotals(msgspec.Struct, forbid_unknown_fields=True):
    """Totals over the laps and episodes that ended."""

    num_laps: int = 0
    total_s: float = 0.0
    best_s: float | None = None
    flying_s: list[float] = msgspec.field(default_factory=list)  # clean flying laps
    num_episodes: int = 0
    num_completed: int = 0  # episodes with at least one lap

    @property
    def is_empty(self) -> bool:
        """Whether nothing ended."""
        return not self.num_laps and not self.num_episodes

    def add_lap(self, time_s: float, count: int = 1) -> None:
        """Add a lap, or several that took the same time."""
        self.num_laps += count
        self.total_s += count * time_s
        self.best_s = time_s if self.best_s is None else min(self.best_s, time_s)

    def add(self, events: StepEvents, *, first_lap_is_flying: bool) -> None:
        """Add the laps and episodes of one step of our cars."""
        infos: NDArray[np.void] | None = events.infos
        if infos is None or not len(infos):
            return
        times_s, laps = infos["lapTime"], infos["lap"]
        done = times_s == times_s  # NaN where no lap ended
        laps_s = times_s[done].astype(np.float64)
        if len(laps_s):
            self.num_laps += len(laps_s)
            self.total_s += float(laps_s.sum())
            best_s = float(laps_s.min())
            self.best_s = best_s if self.best_s is None else min(self.best_s, best_s)
            is_flying = infos["lapClean"][done]
            if not first_lap_is_flying:
                is_flying = is_flying & (laps[done] - 1 > FIRST_LAP)
            self.flying_s = self.flying_s + laps_s[is_flying].tolist()
        self.num_episodes += int(events.has_ended.sum())
        self.num_completed += int((laps[events.has_ended] > FIRST_LAP).sum())

    def plus(self, other: "LapTotals") -> "LapTotals":
        """Both together."""
        best_s = [time_s for time_s in (self.best_s, other.best_s) if time_s is not None]
        return LapTotals(
            self.num_laps + other.num_laps,
            self.total_s + other.total_s,
            min(best_s, default=None),
            self.flying_s + other.flying_s,
            self.num_episodes + other.num_episodes,
            self.num_completed + other.num_completed,
        )

    def figures(self, optimal_lap_s: float | None) -> dict[str, float]:
        """The figures to log; one that does not exist is left out."""
        figures: dict[str, float] = {}
        if self.best_s is not None:
            figures["racer/mean_lap_time_sec"] = self.total_s / self.num_laps
            figures["racer/best_lap_time_sec"] = self.best_s
        if self.num_episodes:
            figures["racer/completion_rate"] = self.num_completed / self.num_episodes
            figures["racer/episodes_this_rollout"] = self.num_episodes
        if self.flying_s and optimal_lap_s is not None:
            figures["racer/gap_to_optimal"] = float(np.median(self.flying_s)) / optimal_lap_s - 1.0
        return figures
