"""The project follows its design rules, and the rules find what they are for."""

import graphlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from design_rules import (
    arrow_breaches,
    call_breaches,
    find_imports,
    import_graph,
    library_breaches,
    repeated_classes,
    stray_paths,
    two_way_ties,
)

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hotlap"

HEAVY = (
    "numba", "numpy", "gymnasium", "torch", "matplotlib", "stable_baselines3", "casadi", "scipy", "pandas", "pydantic",
)  # fmt: skip

# Tests of a whole package rather than of one file.
WHOLE_PACKAGE_TESTS = {"physics_version", "determinism", "golden", "properties", "registration", "end_to_end"}
MAX_LINES = 350
MADE = {"__pycache__", ".hypothesis", "hotlap.egg-info", "node_modules", "_build"}  # by tools, not by people
WRITTEN_BY_HAND = {".py", ".js", ".mjs", ".css", ".html"}


def own_folders() -> set[Path]:
    """The user's home folder and the checkout, as they are named and as they are with links followed."""
    folders = {ROOT, Path.home()}
    return folders | {folder.resolve() for folder in folders}


def read_sources() -> dict[str, str]:
    """Every Python file of the package: relative path to text."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))
    }


def project_files() -> Iterator[Path]:
    """Every file of the project that is not generated."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")  # a worktree's is a file
    for top in ("src", "tests", "tools", "benchmarks", "docs", "experiments", "examples", ".ci"):
        for path in (ROOT / top).rglob("*"):
            if path.is_file() and not MADE.intersection(path.relative_to(ROOT).parts):
                yield path


# --- the project follows the rules ---


@pytest.mark.parametrize("rule", [arrow_breaches, library_breaches, call_breaches])
def test_no_file_breaks_the_rule(rule):
    breaches = [breach for path, source in read_sources().items() for breach in rule(source, path)]
    assert breaches == []


def test_no_modules_import_each_other_in_a_circle():
    graphlib.TopologicalSorter(import_graph(read_sources())).prepare()


def test_no_two_folders_import_from_each_other():
    assert two_way_ties(read_sources()) == set()


@pytest.mark.parametrize("folder", ["benchmarks", "tools"])
def test_scripts_do_not_import_the_command_line(folder):
    scripts = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / folder).glob("*.py")}
    assert scripts
    found = [(path, name) for path, source in scripts.items() for name, _ in find_imports(source, path)]
    assert [(path, name) for path, name in found if name.startswith("hotlap.cli")] == []


@pytest.mark.parametrize("module", ["hotlap", "hotlap.cli.main"])
def test_importing_hotlap_and_its_command_loads_nothing_heavy(module):
    code = f"import {module}, json, sys; print(json.dumps(sorted(sys.modules)))"
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert set(json.loads(answer.stdout)) & set(HEAVY) == set()


def test_no_source_file_is_too_long_no_file_is_a_bucket_and_class_names_are_unique():
    written = [path for path in project_files() if path.suffix in WRITTEN_BY_HAND]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text("utf-8").splitlines()) for path in written}
    assert {path: length for path, length in lengths.items() if length > MAX_LINES} == {}
    buckets = {"utils", "util", "helpers", "helper", "common", "misc"}
    assert [path for path in PACKAGE.rglob("*") if path.stem in buckets] == []
    assert repeated_classes(read_sources()) == {}


def test_tests_mirror_the_package():
    strangers = []
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        if path.is_relative_to(ROOT / "tests" / "attacks"):  # one file per attack surface
            continue
        folder = PACKAGE / path.parent.relative_to(ROOT / "tests")
        subject = path.stem.removeprefix("test_")
        # `test_world_walls.py` is a further file about `world.py`.
        words = subject.split("_")
        starts = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        has_subject = any((folder / f"{start}.py").exists() or (folder / start).is_dir() for start in starts)
        if not folder.is_dir() or not (has_subject or subject in WHOLE_PACKAGE_TESTS):
            strangers.append(path.relative_to(ROOT).as_posix())
    assert strangers == []


def test_no_file_names_a_path_of_one_machine():
    stray = {}
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if found := stray_paths(text, own_folders()):
            stray[path.relative_to(ROOT).as_posix()] = found
    assert stray == {}


