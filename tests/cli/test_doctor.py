"""`hotlap doctor`: what is here, what is missing, and how to get it."""

from importlib.metadata import PackageNotFoundError, version

import pytest

import hotlap as package
from hotlap.cli import doctor as doctor_module


@pytest.fixture
def without_extras(monkeypatch):
    def missing(name):
        if name in {"casadi", "ray", "Box2D", "box2d-py"}:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(doctor_module, "version", missing)


def test_figures(hotlap, home):
    answer = hotlap("doctor", "--json")
    assert answer.code == 0
    figures = answer.figures
    assert set(figures) == {
        "hotlap", "physics", "python", "platform", "threads", "gpu", "compiled_code", "your_tracks", "packages"
    }  # fmt: skip
    assert (figures["hotlap"], figures["physics"]) == (package.__version__, package.PHYSICS_VERSION)
    assert figures["your_tracks"] == str(home / "tracks")
    assert figures["packages"]["numpy"] == version("numpy")
    assert figures["threads"] >= 1


def test_what_is_missing_comes_with_what_it_gives_and_how_to_get_it(hotlap, without_extras):
    answer = hotlap("doctor")
    assert answer.code == 0
    lines = {line.split()[0]: line for line in answer.out.splitlines()}
    assert "missing; it gives the optimal lap. Get it: pip install 'hotlap[optimal]'" in lines["casadi"]
    assert "missing" in lines["ray"]
    assert "missing" in lines["Box2D"]
    assert lines["numpy"].endswith(version("numpy"))


def test_missing_packages_are_null(hotlap, without_extras):
    packages = hotlap("doctor", "--json").figures["packages"]
    assert packages["casadi"] is None
    assert packages["Box2D"] is None


def test_a_graphics_card_is_named(hotlap, monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA Great 1'\necho 'NVIDIA Great 2'\n")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert hotlap("doctor", "--json").figures["gpu"] == "NVIDIA Great 1, NVIDIA Great 2"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert hotlap("doctor", "--json").figures["gpu"] is None


def test_a_cache_that_cannot_be_written_is_said(hotlap, monkeypatch):
    from hotlap.sim import compilation as compiling

    monkeypatch.setattr(compiling, "cache_folder", lambda: None)
    assert "Set HOTLAP_CACHE" in hotlap("doctor").out
