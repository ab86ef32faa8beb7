"""A run's folder: the names of its files, and which of them may be overwritten."""

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import count
from pathlib import Path

from hotlap.atomic_files import DEVICE_FAULT, is_device_name, refuse_not_plain, write_atomically
from hotlap.errors import HotlapError, InputFileError, OutputFileError, TrainingError
from hotlap.runs.checkpoints import CHECKPOINT_NAME, checkpoint_path, checkpoint_steps
from hotlap.runs.run_config import ALGORITHM_NAMES, RunConfig, load_config
from hotlap.runs.run_lock import RunLock

EXPERIMENTS = Path("results") / "experiments"  # the default place of runs
CONFIG_NAME = "config.toml"
TENSORBOARD_NAME = "tensorboard"
REPORT_NAME = "report"
_EXPERIMENT = rf"(?:{'|'.join(ALGORITHM_NAMES)})_seed"
# A run's own files besides its checkpoints: those named after it, the configuration, and drafts of a killed process.
_OWN = re.compile(
    rf"{_EXPERIMENT}\d+_(?:model\.zip|best\.zip|results\.json|metrics\.jsonl?|log\.csv|loggers\.json)"
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
    def csv_log(self) -> Path:
        """What `--log csv` writes."""
        return self._named("log.csv")

    @property
    def logger_ids(self) -> Path:
        """The ids that this run has at the services of `--log`."""
        return self._named("loggers.json")

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

    def refuse_links(self) -> None:
        """Refuse a folder in which one of the run's files is a link, or not a regular file.

        The folder may be somebody else's, and a link in it would make us write to a file elsewhere.
        """
        _files_of(self.path)

    def write_config(self, config: RunConfig) -> None:
        """Save the resolved configuration, whole or not at all."""
        write_atomically(self.config, config.to_toml().encode())


def create_run(config: RunConfig, name: str | None, overwrite: bool, lock: RunLock | None = None) -> RunFolder:
    """The folder of a new run; an existing run in it is refused, or deleted with `overwrite`.

    `lock` is acquired before anything is deleted, and stays acquired; without it the folder is locked meanwhile.
    """
    path = folder_of(config.experiment_id if name is None else name)
    held = lock or RunLock(path)
    try:
        if path.exists() and not path.is_dir():
            raise TrainingError(f"{path}: is a file; a run needs a folder. Choose another --run-name.")
        _refuse_existing(path, overwrite)
        path.mkdir(parents=True, exist_ok=True)
        held.acquire()
        for file in _refuse_existing(path, overwrite):
            file.unlink(missing_ok=True)
        folder = RunFolder(path, config.experiment_id)
        folder.write_config(config)
    except HotlapError:
        held.release()
        raise
    except OSError as error:
        held.release()
        raise OutputFileError(
            f"{path!s:.200}: cannot hold a run ({error.strerror}). Choose another --run-name."
        ) from None
    if lock is None:
        held.release()
    return folder


def keep_under_another_name(folder: RunFolder) -> Path:
    """Rename the folder of a finished run after the time at which it finished; returns the new path."""
    with RunLock(folder.path):  # refuses where a process is extending it
        ended = datetime.fromtimestamp(folder.results.stat().st_mtime, timezone.utc)
    stamp = f"{folder.path.name}-{ended:%Y-%m-%dT%H%M%S}"
    names = (stamp if number == 1 else f"{stamp}-{number}" for number in count(1))
    target = next(path for path in map(folder.path.with_name, names) if not path.exists())
    try:
        return folder.path.rename(target)
    except OSError as error:
        raise OutputFileError(
            f"{folder.path}: cannot be renamed to {target.name} ({error.strerror}). Choose another --run-name."
        ) from None


def _refuse_existing(path: Path, overwrite: bool) -> list[Path]:
    """The files of an existing run, which may be deleted; refused without `overwrite`."""
    left = _files_of(path)
    if left and not overwrite:
        raise TrainingError(
            f"{path}: holds a run already. Resume it (`hotlap resume {path}`), choose another --run-name, or "
            "replace it with --overwrite."
        )
    return left


def open_run(run: str) -> tuple[RunFolder, RunConfig]:
    """An existing run, given its folder or name, and its configuration."""
    path = Path(run) if is_there(Path(run) / CONFIG_NAME) else folder_of(run)
    if not is_there(path / CONFIG_NAME):
        raise InputFileError(
            f"{run:.200}: no run there (no {CONFIG_NAME}). Name a folder under {EXPERIMENTS}, its path, or one of its "
            "checkpoints."
        )
    _files_of(path)  # refuses links
    config = load_config(path / CONFIG_NAME)
    return RunFolder(path, config.experiment_id), config


def split_checkpoint(run: str) -> tuple[str, Path | None]:
    """A run and, where one of its checkpoints is named (`RUN/checkpoint_100.zip`), that file."""
    path = Path(run)
    if not CHECKPOINT_NAME.fullmatch(path.name) or is_there(path / CONFIG_NAME):
        return run, None
    folder = path.parent
    if not is_there(folder / CONFIG_NAME) and len(path.parts) > 1:
        folder = EXPERIMENTS / folder
    return f"{folder}/", folder / path.name


def folder_of(name: str) -> Path:
    """The folder of a run of this name; a name with a slash is a path."""
    is_path = "/" in name or "\\" in name
    # A root folder has no name; a line break would tear the messages and tables that show the name.
    if name in ("", ".", "..") or not name.isprintable() or (is_path and not Path(name).name):
        raise TrainingError(
            f"{name!r:.80} is not a valid name for a run. Use letters and digits, or a path with a slash."
        )
    path = Path(name) if is_path else EXPERIMENTS / name
    if is_device_name(path.name):
        raise TrainingError(f"run name {path.name!r:.80} {DEVICE_FAULT}. Choose another.")
    return path


def is_there(path: Path) -> bool:
    """Whether the path exists; a name too long for the file system does not."""
    try:
        return path.exists()
    except OSError:
        return False


def _files_of(path: Path) -> list[Path]:
    """The files in a folder that belong to a run; a link among them, or to their folders, is refused."""
    if not path.is_dir():
        return []
    found = [file for file in sorted(path.iterdir()) if _OWN.fullmatch(file.name)]
    found += [checkpoint_path(path, step) for step in checkpoint_steps(path)]
    for name, is_own in ((REPORT_NAME, _is_report), (TENSORBOARD_NAME, _is_event_file)):
        if _is_plain(path / name, is_folder=True):
            found += [file for file in sorted((path / name).iterdir()) if is_own(file)]
    return [file for file in found if _is_plain(file)]


def _is_report(file: Path) -> bool:
    return file.suffix in (".html", ".png")


def _is_event_file(file: Path) -> bool:
    return file.name.startswith("events.out.tfevents.")


def _is_plain(path: Path, *, is_folder: bool = False) -> bool:
    """Whether it exists; refused where it is a link, or no regular file or folder."""
    try:
        refuse_not_plain(path, is_folder=is_folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        kind = "a folder" if is_folder else "a regular file"
        raise TrainingError(
            f"{path}: must be {kind} of this run, but is {error.strerror or error}. Remove it, or use another run."
        ) from None
    return True
