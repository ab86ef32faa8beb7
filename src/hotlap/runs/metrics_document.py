"""The metrics document of a training run: series of points, and aggregates over all episodes."""

from typing import Annotated, ClassVar

from msgspec import Meta

from hotlap.runs.json_documents import Document, Record, UtcTime


class MetricsMetadata(Record, frozen=True):
    """Which run the metrics are of; a point is recorded every `recording_interval` steps."""

    experiment_id: str
    algorithm: str
    environment: str
    seed: int
    recording_interval: Annotated[int, Meta(ge=1)]


class MetricPoint(Record, frozen=True):
    """The metrics at one step; `reward` and `episode_length` are means over the last 100 episodes, None before any.

    `episode` counts the finished episodes; `loss` is that of the last update.
    """

    timestep: int
    episode: int
    reward: float | None
    episode_length: float | None
    loss: float | None
    timestamp: UtcTime


class RacerPoint(Record, frozen=True):
    """What was logged under `racer/*` at one step, as TensorBoard holds it; None for a key that was not logged."""

    timestep: int
    mean_lap_time_sec: float | None
    best_lap_time_sec: float | None
    completion_rate: float | None
    episodes_this_rollout: int | None
    gap_to_optimal: float | None


class Aggregates(Record, frozen=True):
    """Statistics over all finished episodes, None before any; the standard deviation is the population's."""

    reward_mean: float | None
    reward_std: float | None
    reward_min: float | None
    reward_max: float | None
    episode_length_mean: float | None
    total_timesteps: int


class TrainingMetrics(Document, frozen=True, omit_defaults=True):
    """The document `{algo}_seed{seed}_metrics.json`."""

    title: ClassVar[str] = "training_metrics"

    metadata: MetricsMetadata
    time_series: tuple[MetricPoint, ...]
    aggregated: Aggregates
    racer_series: tuple[RacerPoint, ...] = ()  # left out where nothing was logged under `racer/*`