# --- the rules themselves ---


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [
        (arrow_breaches, "sim/world.py", "from ..tracks import registry"),
        (arrow_breaches, "sim/world.py", "def f():\n    import hotlap.envs.racer"),
        (arrow_breaches, "tracks/files.py", "if TYPE_CHECKING:\n    from hotlap.envs import RacerEnv"),
        (arrow_breaches, "tracks/files.py", "importlib.import_module('hotlap.envs')"),
        (arrow_breaches, "envs/racer.py", "from hotlap import drivers"),
        (arrow_breaches, "envs/racer.py", "import hotlap"),
        (arrow_breaches, "training/trainer.py", "from hotlap.bridge import client"),
        (arrow_breaches, "web/server.py", "from hotlap.bridge import server"),
        (arrow_breaches, "errors.py", "from .config import load"),
        (arrow_breaches, "cellar/x.py", ""),
        (library_breaches, "tracks/registry.py", "from numba import njit"),
        (library_breaches, "sim/world.py", "import gymnasium as gym"),
        (library_breaches, "evaluation/run.py", "def f():\n    from torch import nn"),
        (library_breaches, "cli/main.py", "__import__('matplotlib')"),
        (library_breaches, "training/checkpoint.py", "import cloudpickle"),
        (call_breaches, "training/run.py", "print('hello')"),
        (call_breaches, "training/run.py", "import torch as th\nth.load('x')"),
        (call_breaches, "training/run.py", "from torch import load"),
        (call_breaches, "training/run.py", "np.load('x', allow_pickle=flag)"),
        (call_breaches, "training/run.py", "model.load_replay_buffer('x')"),
    ],
)
def test_a_breach_is_found(rule, path, source):
    assert len(list(rule(source, path))) == 1


@pytest.mark.parametrize(
    ("rule", "path", "source"),
    [
        (arrow_breaches, "sim/batch_cpu.py", "import hotlap.errors\nfrom . import tyres\nimport hotlapping"),
        (arrow_breaches, "drivers/casual.py", "from hotlap.sim.world import tick\nfrom hotlap.optimal import solver"),
        (arrow_breaches, "web/server.py", "import hotlap.training\nfrom hotlap.bridge.access import AccessRules"),
        (arrow_breaches, "cli/main.py", "import hotlap\nfrom hotlap import training, web, bridge"),
        (arrow_breaches, "__init__.py", "from hotlap._version import __version__\nfrom .envs import RacerEnv"),
        (arrow_breaches, "__main__.py", "from hotlap.cli.main import main"),
        (library_breaches, "sim/batch_cuda.py", "from numba import cuda"),
        (library_breaches, "models/sb3_exchange.py", "import pickle, torch"),
        (call_breaches, "cli/main.py", "print('hello')"),
        (call_breaches, "models/sb3_exchange.py", "import torch\ntorch.load('x')"),
        (call_breaches, "sim/world.py", "np.load('x', allow_pickle=False)\njson.load(file)\nself.print(1)"),
    ],
)
def test_what_is_allowed_passes(rule, path, source):
    assert list(rule(source, path)) == []


def test_a_circle_even_inside_functions_and_a_repeated_class_are_found():
    sources = {"sim/__init__.py": "", "sim/a.py": "from hotlap.sim import b", "sim/b.py": "from .c import f"}
    sources |= {"sim/c.py": "def f():\n    import hotlap.sim.a", "sim/d.py": "from . import a"}
    with pytest.raises(graphlib.CycleError, match="cycle"):
        graphlib.TopologicalSorter(import_graph(sources)).prepare()
    sources = {"sim/a.py": "class X: ...\nclass _Y: ...\nclass Path: ...", "sim/b.py": "class X: ...\nclass _Y: ..."}
    assert repeated_classes(sources) == {"X": ["sim/a.py", "sim/b.py"], "Path": ["pathlib", "sim/a.py"]}


def test_a_path_of_one_machine_is_found():
    home, checkout = Path("/people/ada"), Path("/code/hotlap")
    for text in (f"{home}.", f"{home}/.cache/x", f"'{checkout}/src/x.py'", f"cd {checkout};"):
        assert len(stray_paths(f"see {text} there", [home, checkout])) == 1
    for text in ("https://example.org/people/ada", "/people/adam", "people/ada", "/code/hotlap-2", "~/people/ada"):
        assert stray_paths(f"see {text} there", [home, checkout]) == []
    assert stray_paths("see /usr/bin and /", [Path("/")]) == []
    assert {ROOT, Path.home()} <= own_folders()
