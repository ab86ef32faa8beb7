"""A run's folder: what its files are called, and what may be written over."""

import logging
from dataclasses import dataclass
from pathlib import Path

from hotlap.drivers.model_files import EXPERIMENTS
from hotlap.errors import InputFileError, OutputFileError, TrainingError
from hotlap.training.checkpoint import CheckpointManager

from hotlap.training.run_config import RunConfig, load_config

CONFIG_NAME = "config.toml"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunFolder:
    """The files of one run."""

    path: Path
    experiment_id: str

    @property
    def config(self) -> Path:
        """The resolved configuration."""
        return self.path / CONFIG_NAME

    @property
    def model(self) -> Path:
        """The final model."""
        return self._named("model.zip")

    @property
    def best(self) -> Path:
        """The best model of the periodic evaluations."""
        return self._named("best.zip")

    @property
    def results(self) -> Path:
        """What the run came to; there once it is finished."""
        return self._named("results.json")

    @property
    def metrics(self) -> Path:
        """The series of its metrics; there once it is finished."""
        return self._named("metrics.json")

    @property
    def journal(self) -> Path:
        """The metrics' points as they come."""
        return self._named("metrics.jsonl")

    @property
    def tensorboard(self) -> Path:
        """Where TensorBoard's event files are."""
        return self.path / "tensorboard"

    def _named(self, ending: str) -> Path:
        return self.path / f"{self.experiment_id}_{ending}"

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end."""
        return self.results.is_file()

    def write_config(self, config: RunConfig) -> None:
        """Keep the resolved configuration."""
        self.config.write_text(config.to_toml(), encoding="utf-8")


def create_run(config: RunConfig, name: str | None, overwrite: bool) -> RunFolder:
    """A folder for a new run; one that holds a run already is refused, or emptied of it."""
    path = folder_of(name or config.experiment_id)
    folder = RunFolder(path, config.experiment_id)
    if (path / CONFIG_NAME).exists() or (path.is_dir() and any(path.glob("*_model.zip"))):
        if not overwrite:
            raise TrainingError(
                f"{path}: holds a run already. Go on with it (`hotlap resume {path}`), name the new one (--run-name), "
                "or replace it (--overwrite)."
            )
        _clear(path)
    elif path.exists() and not path.is_dir():
        raise TrainingError(f"{path}: is a file; a run needs a folder. Choose another --run-name.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFileError(f"{path}: cannot be made ({error.strerror}). Choose another --run-name.") from None
    folder.write_config(config)
    return folder


def open_run(run: str) -> tuple[RunFolder, RunConfig]:
    """A run that is there, by its folder or its name, and its configuration."""
    path = Path(run) if (Path(run) / CONFIG_NAME).exists() else folder_of(run)
    if not (path / CONFIG_NAME).is_file():
        raise InputFileError(f"{run}: no run there (no {CONFIG_NAME}). Name a folder under {EXPERIMENTS}, or its path.")
    config = load_config(path / CONFIG_NAME)
    return RunFolder(path, config.experiment_id), config


def folder_of(name: str) -> Path:
    """Where a run of this name lies; a name with a slash in it is a path."""
    return Path(name) if "/" in name or "\\" in name else EXPERIMENTS / name


def _clear(path: Path) -> None:
    """Remove a run's own files and nothing else."""
    patterns = ("*_model.zip", "*_best.zip", "*_results.json", "*_metrics.json", "*_metrics.jsonl", CONFIG_NAME)
    events = path / "tensorboard"
    found = [file for pattern in patterns for file in path.glob(pattern)]
    found += [path / name for name in CheckpointManager(path).names()]
    found += list(events.glob("events.out.tfevents.*")) if events.is_dir() else []
    found += list(path.glob("*.partial"))
    for file in found:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise OutputFileError(f"{file}: cannot be removed ({error.strerror}).") from None
