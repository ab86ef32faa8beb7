"""How the simulator is compiled, and where compiled code is cached between processes.

numba's own disk cache checks only the file of the function it loads, so an edit in `tyres.py` would not invalidate the
entry points in `batch_cpu.py`. Here the cache folder is named by a digest of every file in `sim/`: an edit gives
another folder, and stale machine code cannot be loaded.
"""

import hashlib
import logging
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from numba import config as numba_config
from numba import njit
from numba.core import event as numba_event

logger = logging.getLogger(__name__)

MAX_KEPT_CACHES = 4

# Division by zero gives an IEEE infinity instead of an exception: kernels must not raise. They allocate nothing
# either, so numba's reference counting is switched off: its atomic operations took a quarter of a step. Inlining
# everything saves another tenth.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": True}
# No kernel is called from C, so numba need not compile a wrapper for that.
_INNER: dict[str, Any] = {"no_cfunc_wrapper": True}
kernel = njit(**OPTIONS, **_INNER)
# For code that most steps skip: inlined, it made a step 2 % slower even when skipped.
rare_kernel = njit(**(OPTIONS | {"forceinline": False}), **_INNER)


def folder_digest(folder: Path) -> str:
    """Digest of the Python files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Digest of the simulator's source, which the compiled code depends on."""
    return folder_digest(Path(__file__).parent)


def home_folder() -> Path:
    """The user's home; if the user has none, a path below which nothing exists or can be created."""
    try:
        return Path.home()
    except RuntimeError:  # no HOME, and the user is not in the password database, as in many containers
        return Path(os.devnull)


def cache_root() -> Path:
    """The folder that holds compiled code, one subfolder per version of the source."""
    if chosen := os.environ.get("HOTLAP_CACHE"):
        return Path(chosen) / "compiled"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", home_folder() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = home_folder() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", home_folder() / ".cache"))
    return base / "hotlap" / "compiled"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """The folder for this version of the source, created if necessary; None if it cannot be written."""
    root = cache_root()
    folder = root / source_digest()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        return None
    if not os.access(folder, os.W_OK):
        return None
    _drop_old_caches(root, keep=folder)
    return folder


def _drop_old_caches(root: Path, keep: Path) -> None:
    """Delete all but the newest caches, so that they do not grow with every edit."""
    # Another process may be deleting the same folders.
    with suppress(OSError):
        others = [path for path in root.iterdir() if path.is_dir() and path != keep]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[MAX_KEPT_CACHES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


class _FirstCompilation(numba_event.Listener):  # type: ignore[misc]  # numba has no types
    """Says once in a process that the engine is being compiled: nothing else tells the user what takes so long."""

    MODULES = ("hotlap.sim.batch_cpu", "hotlap.sim.policy_drive", "hotlap.sim.race_cpu")  # the others take a second

    def __init__(self) -> None:
        self._is_said = False

    def on_start(self, event: Any) -> None:
        """A function is compiled that was not in the cache."""
        if not self._is_said and event.data["dispatcher"].py_func.__module__ in self.MODULES:
            self._is_said = True
            logger.warning("compiling the simulator for this machine: this takes up to a minute, and happens once")

    def on_end(self, event: Any) -> None:
        """Nothing to do: the next line is the command's own."""


numba_event.register("numba:compile", _FirstCompilation())


def entry_point(package: Path | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Like `kernel`, for the few functions that Python calls: releases the GIL and is cached on disk.

    `package` is the folder of kernels outside `sim/` that the function depends on, if there are several files.
    """

    def compile_lazily(function: Callable[..., Any]) -> Any:
        folder = cache_folder()
        if folder is not None and package is not None:
            folder = folder / f"{package.name}-{folder_digest(package)}"
        before: str = getattr(numba_config, "CACHE_DIR", "")
        # numba chooses a function's cache folder when it is decorated; restored at once, for other users of numba.
        numba_config.CACHE_DIR = str(folder) if folder else before
        try:
            return njit(nogil=True, cache=folder is not None, **OPTIONS, **options)(function)
        finally:
            numba_config.CACHE_DIR = before

    return compile_lazily
