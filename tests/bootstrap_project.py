"""An empty project for the tests of set-up, without a network: pip and the verbs' commands are noted, not run."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"
HERE = f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"
INPUTS = ("pyproject.toml", "constraints.txt", "bootstrap.py", "bootstrap_packages.py", "bootstrap_venv.py")
MODULES = ("bootstrap_venv", "bootstrap_packages", "bootstrap")  # each imports those before it


@pytest.fixture
def bootstrap(tmp_path, monkeypatch):
    """A private copy of `tools/bootstrap.py` and of its `packages` and `venv`, on Linux without a driver."""
    for name in MODULES:
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    assert [path.name for path in module.INPUTS] == list(INPUTS)
    for name in INPUTS:
        (tmp_path / name).write_text("numpy==1.0\ntorch==2.13.0\n", encoding="utf-8")
    venv, packages = module.venv, module.packages
    venv.ROOT, venv.VENV = tmp_path, tmp_path / ".venv"
    venv.ask_python = lambda code: HERE
    packages.CONSTRAINTS = tmp_path / "constraints.txt"
    packages.TOOL_HASHES, packages.BUILD_HASHES = tmp_path / "build-tools.txt", tmp_path / "box2d-build.txt"
    packages.TORCH_HASHES = tmp_path / "hashes" / "torch.json"
    packages.has_nvidia_driver = lambda: False
    packages.is_reachable = lambda url: False
    module.STAMP = venv.VENV / "bootstrap-stamp.json"
    module.INPUTS = tuple(tmp_path / name for name in INPUTS)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("HOTLAP_TORCH", "HOTLAP_HASHES", "HOTLAP_PINS"):
        monkeypatch.delenv(name, raising=False)
    return module


@pytest.fixture
def pip(bootstrap):
    """The arguments of every pip call, noted instead of run; a call that contains a text of `pip.failing` fails.

    `pip.torch` has the requirements file of each call that installs torch alone.
    """

    class Calls(list):
        failing: tuple[str, ...] = ()

    calls = Calls()
    calls.torch = []

    def install(*arguments):
        calls.append(" ".join(arguments))
        if calls[-1].endswith("torch.txt"):
            calls.torch.append(Path(arguments[-1]).read_text(encoding="utf-8"))
        return not any(text in calls[-1] for text in calls.failing)

    bootstrap.venv.pip_install = install
    bootstrap.venv.make_venv = lambda: (calls.append("venv"), bootstrap.venv.VENV.mkdir())
    return calls


@pytest.fixture
def commands(bootstrap):
    """The verbs' commands, noted instead of run."""
    noted = []
    bootstrap.run = lambda command: noted.append(" ".join(command)) or 0
    return noted
