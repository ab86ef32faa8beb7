"""Writes the figures of a benchmark as JSON, with the machine, the commit and the command that gave them."""

import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from hotlap.atomic_files import atomic_write
from hotlap.sim.version import PHYSICS_VERSION

ROOT = Path(__file__).resolve().parent.parent
COMMIT_VARIABLE = "HOTLAP_COMMIT"  # names the commit where the source is a copy without its repository


def write_results(path: Path, figures: dict[str, Any]) -> None:
    """Write `figures` and where they come from."""
    origin = {
        "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": find_commit(),
        "machine": describe_machine(),
        "physics": PHYSICS_VERSION,
    }
    with atomic_write(path) as file:
        file.write((json.dumps({"origin": origin, **figures}, indent=1) + "\n").encode())


def find_commit() -> str | None:
    """The commit of the source, with `+` where files differ from it; None where it is not known."""
    if named := os.environ.get(COMMIT_VARIABLE):
        return named
    try:
        commit = _git("rev-parse", "--short=12", "HEAD")
        return commit + "+" if _git("status", "--porcelain", "--untracked-files=no") else commit
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def describe_machine() -> str:
    """Processor, number of cores, system and Python."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({platform.machine()})" if names else platform.machine()
