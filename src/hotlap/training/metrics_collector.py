"""Collects a run's training metrics step by step, cheaply, and journals them so that a crash loses next to nothing."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hotlap.errors import ConfigError, ModelError
from hotlap.runs.journal import Journal
from hotlap.runs.json_documents import Record, build_record, encode, to_plain, utc_text
from hotlap.runs.metrics_document import (
    Aggregates,
    MetricPoint,
    MetricsMetadata,
    RacerPoint,
    TrainingMetrics,
)
from hotlap.runs.metrics_journal import JournalEnd, read_journal

__all__ = ["MetricsCollector", "TrainingMetrics"]

# As many episodes as stable-baselines3 averages for its `rollout/ep_rew_mean`.
RECENT_EPISODES = 100

_log = logging.getLogger(__name__)
_RACER_PREFIX = "racer/"
_RACER_KEYS = tuple(field.name for field in msgspec.structs.fields(RacerPoint) if field.name != "timestep")

Clock = Callable[[], float]


class _RunningStats(msgspec.Struct):
    """Mean and standard deviation of a stream (Welford's algorithm, which keeps its precision on long runs)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean
    smallest: float = math.inf
    largest: float = -math.inf

    def add(self, value: float) -> None:
        self.count += 1
        distance = value - self.mean
        self.mean += distance / self.count
        self.squares += distance * (value - self.mean)
        self.smallest = value if value < self.smallest else self.smallest
        self.largest = value if value > self.largest else self.largest

    @property
    def std(self) -> float:
        return math.sqrt(self.squares / self.count)


class _SavedCollector(Record, frozen=True):
    """A collector's state as a checkpoint holds it; None stands for NaN and, where there was no episode, infinity."""

    metadata: MetricsMetadata
    timestep: int
    num_points: int
    num_episodes: int
    return_mean: float | None
    return_squares: float | None
    return_min: float | None
    return_max: float | None
    total_length: int
    recent_returns: tuple[float | None, ...]
    recent_lengths: tuple[int, ...]
    loss: float | None
    num_racer_points: int = 0

    def __post_init__(self) -> None:
        if len(self.recent_returns) != len(self.recent_lengths):
            raise ValueError("recent_returns and recent_lengths must have the same length")

    def returns(self) -> _RunningStats:
        stats = _RunningStats(self.num_episodes, _nan_if_none(self.return_mean), _nan_if_none(self.return_squares))
        if self.return_min is not None and self.return_max is not None:
            stats.smallest, stats.largest = self.return_min, self.return_max
        return stats


class MetricsCollector:
    """Collects a run's metrics while it trains.

    There is a point at the first step, at every multiple of the interval, and, in the document only, at the last step:
    a run that is extended does not keep it. What is logged under `racer/*` is a second series.

    Points are appended to the journal as they are made, one JSON object per line, so that a crash loses at most the
    last second. An existing journal file is overwritten; `resume` continues it.
    """

    def __init__(
        self,
        experiment_id: str,
        algorithm: str,
        environment: str,
        seed: int,
        recording_interval: int = 100,
        journal: Path | None = None,
        clock: Clock = time.time,
    ) -> None:
        """`clock` gives seconds since 1970."""
        if recording_interval < 1:
            raise ConfigError(f"recording_interval must be at least 1 step, got {recording_interval}.")
        self.metadata = MetricsMetadata(experiment_id, algorithm, environment, seed, recording_interval)
        self._clock = clock
        self._points: list[MetricPoint] = []
        self._racer_points: list[RacerPoint] = []
        self._timestep = 0
        self._due = 0
        self._returns = _RunningStats()
        self._total_length = 0
        self._recent_returns: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._recent_lengths: deque[int] = deque(maxlen=RECENT_EPISODES)
        self._recent_means: tuple[float | None, float | None] | None = (None, None)  # None: stale
        self._loss: float | None = None
        self._journal = None if journal is None else Journal(journal)

    @classmethod
    def resume(cls, journal: Path, state: Mapping[str, Any], clock: Clock = time.time) -> "MetricsCollector":
        """Continue from `get_state`'s result and the journal of that run; the journal's later points are dropped."""
        saved = build_record(_SavedCollector, state, "metrics state")
        collector = cls(**msgspec.structs.asdict(saved.metadata), clock=clock)
        collector._restore(saved)
        collector._continue_journal(journal, saved)
        return collector

    @property
    def num_episodes(self) -> int:
        """Episodes finished so far."""
        return self._returns.count

    def note_episode(self, reward: float, length: int) -> None:
        """Add a finished episode: its return and length in steps; a return that is not finite makes the means None."""
        number = float(reward) if math.isfinite(reward) else math.nan
        self._returns.add(number)
        self._total_length += int(length)
        self._recent_returns.append(number)
        self._recent_lengths.append(int(length))
        self._recent_means = None

    def note_loss(self, value: float) -> None:
        """Set the loss of the last update."""
        self._loss = _number(value)

    def note_step(self, timestep: int) -> None:
        """Set the total number of steps; adds a point at the first, and whenever it passes a multiple of the interval.

        Passing several multiples at once, as with hundreds of environments, adds one point.
        """
        self._timestep = timestep
        if timestep >= self._due:
            self._due = self._next_due()
            point = self._make_point()
            self._points.append(point)
            self._write(point)

    def note_racer(self, timestep: int, figures: Mapping[str, Any]) -> None:
        """Add what was logged at a step, if there are figures under `racer/*` in it."""
        found = {name: figures[key] for name in _RACER_KEYS if (key := _RACER_PREFIX + name) in figures}
        if not found:
            return
        # TensorBoard has single precision: the same numbers in both files.
        values = {name: _number(float(np.float32(value))) for name, value in found.items()}
        episodes = values.pop("episodes_this_rollout", None)
        point = RacerPoint(
            timestep=timestep,
            episodes_this_rollout=None if episodes is None else int(episodes),
            **{name: values.get(name) for name in _RACER_KEYS if name != "episodes_this_rollout"},
        )
        self._racer_points.append(point)
        self._write(point)

    @property
    def latest_racer(self) -> dict[str, float]:
        """The newest value of each key under `racer/*`, by its name there; without the keys that were never logged."""
        found: dict[str, float] = {}
        for point in reversed(self._racer_points):
            for name in _RACER_KEYS:
                value = getattr(point, name)
                if value is not None:
                    found.setdefault(name, value)
            if len(found) == len(_RACER_KEYS):
                break
        return found

    def _next_due(self) -> int:
        interval = self.metadata.recording_interval
        return (self._timestep // interval + 1) * interval if self._timestep else 0

    def _make_point(self) -> MetricPoint:
        if self._recent_means is None:
            count = len(self._recent_returns)
            self._recent_means = (_number(sum(self._recent_returns) / count), sum(self._recent_lengths) / count)
        return MetricPoint(self._timestep, self.num_episodes, *self._recent_means, self._loss, utc_text(self._clock()))

    def _write(self, point: MetricPoint | RacerPoint) -> None:
        if self._journal is not None:
            self._journal.add(encode(point))

    def metrics(self) -> TrainingMetrics:
        """The document so far, with a point at the last step."""
        is_last_missing = bool(self._points) and self._points[-1].timestep < self._timestep
        points = (*self._points, self._make_point()) if is_last_missing else tuple(self._points)
        return TrainingMetrics(self.metadata, points, self._aggregates(), tuple(self._racer_points))

    def _aggregates(self) -> Aggregates:
        if not self.num_episodes:
            return Aggregates(None, None, None, None, None, self._timestep)
        return Aggregates(
            reward_mean=_number(self._returns.mean),
            reward_std=_number(self._returns.std),
            reward_min=_number(self._returns.smallest),
            reward_max=_number(self._returns.largest),
            episode_length_mean=self._total_length / self.num_episodes,
            total_timesteps=self._timestep,
        )

    def flush(self, *, to_disk: bool = False) -> None:
        """Write the points still in memory to the journal file; `to_disk` waits until they are on the disk."""
        if self._journal is not None:
            self._journal.flush(to_disk=to_disk)

    def close(self) -> None:
        """Write the points still in memory and close the journal."""
        if self._journal is not None:
            self._journal.close()

    def get_state(self, *, flush: bool = True) -> dict[str, Any]:
        """Everything but the points, as plain JSON data; the points so far are flushed to the journal on disk.

        `flush=False` skips the slow flush, for a caller that may discard the state; it must flush before saving it.
        """
        if flush:
            self.flush(to_disk=True)
        saved = _SavedCollector(
            metadata=self.metadata,
            timestep=self._timestep,
            num_points=len(self._points),
            num_episodes=self.num_episodes,
            return_mean=self._returns.mean,
            return_squares=self._returns.squares,
            return_min=self._returns.smallest,
            return_max=self._returns.largest,
            total_length=self._total_length,
            recent_returns=tuple(self._recent_returns),
            recent_lengths=tuple(self._recent_lengths),
            loss=self._loss,
            num_racer_points=len(self._racer_points),
        )
        return dict(to_plain(saved))

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Return to the state of an earlier `get_state` of this run; later points are dropped, in the journal too."""
        saved = build_record(_SavedCollector, state, "metrics state")
        if saved.metadata != self.metadata:
            raise ModelError(f"metrics state: belongs to another run, {saved.metadata}; this is {self.metadata}.")
        self._restore(saved)
        if self._journal is not None:
            self._journal.close()
            self._continue_journal(self._journal.path, saved)

    def _restore(self, saved: _SavedCollector) -> None:
        self._timestep = saved.timestep
        self._due = self._next_due()
        self._returns = saved.returns()
        self._total_length = saved.total_length
        self._recent_returns = deque(map(_nan_if_none, saved.recent_returns), maxlen=RECENT_EPISODES)
        self._recent_lengths = deque(saved.recent_lengths, maxlen=RECENT_EPISODES)
        self._recent_means = None if self._recent_returns else (None, None)
        self._loss = saved.loss
        self._points = self._points[: saved.num_points]
        self._racer_points = self._racer_points[: saved.num_racer_points]

    def _continue_journal(self, journal: Path, saved: _SavedCollector) -> None:
        found = read_journal(journal, JournalEnd(saved.timestep, saved.num_points, saved.num_racer_points))
        self._points, self._racer_points = found.points, found.racer_points
        num_found, num_saved = len(found.points) + len(found.racer_points), saved.num_points + saved.num_racer_points
        if num_found != num_saved:
            _log.warning(
                f"{journal}: holds {num_found} of the {num_saved} points up to step {self._timestep}; the "
                "series continues with a gap."
            )
        self._journal = Journal(journal, found.num_bytes)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value
