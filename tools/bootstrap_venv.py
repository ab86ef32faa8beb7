"""The project's `.venv`: its interpreter, pip in it, and why it cannot be used."""

# Standard library only, and any Python must be able to parse this file: see bootstrap.py.

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


class SetupError(Exception):
    """A problem the user has to solve; only its text is printed."""


def say(text: str) -> None:
    """Print progress on stderr: stdout belongs to the verb."""
    print("[bootstrap] " + text, file=sys.stderr, flush=True)


def python_name() -> str:
    """The running interpreter, e.g. `cpython 3.11`. A new patch release can use the same environment."""
    return "{} {}.{}".format(sys.implementation.name, *sys.version_info[:2])


def activated_environ() -> "dict[str, str]":
    """The process environment with `.venv` activated.

    Python writes its bytecode: tests start a hundred processes, and without it each would compile every module again.
    """
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE")}
    environ["VIRTUAL_ENV"] = str(VENV)
    environ["PATH"] = str(VENV_PYTHON.parent) + os.pathsep + environ.get("PATH", "")
    environ.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PIP_USER="0")
    return environ


def ask_python(code: str) -> "str | None":
    """What the environment's interpreter prints for `code`, or None if it fails."""
    command = [str(VENV_PYTHON), "-c", code]
    try:
        answer = subprocess.run(command, env=activated_environ(), capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def find_fault(stamp: "dict[str, object]") -> "str | None":
    """Why the existing environment cannot be used, or None."""
    found = ask_python("import pip, sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])")
    if found != python_name():
        return f"has {found or 'no working Python with pip'}, not {python_name()}"
    root = stamp.get("root", str(ROOT))
    return None if root == str(ROOT) else f"was made for another folder ({root})"


def remove_venv() -> None:
    """Delete `.venv`, whether it is a folder, a file or a link."""
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(str(VENV))


def make_venv() -> None:
    """Make an empty `.venv`."""
    say(f"making {VENV.name} with {python_name()}")
    # Inside a virtual environment sys.executable may be the one just removed.
    base = getattr(sys, "_base_executable", None) or sys.executable
    if subprocess.run([base, "-m", "venv", str(VENV)], stdout=sys.stderr).returncode != 0:
        remove_venv()
        raise SetupError(f"`{base} -m venv {VENV}` failed; the reason is above.")


def pip_install(*arguments: str) -> bool:
    """Run `pip install`, which reports to the terminal; False if it fails."""
    command = [str(VENV_PYTHON), "-m", "pip", "install", *arguments]
    return subprocess.run(command, cwd=str(ROOT), env=activated_environ(), stdout=sys.stderr).returncode == 0
