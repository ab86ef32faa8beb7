"""`hotlap doctor`: what is installed, what is missing and how to get it."""

import re
from importlib import metadata
from importlib.metadata import PackageNotFoundError, PathDistribution, version
from pathlib import Path

import pytest

import hotlap as package
from hotlap.cli import doctor as doctor_module


def test_figures(hotlap, home):
    figures = hotlap("doctor", "--json").figures
    assert set(figures) == {
        "hotlap", "physics", "python", "platform", "threads", "gpu", "torch_cuda", "compiled_code", "your_tracks",
        "packages",
    }  # fmt: skip
    assert (figures["hotlap"], figures["physics"]) == (package.__version__, package.PHYSICS_VERSION)
    assert figures["your_tracks"] == str(home / "tracks")
    assert figures["packages"]["numpy"] == version("numpy")
    assert figures["threads"] >= 1


def test_missing_packages_are_listed_with_their_purpose_and_how_to_get_them(hotlap, monkeypatch):
    def missing(name):
        if name in {"casadi", "pillow", "Box2D", "box2d-py", "numba-cuda", "optuna", "ray", "torch"}:
            raise PackageNotFoundError(name)
        return version(name)

    monkeypatch.setattr(metadata, "version", missing)
    lines = {line.split()[0]: line for line in hotlap("doctor").out.splitlines()}
    assert 'needed for solving the optimal lap of a track. Get it: pip install "hotlap[optimal]"' in lines["casadi"]
    assert "missing" in lines["Box2D"]
    for name, extra in (("numba-cuda", "gpu"), ("optuna", "sweeps"), ("ray", "sweeps"), ("torch", "train")):
        assert f'Get it: pip install "hotlap[{extra}]"' in lines[name]
    assert "MISSING" in lines["pillow"]
    assert lines["numpy"].endswith(version("numpy"))
    packages = hotlap("doctor", "--json").figures["packages"]
    assert (packages["casadi"], packages["Box2D"]) == (None, None)


def test_it_recommends_nothing_that_hotlap_does_not_use():
    source = "".join(path.read_text(encoding="utf-8") for path in Path(package.__file__).parent.rglob("*.py"))
    modules = {"numba-cuda": r"numba\.cuda", "stable-baselines3": "stable_baselines3"}
    modules |= {"mlflow-skinny": "mlflow", "huggingface-hub": "huggingface_hub", "pygame-ce": "pygame"}
    for name in set(doctor_module._OPTIONAL) - {"Box2D"}:
        module = modules.get(name, name)
        use = rf'^\s*(?:import|from) {module}\b|_import_library\("{module}"\)'
        assert re.search(use, source, re.MULTILINE), name


@pytest.mark.parametrize(("line", "cuda"), [("cuda: Optional[str] = '12.6'", "12.6"), ("cuda = None", None)])
def test_the_cuda_version_of_torch(hotlap, monkeypatch, tmp_path, line, cuda):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '2.13.0'\n{line}\nhip = None\n")
    monkeypatch.setattr(metadata, "distribution", lambda name: PathDistribution(tmp_path / "torch.dist-info"))
    monkeypatch.setattr(doctor_module, "_gpu", lambda: "NVIDIA Great 1")
    assert hotlap("doctor", "--json").figures["torch_cuda"] == cuda
    assert ("--index-url https://download.pytorch.org/whl/cu" in hotlap("doctor").out) == (cuda is None)


def test_gpus_are_listed_by_name_and_a_read_only_cache_folder_is_reported(hotlap, monkeypatch, tmp_path):
    from hotlap.sim import compilation

    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA Great 1'\necho 'NVIDIA Great 2'\n")
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert hotlap("doctor", "--json").figures["gpu"] == "NVIDIA Great 1, NVIDIA Great 2"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert hotlap("doctor", "--json").figures["gpu"] is None
    monkeypatch.setattr(compilation, "cache_folder", lambda: None)
    assert "Set HOTLAP_CACHE" in hotlap("doctor").out
