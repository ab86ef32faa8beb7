"""Reads a run's folder into the plain record that reports are made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from hotlap.envs.registration import REMOTE_RACER_ID
from hotlap.reports.curves import Curve, make_curve, read_events
from hotlap.reports.run_record import Figures, RunRecord

if TYPE_CHECKING:
    from hotlap.training.results import ExperimentResults
    from hotlap.training.run_config import RunConfig
    from hotlap.training.run_files.metrics_document import MetricPoint
    from hotlap.training.run_files.run_folder import RunFolder


def read_run(run: str) -> RunRecord:
    """The run of this name or in this folder, finished or not; what is none is refused."""
    from hotlap.training.results import ExperimentResults
    from hotlap.training.run_files.run_folder import open_run

    folder, config = open_run(run)
    results = ExperimentResults.load(folder.results) if folder.is_finished else None
    points = _read_points(folder)
    local = _in_process(config)
    curves = _curves_of(points) | read_events(folder.tensorboard)
    steps = [int(curve.step[-1]) for curve in curves.values() if len(curve)]
    elapsed = [float(curve.elapsed_s[-1]) for curve in curves.values() if len(curve.elapsed_s)]
    return RunRecord(
        name=folder.path.resolve().name,
        folder=folder.path,
        algorithm=config.algo,
        environment=local.env,
        track=local.racer.track if local.is_racer else None,
        seed=config.seed,
        settings=_flatten(config.as_plain()),
        steps_asked=config.steps,
        step=results.metadata.total_timesteps if results else max(steps, default=0),
        is_finished=results is not None,
        curves=curves,
        last_seen=points[-1].timestamp if points else None,
        num_episodes=points[-1].episode if points else None,
        training_s=results.metrics.training_time_seconds if results else max(elapsed, default=None),
        reward_threshold=None if local.is_racer else _reward_threshold(local.env),
        final=_final_figures(results) if results else None,
    )


def _in_process(config: "RunConfig") -> "RunConfig":
    """The run with its cars in this process; only cars behind a bridge make that worth loading the learning library."""
    if config.env != REMOTE_RACER_ID:
        return config
    from hotlap.training.vec_envs.factory import in_process

    return in_process(config)


def _reward_threshold(env_id: str) -> float | None:
    """From which mean return the environment counts as solved; None also where it is not installed here."""
    try:
        threshold = gym.spec(env_id).reward_threshold
    except gym.error.Error:
        return None
    return None if threshold is None else float(threshold)


def _read_points(folder: "RunFolder") -> "list[MetricPoint]":
    """The document's points once there is one; a run that goes on has a journal, and perhaps an older document."""
    from hotlap.training.metrics_collector import read_points
    from hotlap.training.run_files.metrics_document import TrainingMetrics

    if folder.is_finished and folder.metrics.is_file():
        return list(TrainingMetrics.load(folder.metrics).time_series)
    return read_points(folder.journal)[0]


def _curves_of(points: "list[MetricPoint]") -> dict[str, Curve]:
    steps = [point.timestep for point in points]
    return {
        "metrics/reward": make_curve(steps, [point.reward for point in points]),
        "metrics/episode_length": make_curve(steps, [point.episode_length for point in points]),
        "metrics/loss": make_curve(steps, [point.loss for point in points]),
        "metrics/episode": make_curve(steps, [float(point.episode) for point in points]),
    }


def _final_figures(results: "ExperimentResults") -> Figures:
    metrics, laps = results.metrics, results.evaluation or {}
    return Figures(
        step=results.metadata.total_timesteps,
        mean_return=metrics.final_reward_mean,
        return_std=metrics.final_reward_std,
        episode_length=metrics.episode_length_mean,
        completion_rate=laps.get("completion_rate"),
        clean_lap_rate=laps.get("clean_lap_rate"),
        median_lap_s=laps.get("median_lap_time_sec"),
        gap=laps.get("gap_to_optimal"),
    )


def _flatten(settings: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables as one: `{"ppo": {"gamma": 0.99}}` becomes `{"ppo.gamma": 0.99}`."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flatten(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return flat


def is_run(name: str) -> bool:
    """Whether a name or a path is that of a run rather than of a driver or a model."""
    from hotlap.models.model_file import EXPERIMENTS, is_there
    from hotlap.training.run_files.run_folder import CONFIG_NAME

    return any(is_there(folder / CONFIG_NAME) for folder in (Path(name), EXPERIMENTS / name))
