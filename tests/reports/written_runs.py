"""Synthetic runs with known answers: records in memory, and run folders as training writes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from hotlap.config import build, snake_case
from hotlap.reports.curves import Curve
from hotlap.reports.run_record import EvaluationFigures, RunRecord
from hotlap.runs.json_documents import encode, utc_text
from hotlap.runs.metrics_document import Aggregates, MetricPoint, MetricsMetadata, TrainingMetrics
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.training.results import (
    ExperimentResults,
    FinalMetrics,
    ModelSummary,
    RunMetadata,
    provenance,
)

RACER, LUNAR = "hotlap/Racer-v0", "LunarLander-v3"
START_S = 1_700_000_000.0
Logged = Mapping[str, Sequence[tuple[int, float]]]  # key to (step, value)


def curve(*points: tuple[int, float]) -> Curve:
    """A curve of (step, value), at ten steps per second."""
    steps = np.array([step for step, _ in points], np.int64)
    return Curve(steps, np.array([value for _, value in points]), steps / 10.0)


def record(seed: int = 1, **changes: Any) -> RunRecord:
    """A finished run of 4,000 steps on the racer; `changes` replace fields."""
    given: dict[str, Any] = {
        "name": f"run{seed}",
        "folder": Path("runs") / f"run{seed}",
        "algorithm": "ppo",
        "environment": RACER,
        "track": "track-01",
        "seed": seed,
        "settings": {"ppo.gamma": 0.99, "seed": seed},
        "requested_steps": 4000,
        "step": 4000,
        "is_finished": True,
        "training_s": 100.0 + seed,
        "curves": RACER_CURVES,
        "final": EvaluationFigures(4000, 1.5, 0.1, 500.0, 1.0, 0.9, 31.0 + seed, 0.1),
    }
    return RunRecord(**{**given, **changes})


def lander(seed: int = 1, **changes: Any) -> RunRecord:
    """A finished run on LunarLander that reached 200 at step 3,000."""
    given: dict[str, Any] = {
        "environment": LUNAR,
        "track": None,
        "reward_threshold": 200.0,
        "curves": LANDER_CURVES,
        "final": EvaluationFigures(4000, 230.0 + seed, 20.0, 300.0),
    }
    return record(seed, **{**given, **changes})


_METRICS = {
    "metrics/reward": curve((100, -1.0), (2000, 0.5), (4000, 1.4)),
    "metrics/episode_length": curve((100, 50.0), (2000, 300.0), (4000, 500.0)),
    "metrics/loss": curve((100, 9.0), (2000, 0.5), (4000, 0.1)),
    "metrics/episode": curve((100, 1.0), (2000, 30.0), (4000, 70.0)),
}
RACER_CURVES = _METRICS | {
    "racer/mean_lap_time_sec": curve((1000, 50.0), (2000, 40.0), (4000, 34.0)),
    "racer/best_lap_time_sec": curve((1000, 48.0), (2000, 38.0), (4000, 33.0)),
    "racer/completion_rate": curve((500, 0.0), (1000, 0.2), (2000, 0.5), (4000, 0.8)),
    "reward/progress": curve((500, 5e-4), (4000, 2e-3)),
    "reward/wall": curve((500, -5e-4), (4000, -1e-5)),
    "reward/speed": curve((500, 0.0), (4000, 0.0)),
    "eval/mean_reward": curve((2000, 0.9), (4000, 1.6)),
    "eval/completion_rate": curve((2000, 0.5), (4000, 1.0)),
    "eval/clean_lap_rate": curve((2000, 0.8), (4000, 0.9)),
    "eval/median_lap_time_sec": curve((2000, 37.0), (4000, 32.0)),
    "eval/gap_to_optimal": curve((2000, 0.31), (4000, 0.13)),
}
LANDER_CURVES = _METRICS | {
    "eval/mean_reward": curve((1000, -150.0), (2000, 40.0), (3000, 215.0), (4000, 190.0)),
    "eval/mean_ep_length": curve((1000, 90.0), (2000, 800.0), (3000, 400.0), (4000, 310.0)),
}


def write_events(path: Path, logged: Logged, start_s: float = START_S) -> None:
    """An event file as a run writes it, at ten steps per second; all values of a step are in one record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    by_step: dict[int, dict[str, float]] = {}
    for key, points in logged.items():
        for step, value in points:
            by_step.setdefault(step, {})[key] = value
    with path.open("wb") as file:
        writer = RecordWriter(file)
        writer.write(Event(wall_time=start_s, file_version="brain.Event:2").SerializeToString())
        for step in sorted(by_step):
            values = [Summary.Value(tag=key, simple_value=value) for key, value in by_step[step].items()]
            event = Event(wall_time=start_s + step / 10.0, step=step, summary=Summary(value=values))
            writer.write(event.SerializeToString())


def write_run(
    path: Path,
    *,
    env: str = RACER,
    seed: int = 1,
    is_finished: bool = True,
    logged: Logged | None = None,
    evaluation: Mapping[str, Any] | None = None,
    **settings: Any,
) -> RunFolder:
    """The folder of a run of 4,000 steps with a metric point every 100; stopped halfway unless finished."""
    path.mkdir(parents=True)
    data = {"algo": "ppo", "env": env, "seed": seed, "steps": 4000, **settings}
    config = build(RunConfig, data, "test", snake_case)
    folder = RunFolder(path, config.experiment_id)
    folder.write_config(config)
    until = 4000 if is_finished else 2000
    points = [
        MetricPoint(step, step // 50, step / 1000.0, 200.0, 5.0 / step, utc_text(START_S + step / 10.0))
        for step in range(100, until + 1, 100)
    ]
    metadata = MetricsMetadata(config.experiment_id, config.algo, env, seed, 100)
    document = TrainingMetrics(metadata, tuple(points), Aggregates(2.0, 1.0, 0.1, 4.0, 200.0, until))
    if is_finished:
        document.save(folder.metrics)
        _results(config, folder, evaluation).save(folder.results)
    folder.journal.write_bytes(b"".join(encode(point) + b"\n" for point in points))
    if logged is not None:
        kept = {key: [point for point in points if point[0] <= until] for key, points in logged.items()}
        write_events(folder.tensorboard / "events.out.tfevents.1700000000.test.1.1", kept)
    return folder


def _results(config: RunConfig, folder: RunFolder, evaluation: Mapping[str, Any] | None) -> ExperimentResults:
    times = (utc_text(START_S), utc_text(START_S + 400.0))
    return ExperimentResults(
        RunMetadata(config.experiment_id, config.algo, config.env, config.seed, *times, 4000),
        ModelSummary("MlpPolicy", folder.model.name, 0, ()),
        FinalMetrics(240.0, 20.0, 300.0, 80, 123.0, None),
        {},
        {},
        provenance("c", "w"),
        evaluation,
    )


def points_of(curves: Mapping[str, Curve]) -> dict[str, list[tuple[int, float]]]:
    """The points that training would have logged to TensorBoard."""
    return {
        key: list(zip(found.step.tolist(), found.value.tolist(), strict=True))
        for key, found in curves.items()
        if not key.startswith("metrics/")
    }
