"""Writes the hashes of the pinned packages into `hashes/`.

usage: .venv/bin/python tools/make_hashes.py     (after constraints.txt or the dependencies of pyproject.toml change)

`PLATFORM-PYTHON.txt`, for the platform and Python it runs on: pip resolves the project with the pins of
constraints.txt, as tools/bootstrap.py does, without installing anything, and reports the file that it would install of
each package with its SHA-256 hash. The CUDA libraries are left out: which of them are needed depends on the machine.

`torch.json`: torch's builds for every platform and Python that we support. `default` is pip's default build, `cpu` that
of PyTorch's CPU index, which is known only where this script could see it: the hashes of earlier runs are kept.

`build-tools.txt` and `box2d-build.txt`: what builds need, for every platform, and the sources of Box2D.

Check the difference in git before you commit it.
"""

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from pip._internal.models.index import PyPI

import bootstrap
import bootstrap_packages as packages
import bootstrap_venv as venv

LEFT_OUT = ("torch", "triton", "nvidia-", "cuda-", "hotlap", "setuptools")  # the others have files of their own
BUILD_TOOLS = ("setuptools", "swig", "wheel")
HEADER = "# Written by tools/make_hashes.py."
# Our name of a platform, and the tag of torch's wheels for it.
PLATFORMS = {
    "linux-x86_64": r"manylinux\w*_x86_64",
    "linux-aarch64": r"manylinux\w*_aarch64",
    "darwin-arm64": r"macosx_\w*_arm64",
    "win32-amd64": "win_amd64",
}


def report(*arguments: str) -> "list[dict[str, object]]":
    """What pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--report", str(path), *arguments]
        if subprocess.run(command, cwd=str(venv.ROOT)).returncode != 0:
            raise SystemExit(f"pip could not resolve {arguments[-1]}; its reason is above.")
        found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))["install"]
    return found


def hash_of(item: "dict[str, object]") -> str:
    """The SHA-256 hash of one item of pip's report."""
    value: str = item["download_info"]["archive_info"]["hashes"]["sha256"]  # type: ignore[index]
    return value


def describe(item: "dict[str, object]") -> "tuple[str, str]":
    """Name and version of one item of pip's report."""
    metadata: dict[str, str] = item["metadata"]  # type: ignore[assignment]
    return metadata["name"], metadata["version"]


def format_hashes(items: "list[dict[str, object]]") -> str:
    """One line per package, sorted by name, in the format of `pip install --require-hashes`."""
    found = [(*describe(item), hash_of(item)) for item in items if not describe(item)[0].lower().startswith(LEFT_OUT)]
    lines = [f"{name}=={version} --hash=sha256:{value}" for name, version, value in found]
    return "\n".join([HEADER, *sorted(lines, key=str.lower), ""])


def published(pin: str) -> "dict[str, str]":
    """The SHA-256 hash of every file that pip's default index has of a pinned version, by file name."""
    name, version = pin.split("==")
    with urllib.request.urlopen(f"{PyPI.simple_url}/{name}/", timeout=60.0) as answer:  # noqa: S310
        page = answer.read().decode()
    stem = rf"{re.sub(r'[-_.]', '[-_.]', name)}-{re.escape(version)}(?:-[^/]+\.whl|\.tar\.gz)"
    return dict(re.findall(rf"/({stem})#sha256=([0-9a-f]{{64}})", page))


def pin_of(name: str) -> str:
    """The pin of a package in constraints.txt."""
    text = packages.CONSTRAINTS.read_text(encoding="utf-8")
    [pin] = re.findall(rf"^{re.escape(name)}==[^\s;#]+", text, flags=re.MULTILINE)
    return str(pin)


def torch_builds(known: "dict[str, object]", own: "list[dict[str, object]]") -> "dict[str, object]":
    """The hashes of torch's builds: pip's default ones, and those of the CPU index as far as they are known."""
    pin = pin_of("torch")
    before: dict[str, dict[str, str]] = known["hashes"] if known.get("pin") == pin else {}  # type: ignore[assignment]
    hashes: dict[str, dict[str, str]] = {}
    for name, value in published(pin).items():
        for platform, tag in PLATFORMS.items():
            found = re.fullmatch(rf".*-cp(3\d+)-cp3\d+-{tag}\.whl", name)
            if found and bootstrap.OLDEST[1] <= int(found[1][1:]) <= bootstrap.NEWEST[1]:
                key = f"{platform}-cpython{found[1]}"
                hashes[key] = {**before.get(key, {}), "default": value}
    for item in own:
        name, version = describe(item)
        if name == "torch" and version.endswith("+cpu"):
            hashes[packages.hash_file().stem]["cpu"] = hash_of(item)
    return {"pin": pin, "hashes": {key: dict(sorted(hashes[key].items())) for key in sorted(hashes)}}


def hashed_line(name: str, ending: str) -> str:
    """A pinned package with the hashes of all its files with this ending."""
    found = [value for file, value in published(pin_of(name)).items() if file.endswith(ending)]
    return " ".join([pin_of(name), *(f"--hash=sha256:{value}" for value in sorted(found))])


def write(path: Path, text: str) -> None:
    """Write a file and say so."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"wrote {path.relative_to(venv.ROOT)}")


def main() -> None:
    """Write all files."""
    own = report("-c", str(packages.CONSTRAINTS), ".[dev]")
    write(packages.hash_file(), format_hashes(own))
    known = json.loads(packages.TORCH_HASHES.read_text(encoding="utf-8")) if packages.TORCH_HASHES.exists() else {}
    write(packages.TORCH_HASHES, json.dumps(torch_builds(known, own), indent=1) + "\n")
    write(packages.TOOL_HASHES, "\n".join([HEADER, *(hashed_line(name, ".whl") for name in BUILD_TOOLS), ""]))
    write(packages.BUILD_HASHES, f"{HEADER}\n{hashed_line('box2d-py', '.tar.gz')}\n")


if __name__ == "__main__":
    main()
