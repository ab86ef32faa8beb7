"""`hotlap doctor`: what is installed, what is missing and how to get it."""

import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from hotlap.cli.output import Json, print_json

# What an optional package is for, and how to get it.
_OPTIONAL = {
    "torch": ("hotlap train", 'pip install "hotlap[train]"'),
    "stable-baselines3": ("hotlap train", 'pip install "hotlap[train]"'),
    "tensorboard": ("hotlap train", 'pip install "hotlap[train]"'),
    "envpool": ("a fast LunarLander-v3", "pip install envpool (Linux, Python 3.11 or newer)"),
    "Box2D": ("Gymnasium's LunarLander-v3", "pip install swig, then pip install 'gymnasium[box2d]'"),
    "casadi": ("solving the optimal lap of a track", 'pip install "hotlap[optimal]"'),
    "numba-cuda": ("the simulator on an NVIDIA GPU", 'pip install "hotlap[gpu]"'),
    "optuna": ("hotlap sweep", 'pip install "hotlap[sweeps]"'),
    "ray": ("hotlap sweep --ray", 'pip install "hotlap[sweeps]"'),
    "pygame-ce": ('render_mode="human"', 'pip install "hotlap[window]"'),
    "huggingface-hub": ("hotlap push --repo", 'pip install "hotlap[hub]"'),
    "wandb": ("hotlap train --log wandb", 'pip install "hotlap[log]"'),
    "mlflow-skinny": ("hotlap train --log mlflow", 'pip install "hotlap[log]"'),
    "h5py": ("hotlap dataset", 'pip install "hotlap[data]"'),
    "onnx": ("hotlap export --format onnx", 'pip install "hotlap[export]"'),
}
_NONE = {
    "gpu": "none found",
    "compiled_code": "none: the cache folder is not writable. Set HOTLAP_CACHE to one that is",
    "torch_cuda": "none: training runs on the CPU",
}
_CUDA_ADVICE = (
    "For a CUDA build: pip uninstall torch, then pip install torch --index-url https://download.pytorch.org/whl/cu126 "
    "(other CUDA versions: https://pytorch.org/get-started)"
)
_REQUIRED = ("numpy", "numba", "gymnasium", "pillow", "starlette", "uvicorn", "websocket-client")


def doctor(
    as_json: Json = False,
) -> None:
    """Show what is installed, what is missing and how to get it.

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
        "torch_cuda": _torch_cuda(),
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
    if figures["gpu"] and not figures["torch_cuda"]:
        print(f"{'':<18} {_CUDA_ADVICE}")
    for name, found in versions.items():
        if found:
            print(f"{name:<18} {found}")
        elif name in _OPTIONAL:
            purpose, remedy = _OPTIONAL[name]
            print(f"{name:<18} missing; needed for {purpose}. Get it: {remedy}")
        else:
            print(f"{name:<18} MISSING; hotlap needs it. Get it: pip install {name}")


def _gpu() -> str | None:
    """The names of the NVIDIA GPUs that nvidia-smi lists."""
    tool = shutil.which("nvidia-smi")
    # Windows looks for programs in the current folder first, where anybody may have put one.
    if tool is None or Path(tool).resolve().parent == Path.cwd():
        return None
    query = [tool, "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=5.0, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    return ", ".join(answer.stdout.split("\n")).strip(", ") or None


def _torch_cuda() -> str | None:
    """The CUDA version torch was built for. Read from its version file: importing torch takes seconds."""
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = Path(str(distribution("torch").locate_file("torch/version.py"))).read_text(encoding="utf-8")
    except (PackageNotFoundError, OSError):
        return None
    found = re.search(r"^cuda\b.*=\s*['\"](.+)['\"]", text, flags=re.MULTILINE)
    return found[1] if found else None


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    for candidate in (name, "box2d-py") if name == "Box2D" else (name,):
        try:
            return version(candidate)
        except PackageNotFoundError:
            continue
    return None
