"""Files that appear whole or not at all, even after a power cut, and files opened without following links."""

import os
import re
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hotlap.errors import OutputFileError

DEVICE_FAULT = "is the name of a device of Windows"  # follows a name
_DEVICE = re.compile(
    r"con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[1-9\N{SUPERSCRIPT ONE}\N{SUPERSCRIPT TWO}\N{SUPERSCRIPT THREE}]",
    re.IGNORECASE,
)
_NOT_PLAIN = "not a regular file"
_HARD_LINK = "it is a hard link to a file with another name; replace it by a copy"


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees either the old content, if any, or all of the new."""
    with atomic_write(path) as file:
        file.write(content)


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """A draft to write into; it replaces `path` when the block succeeds and is deleted when it raises."""
    refuse_unreplaceable(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        with _opened(draft) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OutputFileError(
            f"{path}: cannot be written ({error.strerror or error}). Free some space or choose another path."
        ) from None
    finally:
        with suppress(OSError, ValueError):
            draft.unlink(missing_ok=True)
    _flush_folder(path.parent)


def is_device_name(name: str) -> bool:
    """Whether Windows takes a file name for a device (`con`, `NUL.txt`), in whatever folder.

    Such names are refused on every system: folders are copied and shared.
    """
    return _DEVICE.fullmatch(name.partition(".")[0].rstrip(" ")) is not None


def refuse_unreplaceable(path: Path) -> None:
    """Refuse a path that a new file must not or cannot replace: a folder, a device, a pipe, or an impossible name."""
    if is_device_name(path.name):
        raise OutputFileError(f"{path!s:.200}: cannot be written, {path.name!r:.80} {DEVICE_FAULT}. Choose another.")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        reason = getattr(error, "strerror", None) or error
        raise OutputFileError(f"{path!s:.200}: cannot be written ({reason}). Choose another path.") from None
    if stat.S_ISDIR(mode):
        raise OutputFileError(f"{path}: cannot be written, this is a folder. Name a file in it.")
    if not stat.S_ISREG(mode):
        raise OutputFileError(f"{path}: cannot be written, this is a device or a pipe. Name a regular file.")


def open_plain(path: Path, flags: int) -> int:
    """`os.open` of a regular file for writing; a link, a pipe or anything else raises OSError and is not touched.

    Do not pass O_TRUNC: truncate after the file is known to be regular and to have no other name.
    """
    with suppress(FileNotFoundError):
        refuse_not_plain(path)
    # Non-blocking: between the check and the opening, the file could be replaced by a pipe that nobody reads.
    safe = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | safe, 0o666)
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(descriptor)
        raise OSError(_HARD_LINK if stat.S_ISREG(about.st_mode) else _NOT_PLAIN)
    return descriptor


def refuse_not_plain(path: Path, *, is_folder: bool = False) -> None:
    """Raise OSError where a path is a link, or something else than a regular file (or a folder)."""
    mode = path.lstat().st_mode
    if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
        raise OSError("a link" if stat.S_ISLNK(mode) else _NOT_PLAIN)


def _opened(draft: Path) -> BinaryIO:
    try:
        draft.unlink(missing_ok=True)  # left by a killed process that had our process id
        return draft.open("xb")
    except ValueError as error:  # a name with a NUL in it
        raise OSError(str(error)) from None


def _flush_folder(folder: Path) -> None:
    """Flush the new name to disk where the system can; Windows cannot open folders."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def writable(path: Path) -> Path:
    """Check that `path` can be written and make its folder; returns `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        reason = getattr(error, "strerror", None) or error
        raise OutputFileError(f"{path.parent!s:.200}: cannot be made ({reason}). Choose another path.") from None
    refuse_unreplaceable(path)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise OutputFileError(f"{path}: no permission to write. Choose another path.")
    return path
