"""Gathers how a training run goes, step by step, at next to no cost, and keeps it safe from a crash."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotlap.errors import ConfigError, InputFileError, ModelError
from hotlap.training.run_files.journal import Journal, read_lines
from hotlap.training.run_files.json_documents import build_record, parse_json, plain, utc_text
from hotlap.training.run_files.metrics_document import (
    Aggregates,
    MetricPoint,
    MetricsMetadata,
    TrainingMetrics,
    read_point,
)

__all__ = ["MetricsCollector", "TrainingMetrics", "read_points"]

# As many episodes as stable-baselines3 takes for its `rollout/ep_rew_mean`.
RECENT_EPISODES = 100

_log = logging.getLogger(__name__)

Clock = Callable[[], float]


@dataclass
class _RunningStats:
    """Mean and spread of numbers that are not kept (Welford's way, which loses no digits on long runs)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0  # sum of squared distances from the mean
    smallest: float = math.inf
    largest: float = -math.inf

    def note(self, value: float) -> None:
        self.count += 1
        distance = value - self.mean
        self.mean += distance / self.count
        self.squares += distance * (value - self.mean)
        self.smallest = value if value < self.smallest else self.smallest
        self.largest = value if value > self.largest else self.largest

    @property
    def std(self) -> float:
        return math.sqrt(self.squares / self.count)


class MetricsCollector:
    """Gathers a run's metrics while it trains.

    Points go to the journal as they are made, one JSON object a line, so that a crash loses a second of them at most. A
    journal file that is already there is begun anew; `resume` goes on with it.
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
        self.metadata = MetricsMetadata(experiment_id, algorithm, environment, seed, recording_interval)
        self._clock = clock
        self._points: list[MetricPoint] = []
        self._timestep = 0
        self._due = recording_interval
        self._returns = _RunningStats()
        self._total_length = 0
        self._recent_returns: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._recent_lengths: deque[int] = deque(maxlen=RECENT_EPISODES)
        self._recent_means: tuple[float | None, float | None] | None = (None, None)  # None: to be worked out again
        self._loss: float | None = None
        self._journal = None if journal is None else Journal(journal)

    @classmethod
    def resume(cls, journal: Path, state: Mapping[str, Any], clock: Clock = time.time) -> "MetricsCollector":
        """Go on from `get_state`'s answer and the journal of that run, whose points past it are dropped."""
        metadata = build_record(MetricsMetadata, state.get("metadata"), "metrics state: metadata")
        collector = cls(**asdict(metadata), clock=clock)
        collector.set_state(state)
        collector._go_on_with(journal, state["num_points"])
        return collector

    @property
    def num_episodes(self) -> int:
        """Episodes finished so far."""
        return self._returns.count

    def note_episode(self, reward: float, length: int) -> None:
        """Take in a finished episode: its return and its steps; a return that is no number makes the means None."""
        number = float(reward) if math.isfinite(reward) else math.nan
        self._returns.note(number)
        self._total_length += int(length)
        self._recent_returns.append(number)
        self._recent_lengths.append(int(length))
        self._recent_means = None

    def note_loss(self, value: float) -> None:
        """Take in the loss of the last update."""
        self._loss = _number(value)

    def note_step(self, timestep: int) -> None:
        """Say how many steps are done in all; makes a point whenever that passes a multiple of the interval.

        Several multiples passed at once, as with hundreds of environments, give one point.
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
            self._journal.add(_line_of(point))

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
        """Write what the journal still holds in memory, and wait for the disk if asked to."""
        if self._journal is not None:
            self._journal.flush(to_disk=to_disk)

    def close(self) -> None:
        """Write what the journal still holds, and let it go."""
        if self._journal is not None:
            self._journal.close()

    def get_state(self, *, flush: bool = True) -> dict[str, Any]:
        """Everything but the points, as plain JSON; the points so far are then safe in the journal, on the disk.

        Without `flush` that is left to the caller, who may throw the state away: a disk takes its time.
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
        return dict(plain(saved))

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go back to where `get_state` was asked, in this run; points past it are dropped, from the journal too."""
        saved = build_record(_SavedCollector, state, "metrics state")
        if saved.metadata != self.metadata:
            raise ModelError(f"metrics state: belongs to another run, {saved.metadata}; this is {self.metadata}.")
        self._timestep = saved.timestep
        self._due = self._next_due()
        self._returns = saved.returns()
        self._total_length = saved.total_length
        self._recent_returns = deque(map(_nan_for_none, saved.recent_returns), maxlen=RECENT_EPISODES)
        self._recent_lengths = deque(saved.recent_lengths, maxlen=RECENT_EPISODES)
        self._recent_means = None if self._recent_returns else (None, None)
        self._loss = saved.loss
        self._points = [point for point in self._points if point.timestep <= saved.timestep]
        if self._journal is not None:
            self._journal.close()
            self._go_on_with(self._journal.path, saved.num_points)

    def _go_on_with(self, journal: Path, num_points: int) -> None:
        self._points, kept_bytes = read_points(journal, until_step=self._timestep)
        if len(self._points) != num_points:
            _log.warning(
                f"{journal}: holds {len(self._points)} of the {num_points} points up to step {self._timestep}; the "
                "series goes on with a gap."
            )
        self._journal = Journal(journal, kept_bytes)


@dataclass(frozen=True)
class _SavedCollector:
    """A collector's state as a checkpoint holds it."""

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
            raise ConfigError("recent_returns and recent_lengths must be equally long.")

    def returns(self) -> _RunningStats:
        stats = _RunningStats(self.num_episodes, _nan_for_none(self.return_mean), _nan_for_none(self.return_squares))
        if self.return_min is not None and self.return_max is not None:
            stats.smallest, stats.largest = self.return_min, self.return_max
        return stats


def read_points(journal: Path, until_step: int | None = None) -> tuple[list[MetricPoint], int]:
    """A journal's points up to a step (all), and how many bytes they take; a last line torn by a crash is no point.

    A journal that is not there has no points.
    """
    points: list[MetricPoint] = []
    num_bytes = 0
    try:
        lines = read_lines(journal)
    except InputFileError:
        lines = []
    for place, line in enumerate(lines, 1):
        where = f"{journal}:{place}"
        try:
            point = read_point(parse_json(line), where)
        except (ValueError, RecursionError) as error:
            if isinstance(error, ModelError):
                raise
            raise ModelError(f"{where}: not valid JSON ({error}). Take the line out to go on without it.") from None
        if until_step is not None and point.timestep > until_step:
            break
        points.append(point)
        num_bytes += len(line) + 1
    return points, num_bytes


def _line_of(point: MetricPoint) -> bytes:
    """A point as JSON, by hand: with hundreds of cars there is one a step, and `json` took half of its time."""
    reward, length, loss = (
        "null" if value is None else repr(value) for value in (point.reward, point.episode_length, point.loss)
    )
    return (
        f'{{"timestep": {point.timestep}, "episode": {point.episode}, "reward": {reward}, "episode_length": {length}, '
        f'"loss": {loss}, "timestamp": "{point.timestamp}"}}'
    ).encode("ascii")


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _nan_for_none(value: float | None) -> float:
    return math.nan if value is None else value
