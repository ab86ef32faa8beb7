"""`hotlap doctor`: what is installed, what is missing and how to get it."""

import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from hotlap.cli.output import print_json

# What a missing package would give, and the extra that brings it.
_OPTIONAL = {
    "envpool": ("a fast LunarLander-v3", "pip install 'hotlap[lunar]'"),
    "Box2D": ("Gymnasium's LunarLander-v3", "make test sets it up; by hand: pip install swig box2d-py"),
    "casadi": ("the optimal lap", "pip install 'hotlap[optimal]'"),
    "numba-cuda": ("simulation on an NVIDIA GPU", "pip install 'hotlap[gpu]'"),
    "ray": ("many machines", "pip install 'hotlap[scale]'"),
}
_NONE = {
    "gpu": "none found",
    "compiled_code": "none: the cache folder is not writable. Set HOTLAP_CACHE to one that is",
}
_REQUIRED = ("numpy", "numba", "gymnasium", "stable-baselines3", "torch", "matplotlib", "websocket-client")


def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")] = False) -> None:
    """Say what this installation has, what is missing, and how to get it.

    Example: hotlap doctor
    """
    from hotlap import PHYSICS_VERSION, __version__
    from hotlap.sim.batch_cpu import default_threads
    from hotlap.sim.compilation import cache_folder
    from hotlap.tracks.registry import user_folder

    versions = {name: _version(name) for name in (*_REQUIRED, *_OPTIONAL)}
    folder = cache_folder()
    figures = {
        "hotlap": __version__,
        "physics": PHYSICS_VERSION,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "threads": default_threads(),
        "gpu": _gpu(),
        "compiled_code": str(folder) if folder else None,
        "your_tracks": str(user_folder()),
        "packages": versions,
    }
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        if name != "packages":
            print(f"{name:<18} {value if value is not None else _NONE[name]}")
    for name, found in versions.items():
        if found:
            print(f"{name:<18} {found}")
        elif name in _OPTIONAL:
            gives, remedy = _OPTIONAL[name]
            print(f"{name:<18} missing; it gives {gives}. Get it: {remedy}")
        else:
            print(f"{name:<18} MISSING: install hotlap again with pip")


def _gpu() -> str | None:
    """The NVIDIA GPUs by name, if the driver's own tool finds any."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5.0, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return ", ".join(answer.stdout.split("\n")).strip(", ") or None


def _version(name: str) -> str | None:
    for candidate in (name, "box2d-py") if name == "Box2D" else (name,):
        try:
            return version(candidate)
        except PackageNotFoundError:
            continue
    return None
