"""The pinned versions can be installed on every Python that we support, and their hashes are known."""

import json
import re
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HASHES = ROOT / "hashes"
PYTHONS = ("3.10.0", "3.11.0", "3.12.0", "3.13.0")
# The files that have all hashes of a package, and their packages.
BUILDS = {"build-tools": ["setuptools", "swig", "wheel"], "box2d-build": ["box2d-py"]}

LINES = [line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()]
PINS = {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, LINES))}


def test_a_pin_applies_only_where_its_version_can_be_installed():
    checked, wrong = 0, []
    for package in distributions():
        pin = PINS.get(canonicalize_name(package.metadata["Name"] or ""))
        if pin is None or not pin.specifier.contains(package.version):
            continue
        checked += 1
        needed = SpecifierSet(package.metadata["Requires-Python"] or "")
        for python in PYTHONS:
            environment = {"python_version": python.rsplit(".", 1)[0], "python_full_version": python}
            applies = pin.marker is None or pin.marker.evaluate(environment)
            if applies and not needed.contains(python):
                wrong.append(f"{pin} on Python {python}, which it does not support")
    assert wrong == []
    assert checked > 20


def test_every_constraint_is_one_exact_pin_and_torch_is_among_them():
    assert [pin for pin in PINS.values() if not re.fullmatch(r"==[^,+*]+", str(pin.specifier))] == []
    assert len(PINS) == len(list(filter(None, LINES)))
    assert {"torch", "hotlap"} & set(PINS) == {"torch"}


@pytest.mark.parametrize(
    "path", sorted({*HASHES.glob("*.txt"), *(HASHES / f"{name}.txt" for name in BUILDS)}), ids=lambda path: path.stem
)
def test_every_hash_is_of_a_pinned_version(path):
    """After a pin changes, `tools/make_hashes.py` must write the hashes again."""
    pattern = r"([\w.-]+)==(\S+)(?: --hash=sha256:[0-9a-f]{64})" + ("+" if path.stem in BUILDS else "")
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    found = dict(re.fullmatch(pattern, line).groups() for line in lines)
    assert list(found) == BUILDS.get(path.stem, list(found))
    for name, version in found.items():
        assert str(PINS[canonicalize_name(name)].specifier) == f"=={version}"


def test_the_hashes_of_torch_are_of_the_pinned_version_for_every_platform():
    found = json.loads((HASHES / "torch.json").read_text(encoding="utf-8"))
    assert found["pin"] in LINES
    platforms = ("linux-x86_64", "linux-aarch64", "darwin-arm64", "win32-amd64")
    assert set(found["hashes"]) == {f"{one}-cpython3{minor}" for one in platforms for minor in range(10, 14)}
    for builds in found["hashes"].values():
        assert "default" in builds
        assert all(re.fullmatch(r"[0-9a-f]{64}", value) for value in builds.values())
