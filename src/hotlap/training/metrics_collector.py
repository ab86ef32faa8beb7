"""Collects a run's training metrics step by step, cheaply, and journals them so that a crash loses next to nothing."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from hotlap.errors import ConfigError, ModelError
from hotlap.runs.journal import Journal
from hotlap.runs.json_documents import build_record, encode, to_plain, utc_text
from hotlap.runs.metrics_document import Aggregates, MetricPoint, MetricsMetadata, RacerPoint, TrainingMetrics
from hotlap.runs.metrics_journal import JournalEnd, read_journal

__all__ = ["MetricsCollector", "TrainingMetrics"]

# As many episodes as stable-baselines3 averages for its `rollout/ep_rew_mean`.
RECENT_EPISODES = 100

_log = logging.getLogger(__name__)
_RACER_PREFIX = "racer/"
_RACER_KEYS = tuple(field.name for field in msgspec.structs.fields(RacerPoint) if field.name != "timestep")

# What None in a checkpoint stands for.
_WHERE_NONE = {"return_mean": math.nan, "return_squares": math.nan, "return_min": math.inf, "return_max": -math.inf}

Clock = Callable[[], float]


class _Counts(msgspec.Struct, forbid_unknown_fields=True):
    """What was counted so far, as a checkpoint holds it: with None for NaN and for infinity.

    Mean and squares are updated by Welford's algorithm, which keeps its precision on long runs.
    """

    metadata: MetricsMetadata
    timestep: int = 0
    num_points: int = 0
    num_episodes: int = 0
    return_mean: float = 0.0
    return_squares: float = 0.0  # sum of squared distances from the mean
    return_min: float = math.inf
    return_max: float = -math.inf
    total_length: int = 0
    recent_returns: list[float | None] = []  # of the last episodes; None where one is not finite
    recent_lengths: list[int] = []
    loss: float | None = None
    num_racer_points: int = 0

    def __post_init__(self) -> None:
        if len(self.recent_returns) != len(self.recent_lengths):
            raise ValueError("recent_returns and recent_lengths must have the same length")

    @classmethod
    def load(cls, state: Mapping[str, Any]) -> "_Counts":
        """The counts in the plain data of a checkpoint."""
        if missing := set(cls.__struct_fields__) - {*state, "num_racer_points"}:
            raise ModelError(f"metrics state: {min(missing)} is missing. Is it damaged, or of another version?")
        filled = {name: _WHERE_NONE.get(name) if value is None else value for name, value in state.items()}
        return build_record(cls, filled, "metrics state")

    def add_episode(self, episode_return: float, length: int) -> None:
        """Add a finished episode."""
        self.num_episodes += 1
        distance = episode_return - self.return_mean
        self.return_mean += distance / self.num_episodes
        self.return_squares += distance * (episode_return - self.return_mean)
        self.return_min = episode_return if episode_return < self.return_min else self.return_min
        self.return_max = episode_return if episode_return > self.return_max else self.return_max
        self.total_length += length
        self.recent_returns = [*self.recent_returns[1 - RECENT_EPISODES :], _number(episode_return)]
        self.recent_lengths = [*self.recent_lengths[1 - RECENT_EPISODES :], length]


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
        self._counts = _Counts(self.metadata)
        self._clock = clock
        self._points: list[MetricPoint] = []
        self._racer_points: list[RacerPoint] = []
        self._due = 0
        self._journal = None if journal is None else Journal(journal)

    @classmethod
    def resume(cls, journal: Path, state: Mapping[str, Any], clock: Clock = time.time) -> "MetricsCollector":
        """Continue from `get_state`'s result and the journal of that run; the journal's later points are dropped."""
        saved = _Counts.load(state)
        collector = cls(**msgspec.structs.asdict(saved.metadata), clock=clock)
        collector._restore(saved)
        collector._continue_journal(journal)
        return collector

    @property
    def num_episodes(self) -> int:
        """Episodes finished so far."""
        return self._counts.num_episodes

    def note_episode(self, reward: float, length: int) -> None:
        """Add a finished episode: its return and length in steps; a return that is not finite makes the means None."""
        self._counts.add_episode(float(reward) if math.isfinite(reward) else math.nan, int(length))

    def note_loss(self, value: float) -> None:
        """Set the loss of the last update."""
        self._counts.loss = _number(value)

    def note_step(self, timestep: int) -> None:
        """Set the total number of steps; adds a point at the first, and whenever it passes a multiple of the interval.

        Passing several multiples at once, as with hundreds of environments, adds one point.
        """
        self._counts.timestep = timestep
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
        step, interval = self._counts.timestep, self.metadata.recording_interval
        return (step // interval + 1) * interval if step else 0

    def _make_point(self) -> MetricPoint:
        counts = self._counts
        reward = length = None
        if counts.recent_returns:
            finite = [each for each in counts.recent_returns if each is not None]
            reward = sum(finite) / len(finite) if len(finite) == len(counts.recent_returns) else None
            length = sum(counts.recent_lengths) / len(counts.recent_lengths)
        return MetricPoint(counts.timestep, counts.num_episodes, reward, length, counts.loss, utc_text(self._clock()))

    def _write(self, point: MetricPoint | RacerPoint) -> None:
        if self._journal is not None:
            self._journal.add(encode(point))

    def metrics(self) -> TrainingMetrics:
        """The document so far, with a point at the last step."""
        is_last_missing = bool(self._points) and self._points[-1].timestep < self._counts.timestep
        points = (*self._points, self._make_point()) if is_last_missing else tuple(self._points)
        return TrainingMetrics(self.metadata, points, self._aggregates(), tuple(self._racer_points))

    def _aggregates(self) -> Aggregates:
        counts = self._counts
        if not counts.num_episodes:
            return Aggregates(None, None, None, None, None, counts.timestep)
        return Aggregates(
            reward_mean=_number(counts.return_mean),
            reward_std=_number(math.sqrt(counts.return_squares / counts.num_episodes)),
            reward_min=_number(counts.return_min),
            reward_max=_number(counts.return_max),
            episode_length_mean=counts.total_length / counts.num_episodes,
            total_timesteps=counts.timestep,
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
        self._counts.num_points, self._counts.num_racer_points = len(self._points), len(self._racer_points)
        return dict(to_plain(self._counts))

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Return to the state of an earlier `get_state` of this run; later points are dropped, in the journal too."""
        saved = _Counts.load(state)
        if saved.metadata != self.metadata:
            raise ModelError(f"metrics state: belongs to another run, {saved.metadata}; this is {self.metadata}.")
        self._restore(saved)
        if self._journal is not None:
            self._journal.close()
            self._continue_journal(self._journal.path)

    def _restore(self, saved: _Counts) -> None:
        self._counts = saved
        self._due = self._next_due()
        self._points = self._points[: saved.num_points]
        self._racer_points = self._racer_points[: saved.num_racer_points]

    def _continue_journal(self, journal: Path) -> None:
        saved = self._counts
        found = read_journal(journal, JournalEnd(saved.timestep, saved.num_points, saved.num_racer_points))
        self._points, self._racer_points = found.points, found.racer_points
        num_found, num_saved = len(found.points) + len(found.racer_points), saved.num_points + saved.num_racer_points
        if num_found != num_saved:
            _log.warning(
                f"{journal}: holds {num_found} of the {num_saved} points up to step {saved.timestep}; the "
                "series continues with a gap."
            )
        self._journal = Journal(journal, found.num_bytes)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
