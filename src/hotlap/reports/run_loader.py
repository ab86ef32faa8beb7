"""Reads a run's folder into a `RunRecord`."""

from pathlib import Path

from hotlap.config import flatten_tables
from hotlap.envs.gym_registry import reward_threshold
from hotlap.errors import ConfigError
from hotlap.reports.curves import Curve, make_curve, read_events
from hotlap.reports.run_record import EvaluationFigures, RunRecord
from hotlap.runs.metrics_document import MetricPoint, TrainingMetrics
from hotlap.runs.metrics_journal import read_journal
from hotlap.runs.run_config import in_process
from hotlap.runs.run_folder import CONFIG_NAME, EXPERIMENTS, RunFolder, is_there, open_run
from hotlap.training.results import ExperimentResults


def is_run(name: str) -> bool:
    """Whether a name or path is a run's; otherwise it may be a driver or a model file."""
    return any(is_there(folder / CONFIG_NAME) for folder in (Path(name), EXPERIMENTS / name))


def read_run(run: str) -> RunRecord:
    """The run with this name or folder, finished or not; raises a HotlapError if there is none."""
    folder, config = open_run(run)
    results = ExperimentResults.load(folder.results) if folder.is_finished else None
    points = _read_points(folder)
    local = in_process(config)
    curves = _metric_curves(points) | read_events(folder.tensorboard)
    steps = [int(curve.step[-1]) for curve in curves.values() if len(curve)]
    elapsed = [float(curve.elapsed_s[-1]) for curve in curves.values() if len(curve.elapsed_s)]
    return RunRecord(
        name=folder.path.resolve().name,
        folder=folder.path,
        algorithm=config.algo,
        environment=local.env,
        track=local.racer.track if local.is_racer else None,
        seed=config.seed,
        settings=flatten_tables(config.as_plain()),
        requested_steps=config.steps,
        step=results.metadata.total_timesteps if results else max(steps, default=0),
        is_finished=results is not None,
        curves=curves,
        last_seen=points[-1].timestamp if points else None,
        num_episodes=points[-1].episode if points else None,
        training_s=results.metrics.training_time_seconds if results else max(elapsed, default=None),
        reward_threshold=None if local.is_racer else _find_reward_threshold(local.env),
        final=_final_figures(results) if results else None,
    )


def _find_reward_threshold(env_id: str) -> float | None:
    """The environment's threshold; None if it has none or is not installed."""
    try:
        return reward_threshold(env_id)
    except ConfigError:
        return None


def _read_points(folder: RunFolder) -> list[MetricPoint]:
    """The metric points: a finished run's from its document, a running one's from its journal.

    A run that is being extended has an outdated document beside its journal.
    """
    if folder.is_finished and folder.metrics.is_file():
        return list(TrainingMetrics.load(folder.metrics).time_series)
    return read_journal(folder.journal).points


def _metric_curves(points: list[MetricPoint]) -> dict[str, Curve]:
    steps = [point.timestep for point in points]
    names = ("reward", "episode_length", "loss", "episode")
    return {f"metrics/{name}": make_curve(steps, [getattr(point, name) for point in points]) for name in names}


def _final_figures(results: ExperimentResults) -> EvaluationFigures:
    metrics, laps = results.metrics, results.evaluation or {}
    return EvaluationFigures(
        step=results.metadata.total_timesteps,
        mean_return=metrics.final_reward_mean,
        return_std=metrics.final_reward_std,
        episode_length=metrics.episode_length_mean,
        completion_rate=laps.get("completion_rate"),
        clean_lap_rate=laps.get("clean_lap_rate"),
        median_lap_s=laps.get("median_lap_time_sec"),
        gap=laps.get("gap_to_optimal"),
    )
