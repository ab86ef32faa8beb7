"""A run's folder: the names of its files, and which of them may be overwritten."""

import re
from dataclasses import dataclass
from pathlib import Path

from hotlap.atomic_files import write_atomically
from hotlap.errors import InputFileError, OutputFileError, TrainingError
from hotlap.models.model_file import EXPERIMENTS, is_there
from hotlap.training.checkpoint import CheckpointManager
from hotlap.training.run_config import ALGORITHM_NAMES, RunConfig, load_config

CONFIG_NAME = "config.toml"
TENSORBOARD_NAME = "tensorboard"
REPORT_NAME = "report"
_EXPERIMENT = rf"(?:{'|'.join(ALGORITHM_NAMES)})_seed"
# A run's own files besides its checkpoints: those named after it, the configuration, and drafts of a killed process.
_OWN = re.compile(
    rf"{_EXPERIMENT}\d+_(?:model\.zip|best\.zip|results\.json|metrics\.jsonl?)"
    rf"|{re.escape(CONFIG_NAME)}"
    rf"|\.?(?:checkpoint_|{re.escape(CONFIG_NAME)}|{_EXPERIMENT})[^/]*\.partial",
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
        """The model that stands for the run: the best one, or the final one if there is no best."""
        return self.best if self.best.exists() else self.model

    @property
    def results(self) -> Path:
        """The results document; exists once the run is finished."""
        return self._named("results.json")

    @property
    def metrics(self) -> Path:
        """The metrics document; exists once the run is finished."""
        return self._named("metrics.json")

    @property
    def journal(self) -> Path:
        """The metrics' points, appended during training."""
        return self._named("metrics.jsonl")

    @property
    def tensorboard(self) -> Path:
        """The folder of TensorBoard's event files."""
        return self.path / TENSORBOARD_NAME

    def _named(self, ending: str) -> Path:
        return self.path / f"{self.experiment_id}_{ending}"

    @property
    def is_finished(self) -> bool:
        """Whether the run has completed."""
        return self.results.is_file()

    def write_config(self, config: RunConfig) -> None:
        """Save the resolved configuration, whole or not at all."""
        write_atomically(self.config, config.to_toml().encode())


def create_run(config: RunConfig, name: str | None, overwrite: bool) -> RunFolder:
    """The folder of a new run; an existing run in it is refused, or deleted with `overwrite`."""
    path = folder_of(name or config.experiment_id)
    try:
        if path.exists() and not path.is_dir():
            raise TrainingError(f"{path}: is a file; a run needs a folder. Choose another --run-name.")
        left = _files_of(path)
        if left and not overwrite:
            raise TrainingError(
                f"{path}: holds a run already. Resume it (`hotlap resume {path}`), choose another --run-name, or "
                "replace it with --overwrite."
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
    """An existing run, given its folder or name, and its configuration."""
    path = Path(run) if is_there(Path(run) / CONFIG_NAME) else folder_of(run)
    if not is_there(path / CONFIG_NAME):
        raise InputFileError(
            f"{run:.200}: no run there (no {CONFIG_NAME}). Name a folder under {EXPERIMENTS}, or its path."
        )
    config = load_config(path / CONFIG_NAME)
    return RunFolder(path, config.experiment_id), config


def folder_of(name: str) -> Path:
    """The folder of a run of this name; a name with a slash is a path."""
    if "/" in name or "\\" in name:
        return Path(name)
    if name in ("", ".", ".."):
        raise TrainingError(f"{name!r} is not a valid name for a run. Use letters and digits, or a path with a slash.")
    return EXPERIMENTS / name


def _files_of(path: Path) -> list[Path]:
    """The files in a folder that belong to a run."""
    if not path.is_dir():
        return []
    found = [file for file in sorted(path.iterdir()) if _OWN.fullmatch(file.name)]
    found += [path / name for name in CheckpointManager(path).names()]
    found += [file for file in sorted((path / REPORT_NAME).glob("*")) if file.suffix in (".html", ".png")]
    return found + sorted((path / TENSORBOARD_NAME).glob("events.out.tfevents.*"))
