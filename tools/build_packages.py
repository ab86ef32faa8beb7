"""Builds the wheel and the sdist of Hotlap into `dist/` and checks them.

usage: .venv/bin/python tools/build_packages.py [FOLDER]     (or: make wheel, which tests the wheel, too)

They are built from a copy of the files that git knows, so that nothing else gets into them. Checked are their contents,
their size and, where twine is installed (`pip install "hotlap[package]"`), what a package index asks for.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "src")
MAX_BYTES = 12_000_000  # of each file; drivers, tracks and optimal laps are most of it
# setuptools changes sys.argv.
BUILD = "import sys, setuptools.build_meta as b; to = sys.argv[1]; b.build_wheel(to); b.build_sdist(to)"


def list_sources() -> list[str]:
    """The files of the packages, with forward slashes: those that git knows and has not deleted."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *SOURCES]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in found if name and (ROOT / name).is_file())


def build(folder: Path) -> tuple[Path, Path]:
    """Build wheel and sdist into a folder, in place of older ones; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("hotlap-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        for name in list_sources():
            target = Path(scratch) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
        command = [sys.executable, "-c", BUILD, str(folder.resolve())]
        answer = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise SystemExit(f"{answer.stderr}\nthe packages could not be built; the reason is above.")
    return next(folder.glob("hotlap-*.whl")), next(folder.glob("hotlap-*.tar.gz"))


def content_faults(wheel: Path, sdist: Path) -> list[str]:
    """What the packages lack or have too much of, compared with the sources."""
    expected = set(list_sources())
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {f"src/{name}" for name in archive.namelist() if ".dist-info/" not in name}
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    in_sdist = {name for name in names if ".egg-info/" not in name and name not in ("PKG-INFO", "setup.cfg")}
    faults = []
    for package, found, wanted in (
        (wheel, in_wheel, {name for name in expected if name.startswith("src/")}),
        (sdist, in_sdist, expected),
    ):
        faults += [f"{package.name} lacks {name}" for name in sorted(wanted - found)]
        faults += [f"{package.name} has {name}, which git does not know" for name in sorted(found - wanted)]
    return faults


def size_faults(*packages: Path) -> list[str]:
    """Packages that are too large."""
    sizes = {package.name: package.stat().st_size for package in packages}
    return [f"{name} has {size:,} bytes; at most {MAX_BYTES:,} are allowed" for name, size in sizes.items()
            if size > MAX_BYTES]  # fmt: skip


def check_with_twine(*packages: Path) -> str:
    """What `twine check` says; nothing where twine is not installed."""
    if find_spec("twine") is None:
        return ""
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, packages)]
    answer = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"}
    )
    if answer.returncode != 0:
        raise SystemExit(answer.stdout + answer.stderr)
    return answer.stdout


def main(arguments: list[str]) -> None:
    """Build, check and say so."""
    packages = build(Path(arguments[0]) if arguments else ROOT / "dist")
    if faults := [*content_faults(*packages), *size_faults(*packages)]:
        raise SystemExit("\n".join(faults))
    for package in packages:
        print(f"{package}: {package.stat().st_size / 1e6:.1f} MB")
    print(check_with_twine(*packages) or "twine is not installed, so its check was left out", end="")


if __name__ == "__main__":
    main(sys.argv[1:])
