"""The pinned versions can be installed on every Python that we support."""

from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10.0", "3.11.0", "3.12.0", "3.13.0")


def test_a_pin_applies_only_where_its_version_can_be_installed():
    lines = (line.split("#")[0].strip() for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    pins = {canonicalize_name(pin.name): pin for pin in map(Requirement, filter(None, lines))}
    checked, wrong = 0, []
    for package in distributions():
        pin = pins.get(canonicalize_name(package.metadata["Name"] or ""))
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
