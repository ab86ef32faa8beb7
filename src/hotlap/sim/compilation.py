"""How the simulator is compiled, and where compiled code is kept between processes.

numba's own disk cache looks only at the file of the function it loads, so an edit in `tyres.py` would go unseen by the
entry points in `batch_cpu.py`. Here the cache folder is named by a digest of every file in `sim/`: an edit gives
another folder, and stale machine code cannot be loaded.
"""

import hashlib
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

MAX_KEPT_CACHES = 4

# Division by zero gives an IEEE infinity instead of an exception: kernels must not raise. They allocate nothing
# either, so numba's reference counting is left out: its atomic operations took a quarter of a step. Inlining all saves
# another tenth.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "forceinline": True}
kernel = njit(**OPTIONS)
# For what most steps jump over: inlined, a loop that is not taken still made the way past it two hundredths slower.
rare_kernel = njit(**(OPTIONS | {"forceinline": False}))


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Digest of the simulator's own source text: what compiled code depends on."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def cache_root() -> Path:
    """The folder that holds compiled code, one subfolder per version of the source."""
    if chosen := os.environ.get("HOTLAP_CACHE"):
        return Path(chosen) / "compiled"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return base / "hotlap" / "compiled"


@lru_cache(maxsize=1)
def cache_folder() -> Path | None:
    """The folder for this version of the source, made if need be; None where nothing can be written."""
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
    """Forget compiled code of long-gone source, so that the cache does not grow with every edit."""
    # Another process may be doing the same: a folder that is gone already is as good as dropped.
    with suppress(OSError):
        others = [path for path in root.iterdir() if path.is_dir() and path != keep]
        others.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in others[MAX_KEPT_CACHES - 1 :]:
            shutil.rmtree(path, ignore_errors=True)


def entry_point(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Like `kernel`, for the few functions Python calls: releases the GIL and is kept on disk."""

    def compile_lazily(function: Callable[..., Any]) -> Any:
        folder = cache_folder()
        before: str = getattr(numba_config, "CACHE_DIR", "")
        # numba fixes a function's cache place when it is decorated; restored at once, for other users of numba.
        numba_config.CACHE_DIR = str(folder) if folder else before  # type: ignore[attr-defined]
        try:
            return njit(nogil=True, cache=folder is not None, **OPTIONS, **options)(function)
        finally:
            numba_config.CACHE_DIR = before  # type: ignore[attr-defined]

    return compile_lazily
