"""The document of how a training run went: a series of points, and figures over the whole."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from hotlap.errors import ConfigError
from hotlap.training.run_files.json_documents import (
    build_record,
    check_utc,
    open_section,
    plain,
    read_document,
    write_document,
)

TITLE = "training_metrics"


@dataclass(frozen=True)
class MetricsMetadata:
    """Which run the metrics are of; a point is taken each `recording_interval` steps."""

    experiment_id: str
    algorithm: str
    environment: str
    seed: int
    recording_interval: int

    def __post_init__(self) -> None:
        if self.recording_interval < 1:
            raise ConfigError(f"recording_interval must be at least 1 step, got {self.recording_interval}.")


@dataclass(frozen=True)
class MetricPoint:
    """Where a run stood; `reward` and `episode_length` are means over the last 100 finished episodes, None before any.

    `episode` counts the finished episodes; `loss` is the last known one.
    """

    timestep: int
    episode: int
    reward: float | None
    episode_length: float | None
    loss: float | None
    timestamp: str

    def __post_init__(self) -> None:
        check_utc("timestamp", self.timestamp)


_POINT_TYPES = {"timestep": (int,), "episode": (int,), "timestamp": (str,)}
_FIGURE_TYPES = (float, type(None))
_POINT_CHECKS = tuple((field.name, _POINT_TYPES.get(field.name, _FIGURE_TYPES)) for field in fields(MetricPoint))


def read_point(data: Any, where: str) -> MetricPoint:
    """A point from plain data.

    A series has many thousands, so what looks as we write it takes a short way; the long one says what is wrong.
    """
    if (
        isinstance(data, dict)
        and len(data) == len(_POINT_CHECKS)
        and all(_fits(data, *check) for check in _POINT_CHECKS)
    ):
        with suppress(ConfigError):
            return MetricPoint(**data)
    return build_record(MetricPoint, data, where)


def _fits(data: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> bool:
    value = data.get(name, data)
    return type(value) in kinds and (type(value) is not float or math.isfinite(value))


@dataclass(frozen=True)
class Aggregates:
    """Figures over all finished episodes, None where there were none; the deviation is that of the whole population."""

    reward_mean: float | None
    reward_std: float | None
    reward_min: float | None
    reward_max: float | None
    episode_length_mean: float | None
    total_timesteps: int


@dataclass(frozen=True)
class TrainingMetrics:
    """The document `{algo}_seed{seed}_metrics.json`."""

    metadata: MetricsMetadata
    time_series: tuple[MetricPoint, ...]
    aggregated: Aggregates

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {TITLE: plain(self, TITLE)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "metrics") -> "TrainingMetrics":
        """What `to_dict` gave; anything else is refused."""
        content = dict(open_section(document, TITLE, where))
        points = content.get("time_series")
        if isinstance(points, list):
            content["time_series"] = []
            frame = build_record(cls, content, where)
            places = (f"{where}: time_series[{place}]" for place in range(len(points)))
            return replace(frame, time_series=tuple(map(read_point, points, places)))
        return build_record(cls, content, where)

    def save(self, path: Path | str) -> None:
        """Write the document, whole or not at all."""
        write_document(Path(path), self.to_dict())

    @classmethod
    def load(cls, path: Path | str) -> "TrainingMetrics":
        """Read the document."""
        return cls.from_dict(read_document(Path(path)), str(path))
