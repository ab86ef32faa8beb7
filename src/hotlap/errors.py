"""Every exception that Hotlap raises on purpose; each also derives from the fitting built-in exception."""

import difflib
from collections.abc import Iterable

MAX_FOREIGN_MESSAGE = 240  # characters quoted from another library's error


class HotlapError(Exception):
    """Base class of all errors a user can cause; the command line prints only its message."""


class ConfigError(HotlapError, ValueError):
    """A setting is unknown, of the wrong type, or out of range."""


class ActionError(HotlapError, ValueError):
    """An action has the wrong shape or is not finite."""


class StateError(HotlapError, ValueError):
    """A saved state does not fit the world or run it is restored into."""


class TrackError(HotlapError, ValueError):
    """A track cannot be used: a bad file or an impossible shape."""


class UnknownTrackError(TrackError, LookupError):
    """A track id is not registered."""


class DriverError(HotlapError, ValueError):
    """A driver is not known."""


class InputFileError(HotlapError, FileNotFoundError):
    """An input file does not exist."""

    def __str__(self) -> str:
        """The plain message, without the quotes that `FileNotFoundError` adds."""
        return str(self.args[0]) if self.args else ""


class OutputFileError(HotlapError, OSError):
    """A file could not be written."""

    def __str__(self) -> str:
        """The plain message, without the quotes that `OSError` adds."""
        return str(self.args[0]) if self.args else ""


class OptimalError(HotlapError, RuntimeError):
    """An optimal lap could not be found or verified."""


class ReportError(HotlapError, ValueError):
    """A lap and a reference cannot be compared."""


class ModelError(HotlapError, ValueError):
    """A model or a run's document is damaged or does not fit its intended use."""


class TrainingError(HotlapError, RuntimeError):
    """A training run cannot start or continue."""


class DivergedError(TrainingError):
    """A run met NaN or infinity: in a reward, an observation, a loss or the weights."""


class EnvironmentDivergedError(DivergedError):
    """A step of the environments that is not finite; the learner has not counted it yet."""


class ProcessLostError(TrainingError):
    """One of the processes that train a run together has died."""


class RoadStreamError(ProcessLostError):
    """The roads of a stream cannot be made, or a process that makes them has died."""


class CudaError(HotlapError, RuntimeError):
    """A GPU that cannot be used, or that would not give the CPU's bits."""


class ArchiveError(HotlapError, ValueError):
    """A model or checkpoint file is damaged, not ours or malicious, or cannot hold the given content."""


class BridgeError(HotlapError, RuntimeError):
    """A bridge cannot serve, or refused a request."""


class BridgeConnectionError(BridgeError, ConnectionError):
    """A bridge cannot be reached, or the connection was lost."""


class BridgeTimeoutError(BridgeConnectionError, TimeoutError):
    """A bridge did not answer in time."""


class DatasetError(HotlapError, ValueError):
    """A dataset cannot be recorded as asked, or is damaged."""


class ReplayError(HotlapError, ValueError):
    """A replay is damaged, forged, or of another road or physics."""


class LeaderboardError(HotlapError, RuntimeError):
    """The leaderboard of lap times cannot be read or written, or is full."""


class PageError(HotlapError, RuntimeError):
    """The page's server cannot start."""


class MissingLibraryError(HotlapError, ImportError):
    """A library is not installed that only some commands need."""


# The extra of pyproject.toml that brings a library which `pip install hotlap` leaves out.
EXTRAS = {
    "torch": "train",
    "stable_baselines3": "train",
    "tensorboard": "train",
    "casadi": "optimal",
    "onnx": "export",
    "onnxruntime": "export",
    "optuna": "sweeps",
    "ray": "sweeps",
    "h5py": "data",
    "wandb": "log",
    "mlflow": "log",
    "huggingface_hub": "hub",
    "pygame": "window",
}


def explain_missing(error: ModuleNotFoundError) -> Exception:
    """What to raise for a module that was not found: what to install where we know it, else the same error."""
    library = (error.name or "").partition(".")[0]
    if library not in EXTRAS:
        return error
    return MissingLibraryError(f'this needs {library}. Install it: pip install "hotlap[{EXTRAS[library]}]".')


def one_line(error: Exception) -> str:
    """The message of another library's error, shortened to one line for quoting in ours."""
    return " ".join(str(error).split())[:MAX_FOREIGN_MESSAGE].rstrip(".")


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a mistyped one probably means; None where none is close."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1)), None)


def did_you_mean(suggestion: str | None, otherwise: str) -> str:
    """The end of an error about an unknown word: the suggestion, or `otherwise` where there is none."""
    return otherwise if suggestion is None else f"Did you mean {suggestion!r}?"
