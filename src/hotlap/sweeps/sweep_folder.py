"""A sweep's folder: the names of its files, how it is created, and how it is opened again."""

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from hotlap.atomic_files import DEVICE_FAULT, is_device_name, write_atomically
from hotlap.errors import ConfigError, InputFileError, OutputFileError, TrainingError
from hotlap.runs.run_config import load_config
from hotlap.runs.run_folder import is_there
from hotlap.runs.run_lock import RunLock
from hotlap.sweeps.sweep_file import Sweep, load_sweep

SWEEPS = Path("results") / "sweeps"  # the default place of sweeps
FILE_NAME = "sweep.toml"
JOURNAL_NAME = "study.journal"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class SweepFolder:
    """The files of one sweep."""

    path: Path

    @property
    def name(self) -> str:
        """The sweep's name."""
        return self.path.resolve().name

    @property
    def file(self) -> Path:
        """The sweep file as it was when the sweep started."""
        return self.path / FILE_NAME

    @property
    def journal(self) -> Path:
        """Optuna's journal."""
        return self.path / JOURNAL_NAME

    @property
    def recipes(self) -> Path:
        """The resolved recipes, so that a recipe changed later does not change the sweep."""
        return self.path / "recipes"

    @property
    def trials(self) -> Path:
        """The run folders."""
        return self.path / "trials"

    @property
    def logs(self) -> Path:
        """What the worker processes print."""
        return self.path / "workers"

    @property
    def best(self) -> Path:
        """The recipe of the best trial."""
        return self.path / "best.toml"

    @property
    def report(self) -> Path:
        """The folder of the report."""
        return self.path / "report"

    def run_path(self, trial: int, seed: int) -> Path:
        """The folder of a run."""
        return self.trials / f"{trial:04d}-seed{seed}"

    def recipe_path(self, index: int) -> Path:
        """The file of the recipe that the sweep file names at this place."""
        return self.recipes / f"{index}.toml"

    def read_sweep(self) -> Sweep:
        """The sweep, with the recipes as they were when it started."""
        paths = itertools.takewhile(is_there, map(self.recipe_path, itertools.count()))
        return load_sweep(self.file, [load_config(path) for path in paths])


def folder_of(name: str) -> Path:
    """The folder of a sweep of this name; a name with a slash is a path."""
    is_path = "/" in name or "\\" in name
    if is_device_name(Path(name).name):
        raise ConfigError(f"sweep name {Path(name).name!r:.80} {DEVICE_FAULT}. Choose another.")
    if is_path:
        return Path(name)
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{name!r:.80} is not a name for a sweep. Use letters, digits, dot, dash and underscore.")
    return SWEEPS / name


def default_name(file: Path) -> str:
    """The sweep's name after its file: `lr` for `lr.toml` and `lr.sweep.toml`."""
    return file.name.removesuffix(".toml").removesuffix(".sweep")


def create_folder(file: Path, name: str, sweep: Sweep) -> SweepFolder:
    """The folder of a new sweep; an existing one is refused."""
    folder = SweepFolder(folder_of(name))
    if folder.path.exists() and (not folder.path.is_dir() or any(folder.path.iterdir())):
        raise TrainingError(
            f"{folder.path}: exists already. Continue it with `hotlap sweep resume {name}`, or choose another --name."
        )
    try:
        folder.trials.mkdir(parents=True, exist_ok=True)
        folder.recipes.mkdir(exist_ok=True)
        for index, config in enumerate(sweep.bases.values()):
            write_atomically(folder.recipe_path(index), config.to_toml().encode())
        # Last: with it the folder is a sweep.
        write_atomically(folder.file, file.read_bytes())
    except OSError as error:
        raise OutputFileError(
            f"{folder.path}: cannot hold a sweep ({error.strerror or error}). Choose another --name."
        ) from None
    return folder


def open_folder(name: str) -> SweepFolder:
    """An existing sweep, given its name or folder."""
    for path in (Path(name), *([SWEEPS / name] if _NAME.fullmatch(name) else [])):
        if is_there(path / FILE_NAME):
            _refuse_links(path)
            return SweepFolder(path)
    raise InputFileError(f"{name!r:.200}: no sweep there (no {FILE_NAME}). Name a folder under {SWEEPS}, or its path.")


def _refuse_links(folder: Path) -> None:
    """Refuse a sweep with a link in it, which could lead its files anywhere; a folder may be somebody else's."""
    try:
        inner = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
        places = itertools.chain(folder.iterdir(), *(path.iterdir() for path in inner))
        found = next((path for path in places if path.is_symlink()), None)
    except OSError as error:
        raise InputFileError(f"{folder}: cannot be read ({error.strerror}). Check its permissions.") from None
    if found is not None:
        raise OutputFileError(f"{found}: is a link, and a sweep's files are no links. Replace it by what it leads to.")


def lock_folder(folder: SweepFolder) -> RunLock:
    """The acquired lock of a sweep: one process at a time runs it."""
    lock = RunLock(folder.path)
    try:
        lock.acquire()
    except TrainingError:
        raise TrainingError(
            f"{folder.path}: another process runs this sweep. Wait for it, or stop it with Ctrl-C first."
        ) from None
    return lock
