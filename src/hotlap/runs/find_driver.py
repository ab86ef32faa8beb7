"""Which model a name means: a shipped driver's, a run's, or a file; and the driver of this name."""

from pathlib import Path

from hotlap.atomic_files import DEVICE_FAULT, is_device_name
from hotlap.drivers.driver import BUILT_IN, Driver, make_driver
from hotlap.errors import DriverError, InputFileError
from hotlap.models.model_file import ModelFile, read_model
from hotlap.models.shipped_models import SHIPPED_NAMES, find_shipped
from hotlap.tracks.registry import DEFAULT_TRACK


def find_model(run: str) -> Path:
    """The file that a path or a run's name means: the file itself, or the run's best, final or newest model."""
    # Slow to import, and the drivers that come with the package need neither.
    from hotlap.runs.checkpoints import checkpoint_path, checkpoint_steps
    from hotlap.runs.run_folder import EXPERIMENTS, is_there

    if is_device_name(Path(run).name):
        raise InputFileError(f"{Path(run).name!r:.80} {DEVICE_FAULT}. Name a run or a model file.")
    found = [path for path in (Path(run), EXPERIMENTS / run) if run and is_there(path)]
    if not found:
        raise InputFileError(f"{run!r:.80} is not known. Name a run (`hotlap train` makes them) or a model file.")
    folder = found[0]
    if not folder.is_dir():
        return folder
    for pattern in ("*_best.zip", "*_model.zip"):
        models = sorted(folder.glob(pattern))
        if models:
            return models[0]
    steps = checkpoint_steps(folder)
    if not steps:
        raise InputFileError(f"{folder}: holds no model and no checkpoint yet. Train it first, or name another.")
    return checkpoint_path(folder, steps[-1])


def find_driver_file(name: str, track_id: str = DEFAULT_TRACK) -> Path:
    """The model file that a driver's name means: a shipped one's for the track, a run's, or the file of this name."""
    if name in SHIPPED_NAMES:
        return find_shipped(name, track_id)
    try:
        return find_model(name)
    except InputFileError as error:
        raise DriverError(f"driver {error} Or {', '.join((*BUILT_IN, *SHIPPED_NAMES))}.") from None


def find_driver_model(name: str, track_id: str | None = None) -> ModelFile | None:
    """The model of a shipped driver, a run or a file; None for a built-in driver, DriverError for an unknown name.

    The track, by default the first one, chooses among the champions; no other driver depends on it.
    """
    if name in BUILT_IN:
        return None
    return read_model(find_driver_file(name, DEFAULT_TRACK if track_id is None else track_id))


def find_driver(name: str, track_id: str | None = None) -> Driver:
    """The built-in or shipped driver of this name, or the driver of a run or a model file."""
    return make_driver(name, find_driver_model(name, track_id))
