"""Collects a run's training metrics step by step, cheaply, and journals them so that a crash loses next to nothing."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.training.run_files.journal import Journal, read_lines
from hotlap.training.run_files.json_documents import Record, build_record, encode, to_plain, utc_text
from hotlap.training.run_files.metrics_document import Aggregates, MetricPoint, MetricsMetadata, TrainingMetrics

__all__ = ["MetricsCollector", "TrainingMetrics", "read_points"]

# As many episodes as stable-baselines3 averages for its `rollout/ep_rew_mean`.
RECENT_EPISODES = 100

_log = logging.getLogger(__name__)
_point_decoder = msgspec.json.Decoder(MetricPoint)

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
        self._timestep = 0
        self._due = recording_interval
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
        collector._continue_journal(journal, saved.num_points)
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
        """Set the total number of steps; adds a point whenever it passes a multiple of the interval.

        Passing several multiples at once, as with hundreds of environments, adds one point.
        """
        self._timestep = timestep
        if timestep >= self._due:
            self._due = self._next_due()
            self._add_point()

    def _next_due(self) -> int:
        interval = self.metadata.recording_interval
        return (self._timestep // interval + 1) * interval

    def _add_point(self) -> None:
        if self._recent_means is None:
            count = len(self._recent_returns)
            self._recent_means = (_number(sum(self._recent_returns) / count), sum(self._recent_lengths) / count)
        point = MetricPoint(self._timestep, self.num_episodes, *self._recent_means, self._loss, utc_text(self._clock()))
        self._points.append(point)
        if self._journal is not None:
            self._journal.add(encode(point))

    def metrics(self) -> TrainingMetrics:
        """The document so far."""
        return TrainingMetrics(self.metadata, tuple(self._points), self._aggregates())

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
            self._continue_journal(self._journal.path, saved.num_points)

    def _restore(self, saved: _SavedCollector) -> None:
        self._timestep = saved.timestep
        self._due = self._next_due()
        self._returns = saved.returns()
        self._total_length = saved.total_length
        self._recent_returns = deque(map(_nan_if_none, saved.recent_returns), maxlen=RECENT_EPISODES)
        self._recent_lengths = deque(saved.recent_lengths, maxlen=RECENT_EPISODES)
        self._recent_means = None if self._recent_returns else (None, None)
        self._loss = saved.loss
        self._points = [point for point in self._points if point.timestep <= saved.timestep]

    def _continue_journal(self, journal: Path, num_points: int) -> None:
        self._points, kept_bytes = read_points(journal, until_step=self._timestep)
        if len(self._points) != num_points:
            _log.warning(
                f"{journal}: holds {len(self._points)} of the {num_points} points up to step {self._timestep}; the "
                "series continues with a gap."
            )
        self._journal = Journal(journal, kept_bytes)


def read_points(journal: Path, until_step: int | None = None) -> tuple[list[MetricPoint], int]:
    """A journal's points up to a step (default: all), and their size in bytes; an incomplete last line is ignored.

    A missing journal has no points. A damaged line ends a journal that is read up to a step, and is an error otherwise.
    """
    points: list[MetricPoint] = []
    num_bytes = 0
    try:
        lines = read_lines(journal)
    except InputFileError:
        lines = []
    for number, line in enumerate(lines, 1):
        try:
            point = _point_decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if until_step is not None:
                # A power cut leaves zeros in what was written after the checkpoint; what was before is on the disk.
                _log.warning("%s:%d: is damaged. The rest of the journal is dropped.", journal, number)
                break
            raise ModelError(f"{journal}:{number}: {error}. Remove the line to continue without it.") from None
        if until_step is not None and point.timestep > until_step:
            break
        points.append(point)
        num_bytes += len(line) + 1
    return points, num_bytes


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _nan_if_none(value: float | None) -> float:
    return math.nan if value is None else value
