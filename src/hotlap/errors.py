"""Every exception Hotlap raises on purpose; each is also the built-in a caller would expect."""

MAX_FOREIGN_MESSAGE = 240  # characters quoted from another library's error


class HotlapError(Exception):
    """Root of all errors a user can cause; the command line prints its text and nothing else."""


class ConfigError(HotlapError, ValueError):
    """A setting that is unknown, of the wrong type, or out of range."""


class ActionError(HotlapError, ValueError):
    """An action of the wrong shape, or not finite."""


class StateError(HotlapError, ValueError):
    """A saved world that does not fit the world it is given to."""


class TrackError(HotlapError, ValueError):
    """A track that cannot be driven: a bad file or an impossible shape."""


class UnknownTrackError(TrackError, LookupError):
    """A track id nobody registered."""


class DriverError(HotlapError, ValueError):
    """A driver nobody knows."""


class InputFileError(HotlapError, FileNotFoundError):
    """A file that should be there and is not."""

    def __str__(self) -> str:
        """The plain message: `FileNotFoundError` would quote it."""
        return str(self.args[0]) if self.args else ""


class OutputFileError(HotlapError, OSError):
    """A file that could not be written."""

    def __str__(self) -> str:
        """The plain message: `OSError` would quote it."""
        return str(self.args[0]) if self.args else ""


class OptimalError(HotlapError, RuntimeError):
    """An optimal lap that could not be found or trusted."""


class ReportError(HotlapError, ValueError):
    """A lap and a reference that cannot be compared."""


class ModelError(HotlapError, ValueError):
    """A model or a run that does not fit what it is to be used for."""


class TrainingError(HotlapError, RuntimeError):
    """A training run that cannot begin or go on."""


class ArchiveError(HotlapError, ValueError):
    """A model or checkpoint file that is damaged, foreign or hostile, or content that such a file cannot hold."""


class BridgeError(HotlapError, RuntimeError):
    """A bridge that cannot serve, or a request that it refused."""


class BridgeConnectionError(BridgeError, ConnectionError):
    """A bridge that cannot be reached, or whose connection is gone."""


class BridgeTimeoutError(BridgeConnectionError, TimeoutError):
    """A bridge that did not answer in time."""


def one_line(error: Exception) -> str:
    """The message of another library's error on one line, short enough to stand inside one of ours."""
    return " ".join(str(error).split())[:MAX_FOREIGN_MESSAGE].rstrip(".")
