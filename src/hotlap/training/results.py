"""The results document of a finished run: final metrics, settings and everything they depend on."""

import math
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, ClassVar

from hotlap._version import __version__
from hotlap.config import as_plain
from hotlap.envs.gym_registry import reward_threshold
from hotlap.evaluation.returns import Returns
from hotlap.models.model_file import ModelCard, ModelFile
from hotlap.runs.json_documents import Document, Record, UtcTime, utc_text
from hotlap.runs.run_config import RunConfig
from hotlap.runs.run_folder import RunFolder
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.checkpoint import CheckpointManager

if TYPE_CHECKING:
    from hotlap.evaluation.evaluate import Evaluation

# The libraries that decide what a run computes.
LIBRARIES = ("numpy", "numba", "gymnasium", "stable-baselines3", "torch")


class RunMetadata(Record, frozen=True):
    """Which run it was, and when."""

    experiment_id: str
    algorithm: str
    environment: str
    seed: int
    start_time: UtcTime
    end_time: UtcTime
    total_timesteps: int


class ModelSummary(Record, frozen=True):
    """The final model and the checkpoints: file names within the run's folder."""

    policy: str
    model_file: str
    checkpoint_interval: int
    checkpoints: tuple[str, ...]


class FinalMetrics(Record, frozen=True):
    """Returns of the final model over deterministic episodes, and the cost of training; None where not available.

    `total_episodes` counts the training episodes.
    """

    final_reward_mean: float | None
    final_reward_std: float | None
    episode_length_mean: float | None
    total_episodes: int
    training_time_seconds: float
    converged: bool | None


class Provenance(Record, frozen=True):
    """What the metrics depend on besides the settings: versions, and digests of the settings and the weights."""

    package_version: str
    physics_version: str
    libraries: dict[str, str | None]
    config_digest: str
    weights_digest: str
    track_digest: str | None = None  # of the racer's road


class ExperimentResults(Document, frozen=True, omit_defaults=True):
    """The document `{algo}_seed{seed}_results.json`.

    Only racer runs have an `evaluation`; its key `driver` names the model evaluated, the best one if there is one.
    `best` is there if there is a best model: its file, its step, and either the figures of `metrics` or, for the racer,
    those of `evaluate`. All figures are over episodes not used for selection.
    """

    title: ClassVar[str] = "experiment_results"
    indent: ClassVar[int | None] = 2

    metadata: RunMetadata
    model: ModelSummary
    metrics: FinalMetrics
    hyperparameters: dict[str, Any]
    environment: dict[str, Any]
    provenance: Provenance
    evaluation: dict[str, Any] | None = None
    best: dict[str, Any] | None = None


@dataclass(frozen=True)
class FinishedRun:
    """What a run took in all, over all resumes, and what its final evaluation found; times in seconds since 1970."""

    started_s: float
    ended_s: float
    trained_s: float
    num_episodes: int
    returns: Returns  # of the final model
    laps: "Evaluation | None" = None  # of the chosen model
    best: dict[str, Any] | None = None  # the figures of the best model


def best_model(model: ModelFile, config: RunConfig, found: "Evaluation | Returns") -> dict[str, Any]:
    """The entry `best` of the document."""
    about = {"model_file": model.path.name, "step": model.card.step}
    if not isinstance(found, Returns):
        return {**about, **found.as_dict()}
    return {**about, **_return_figures(config, found)}


def _return_figures(config: RunConfig, returns: Returns) -> dict[str, Any]:
    """What the entries `metrics` and `best` of the document both tell about returns."""
    return {
        "final_reward_mean": returns.mean,
        "final_reward_std": returns.std,
        "episode_length_mean": returns.length_mean,
        "converged": is_converged(returns.mean, reward_threshold(config.env)),
    }


def make_results(folder: RunFolder, config: RunConfig, card: ModelCard, run: FinishedRun) -> ExperimentResults:
    """The document of a finished run; `card` is that of its final model."""
    return ExperimentResults(
        metadata=RunMetadata(
            experiment_id=config.experiment_id,
            algorithm=config.algo,
            environment=config.env,
            seed=config.seed,
            start_time=utc_text(run.started_s),
            end_time=utc_text(run.ended_s),
            total_timesteps=card.step,
        ),
        model=ModelSummary(
            policy=card.policy.kind,
            model_file=folder.model.name,
            checkpoint_interval=config.checkpoint.interval,
            checkpoints=tuple(CheckpointManager(folder.path).names()),
        ),
        metrics=FinalMetrics(
            total_episodes=run.num_episodes,
            training_time_seconds=run.trained_s,
            **_return_figures(config, run.returns),
        ),
        hyperparameters=as_plain(config.hyperparameters),
        environment=_describe_environment(config, card),
        provenance=provenance(card.config_digest, card.weights_digest, card.track_digest),
        evaluation=None if run.laps is None else run.laps.as_dict(),
        best=run.best,
    )


def _describe_environment(config: RunConfig, card: ModelCard) -> dict[str, Any]:
    settings = (
        config.as_plain()["racer"] if config.is_racer else {"env_args": config.env_args, "backend": config.backend}
    )
    observation_space, action_space = card.spaces
    return {
        "num_envs": config.num_envs,
        "observation_space": str(observation_space),
        "action_space": str(action_space),
        "normalize": as_plain(config.normalize),
        **settings,
    }


def is_converged(mean: float | None, threshold: float | None) -> bool | None:
    """Whether a mean return reaches the environment's reward threshold; None where either is missing."""
    if mean is None or threshold is None:
        return None
    return math.isfinite(mean) and mean >= threshold


def provenance(config_digest: str, weights_digest: str, track_digest: str | None = None) -> Provenance:
    """The versions of this installation, with the digests of a run's settings, weights and road."""
    libraries = {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}
    return Provenance(__version__, PHYSICS_VERSION, libraries, config_digest, weights_digest, track_digest)


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
