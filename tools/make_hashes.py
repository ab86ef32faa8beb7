"""Writes the hashes of the pinned packages for the platform and Python it runs on: `hashes/PLATFORM-PYTHON.txt`.

usage: .venv/bin/python tools/make_hashes.py     (after constraints.txt or the dependencies of pyproject.toml change)

pip resolves the project with the pins of constraints.txt, as tools/bootstrap.py does, without installing anything, and
reports the file that it would install of each package with its SHA-256 hash. torch and the CUDA libraries are left out:
which build of them is right depends on the machine. Check the difference in git before you commit it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import bootstrap

LEFT_OUT = ("torch", "triton", "nvidia-", "cuda-", "hotlap", "setuptools")  # setuptools is not pinned


def resolve(report: Path) -> None:
    """Let pip write its report of what it would install."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--report", str(report), "-c", str(bootstrap.CONSTRAINTS), ".[dev]"]
    if subprocess.run(command, cwd=str(bootstrap.ROOT)).returncode != 0:
        raise SystemExit("pip could not resolve the project; its reason is above.")


def format_hashes(report: "dict[str, object]") -> str:
    """One line per package, sorted by name, in the format of `pip install --require-hashes`."""
    lines = []
    for item in report["install"]:  # type: ignore[attr-defined]
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        if not name.lower().startswith(LEFT_OUT):
            lines.append(f"{name}=={version} --hash=sha256:{item['download_info']['archive_info']['hashes']['sha256']}")
    return "\n".join(["# Written by tools/make_hashes.py.", *sorted(lines, key=str.lower), ""])


def main() -> None:
    """Write the file of this platform and Python."""
    with tempfile.TemporaryDirectory() as folder:
        resolve(Path(folder) / "report.json")
        report = json.loads((Path(folder) / "report.json").read_text(encoding="utf-8"))
    path = bootstrap.hash_file()
    path.parent.mkdir(exist_ok=True)
    path.write_text(format_hashes(report), encoding="utf-8")
    print(f"wrote {path.relative_to(bootstrap.ROOT)}")


if __name__ == "__main__":
    main()
