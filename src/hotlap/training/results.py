"""What a finished run amounts to: the document with its figures, settings and everything they depend on."""

import math
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hotlap._version import __version__
from hotlap.sim.version import PHYSICS_VERSION
from hotlap.training.run_files.json_documents import (
    build_record,
    check_utc,
    open_section,
    plain,
    read_document,
    write_document,
)

TITLE = "experiment_results"
# The libraries that decide what a run computes.
LIBRARIES = ("numpy", "numba", "gymnasium", "stable-baselines3", "torch")


@dataclass(frozen=True)
class RunMetadata:
    """Which run it was, and when; times are ISO 8601 in UTC."""

    experiment_id: str
    algorithm: str
    environment: str
    seed: int
    start_time: str
    end_time: str
    total_timesteps: int

    def __post_init__(self) -> None:
        check_utc("start_time", self.start_time)
        check_utc("end_time", self.end_time)


@dataclass(frozen=True)
class ModelSummary:
    """What the run left behind: file names within its folder."""

    policy: str
    model_file: str
    checkpoint_interval: int
    checkpoints: tuple[str, ...]


@dataclass(frozen=True)
class FinalMetrics:
    """How good the final model is, over deterministic episodes, and what it took; None where there is no such figure.

    `total_episodes` counts the episodes of the training.
    """

    final_reward_mean: float | None
    final_reward_std: float | None
    episode_length_mean: float | None
    total_episodes: int
    training_time_seconds: float
    converged: bool | None


@dataclass(frozen=True)
class Provenance:
    """What the figures depend on besides the settings: versions, and digests of the settings and of the weights."""

    package_version: str
    physics_version: str
    libraries: Mapping[str, str | None]
    config_digest: str
    weights_digest: str


@dataclass(frozen=True)
class ExperimentResults:
    """The document `{algo}_seed{seed}_results.json`.

    Only the racer's has an `evaluation`: of its best model where one was kept, as `driver` in it says.
    """

    metadata: RunMetadata
    model: ModelSummary
    metrics: FinalMetrics
    hyperparameters: Mapping[str, Any]
    environment: Mapping[str, Any]
    provenance: Provenance
    evaluation: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        content = plain(self, TITLE)
        if self.evaluation is None:
            del content["evaluation"]
        return {TITLE: content}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], where: str = "results") -> "ExperimentResults":
        """What `to_dict` gave; anything else is refused."""
        return build_record(cls, open_section(document, TITLE, where), where)

    def save(self, path: Path | str) -> None:
        """Write the document, whole or not at all."""
        write_document(Path(path), self.to_dict(), indent=2)

    @classmethod
    def load(cls, path: Path | str) -> "ExperimentResults":
        """Read the document."""
        return cls.from_dict(read_document(Path(path)), str(path))


def is_converged(mean: float | None, threshold: float | None) -> bool | None:
    """Whether a mean return is at or over the environment's reward threshold; None where either is missing."""
    if mean is None or threshold is None:
        return None
    return math.isfinite(mean) and mean >= threshold


def provenance(config_digest: str, weights_digest: str) -> Provenance:
    """The versions of this installation, with the digests of a run's settings and weights."""
    libraries = {"python": platform.python_version(), **{name: _version(name) for name in LIBRARIES}}
    return Provenance(__version__, PHYSICS_VERSION, libraries, config_digest, weights_digest)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
