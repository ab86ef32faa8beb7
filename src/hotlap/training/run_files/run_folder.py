"""A run's folder: what its files are called, and what may be written over."""

import re
from dataclasses import dataclass
from pathlib import Path

from hotlap.atomic_files import write_atomically
from hotlap.errors import InputFileError, OutputFileError, TrainingError
from hotlap.models.model_file import EXPERIMENTS, is_there
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.run_config import RunConfig, load_config

CONFIG_NAME = "config.toml"
TENSORBOARD_NAME = "tensorboard"
REPORT_NAME = "report"
# What a run leaves beside its checkpoints: the files named after it, the configuration, and drafts of a killed process.
_OWN = re.compile(
    r"(?:ppo|sac|a2c)_seed\d+_(?:model\.zip|best\.zip|results\.json|metrics\.jsonl?)"
    rf"|{re.escape(CONFIG_NAME)}"
    rf"|\.?(?:checkpoint_|{re.escape(CONFIG_NAME)}|(?:ppo|sac|a2c)_seed)[^/]*\.partial",
    re.ASCII,
)


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
    def chosen(self) -> Path:
        """The model that the run is known by: the best one, or where none was kept the final one."""
        return self.best if self.best.exists() else self.model

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
        return self.path / TENSORBOARD_NAME

    def _named(self, ending: str) -> Path:
        return self.path / f"{self.experiment_id}_{ending}"

    @property
    def is_finished(self) -> bool:
        """Whether the run came to its end."""
        return self.results.is_file()

    def write_config(self, config: RunConfig) -> None:
        """Keep the resolved configuration, whole or not at all."""
        write_atomically(self.config, config.to_toml().encode())


def create_run(config: RunConfig, name: str | None, overwrite: bool) -> RunFolder:
    """A folder for a new run; one that holds a run already is refused, or emptied of it."""
    path = folder_of(name or config.experiment_id)
    try:
        if path.exists() and not path.is_dir():
            raise TrainingError(f"{path}: is a file; a run needs a folder. Choose another --run-name.")
        left = _files_of(path)
        if left and not overwrite:
            raise TrainingError(
                f"{path}: holds a run already. Go on with it (`hotlap resume {path}`), name the new one (--run-name), "
                "or replace it (--overwrite)."
            )
        for file in left:
            file.unlink(missing_ok=True)
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFileError(
            f"{path!s:.200}: cannot hold a run ({error.strerror}). Choose another --run-name."
        ) from None
    folder = RunFolder(path, config.experiment_id)
    folder.write_config(config)
    return folder


def open_run(run: str) -> tuple[RunFolder, RunConfig]:
    """A run that is there, by its folder or its name, and its configuration."""
    path = Path(run) if is_there(Path(run) / CONFIG_NAME) else folder_of(run)
    if not is_there(path / CONFIG_NAME):
        raise InputFileError(
            f"{run:.200}: no run there (no {CONFIG_NAME}). Name a folder under {EXPERIMENTS}, or its path."
        )
    config = load_config(path / CONFIG_NAME)
    return RunFolder(path, config.experiment_id), config


def folder_of(name: str) -> Path:
    """Where a run of this name lies; a name with a slash in it is a path."""
    if "/" in name or "\\" in name:
        return Path(name)
    if name in ("", ".", ".."):
        raise TrainingError(f"{name!r} is no name for a run. Use letters and digits, or a path with a slash in it.")
    return EXPERIMENTS / name


def _files_of(path: Path) -> list[Path]:
    """A run's own files in a folder and nothing else."""
    if not path.is_dir():
        return []
    found = [file for file in sorted(path.iterdir()) if _OWN.fullmatch(file.name)]
    found += [path / name for name in CheckpointManager(path).names()]
    found += [file for file in sorted((path / REPORT_NAME).glob("*")) if file.suffix in (".html", ".png")]
    return found + sorted((path / TENSORBOARD_NAME).glob("events.out.tfevents.*"))
