"""The design's rules, checked on the source text: who may import whom, which library may be used where."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hotlap"

# What each part stands on directly; it may import these and whatever they stand on.
STANDS_ON: dict[str, tuple[str, ...]] = {
    "_version": (),
    "errors": (),
    "config": ("errors",),
    "atomic_files": ("errors",),
    "sim": ("config", "atomic_files", "_version"),
    "tracks": ("sim",),
    "optimal": ("tracks",),
    "envs": ("tracks",),
    "models": ("envs",),
    "drivers": ("models", "optimal"),
    "evaluation": ("drivers",),
    "training": ("evaluation",),
    "reports": ("training",),
    "bridge": ("envs",),
    "bench": ("reports", "bridge"),
    "scale": ("reports",),
    "web": ("reports",),
    "cli": ("bench", "scale", "web"),
}
# Single modules that a part may import from a part it does not stand on.
SINGLE_MODULES: dict[str, tuple[str, ...]] = {"web": ("hotlap.bridge.access",)}
# The package's front door: offers what lies below, and only the commands and `python -m hotlap` come in through it.
FRONT = "__init__"
ENTRY = "__main__"

MODELS_AND_UP = ("models", "drivers", "evaluation", "training", "reports", "scale", "web", "bench", "cli")
FROM_ENVS_UP = ("envs", "bridge", *MODELS_AND_UP)
UNPICKLERS = ("pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")
EXCHANGE_WITH_SB3 = "models/sb3_exchange.py"
# A library may be imported only under these folders or in these files.
LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "numba": ("sim",),
    "llvmlite": ("sim",),
    "gymnasium": FROM_ENVS_UP,
    "torch": ("models", "training", "scale", "bench/training.py"),
    "stable_baselines3": ("models", "training", "scale", "bench/training.py"),
    "ray": ("scale",),
    "optuna": ("scale",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "casadi": ("optimal",),
    # Drawing is apart from deciding what is drawn.
    "matplotlib": ("reports/plots", "tracks/track_map.py"),
    **dict.fromkeys(UNPICKLERS, (EXCHANGE_WITH_SB3,)),
}
# Calls that unpickle whatever file they are given, by the last part of their name.
UNPICKLING_METHODS = {"read_pickle", "load_replay_buffer", "load_from_zip_file", "load_from_pkl", "save_to_pkl"}

# Gymnasium is not among them: importing hotlap registers its environments, and only Gymnasium can do that.
HEAVY = ("numba", "torch", "matplotlib", "stable_baselines3", "casadi", "scipy", "pandas")

# Tests of a whole package rather than of one of its files.
WHOLE_PACKAGE_TESTS = {"physics_version", "determinism", "golden", "properties", "registration", "end_to_end"}


@dataclass(frozen=True)
class Import:
    """One import: the dotted name asked for and the line it stands on."""

    name: str
    line: int


def module_name(path: str) -> str:
    """Dotted name of a file given relative to the package, e.g. `sim/world.py`."""
    parts = ["hotlap", *Path(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(source: str, path: str) -> Iterator[Import]:
    """Every import anywhere in a file: inside functions and under TYPE_CHECKING too, and by constant name."""
    package = module_name(path).split(".")
    if Path(path).name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                yield Import(f"{origin}.{alias.name}", node.lineno)
        elif isinstance(node, ast.Call) and node.args and called_name(node) in {"import_module", "__import__"}:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield Import(name.value, node.lineno)


def called_name(call: ast.Call) -> str:
    """The last part of what is called: `load` for `torch.load(…)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def part_of(name: str) -> str:
    """Which part of the house a file path or a dotted `hotlap.` name belongs to."""
    pieces = name.split("/") if "/" in name or name.endswith(".py") else name.split(".")[1:]
    return pieces[0].removesuffix(".py") if pieces else FRONT


def allowed_parts(part: str) -> set[str]:
    """The parts that `part` may import, itself included."""
    if part in {FRONT, ENTRY}:
        return set(STANDS_ON) | {FRONT}
    allowed = {part}
    for below in STANDS_ON[part]:
        allowed |= allowed_parts(below)
    return allowed | {FRONT} if part == "cli" else allowed


def is_home(path: str, homes: tuple[str, ...]) -> bool:
    """Whether a file is one of, or lies under one of, these."""
    return any(path == home or path.startswith(home + "/") for home in homes)


def arrow_breaches(source: str, path: str) -> Iterator[str]:
    """Imports of our own code against the arrows."""
    part = part_of(path)
    if part not in STANDS_ON and part not in {FRONT, ENTRY}:
        yield f"{path}: {part} has no place in the design; give it one in STANDS_ON"
        return
    for found in find_imports(source, path):
        if found.name.split(".")[0] != "hotlap":
            continue
        target = part_of(found.name)
        if target not in STANDS_ON:
            target = FRONT
        if found.name.startswith(SINGLE_MODULES.get(part, ())):
            continue
        if target not in allowed_parts(part):
            yield f"{path}:{found.line}: {part} may not import {found.name}"


def library_breaches(source: str, path: str) -> Iterator[str]:
    """Imports of third-party code outside its home."""
    for found in find_imports(source, path):
        library = found.name.split(".")[0]
        homes = LIBRARY_HOMES.get(library)
        if homes is not None and not is_home(path, homes):
            yield f"{path}:{found.line}: {library} belongs in {', '.join(homes)}"


def call_breaches(source: str, path: str) -> Iterator[str]:
    """Calls that print outside the command line or unpickle outside the exchange with SB3."""
    tree = ast.parse(source)
    torch_names = {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            torch_names |= {alias.asname for alias in node.names if alias.name == "torch" and alias.asname}
    for node in ast.walk(tree):
        takes_load = (
            isinstance(node, ast.ImportFrom) and node.module == "torch" and "load" in {name.name for name in node.names}
        )
        if takes_load and path != EXCHANGE_WITH_SB3:
            yield f"{path}:{node.lineno}: torch.load unpickles"
        if not isinstance(node, ast.Call):
            continue
        where = f"{path}:{node.lineno}"
        if isinstance(node.func, ast.Name) and node.func.id == "print" and part_of(path) != "cli":
            yield f"{where}: print belongs in cli; use logging"
        if path == EXCHANGE_WITH_SB3:
            continue
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(owner, ast.Name) and owner.id in torch_names and called_name(node) == "load":
            yield f"{where}: torch.load unpickles"
        if called_name(node) in UNPICKLING_METHODS:
            yield f"{where}: {called_name(node)} unpickles"
        for keyword in node.keywords:
            is_refusal = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
            if keyword.arg == "allow_pickle" and not is_refusal:
                yield f"{where}: allow_pickle"


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which module imports which, among `sources` (relative path to text)."""
    modules = {module_name(path): path for path in sources}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        targets = set()
        for found in find_imports(sources[path], path):
            # `from hotlap.sim import world` names a module, `from hotlap.sim.world import tick` something inside one.
            owner = found.name.rpartition(".")[0]
            targets |= {name for name in (found.name if found.name in modules else owner,) if name in modules}
        graph[module] = targets - {module}
    return graph


def find_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that all reach one another."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting.extend(graph[module])
        return seen

    reach = {module: reachable(module) for module in graph}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in graph
        if module in reach[module]
    }
    return sorted(sorted(group) for group in groups)


def stray_paths(text: str) -> list[str]:
    """Paths that exist on one machine only."""
    return re.findall(r"(?<![\w.~)}-])/(?:work|root)\b[^\s\"'`]*|(?<!\w)\.\./shar(?:ed)\b|(?<![\w/])shar(?:ed)/", text)


def read_sources() -> dict[str, str]:
    """Every Python file of the package: relative path to text."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))
    }


def project_files() -> Iterator[Path]:
    """Every file a reader of the project would see."""
    yield from (path for path in ROOT.iterdir() if path.is_file())
    for top in ("src", "tests", "tools", "benchmarks", "docs", ".ci"):
        for path in (ROOT / top).rglob("*"):
            made = {"__pycache__", ".hypothesis", "hotlap.egg-info"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and not made:
                yield path


# --- the project keeps the rules ---


def test_the_package_is_found():
    assert "sim/__init__.py" in read_sources()


@pytest.mark.parametrize("rule", [arrow_breaches, library_breaches, call_breaches])
def test_no_file_breaks_the_rule(rule):
    breaches = [breach for path, source in read_sources().items() for breach in rule(source, path)]
    assert breaches == []


def test_modules_import_each_other_in_no_circle():
    assert find_cycles(import_graph(read_sources())) == []


def test_importing_hotlap_loads_nothing_heavy():
    code = "import hotlap, json, sys; print(json.dumps(sorted(sys.modules)))"
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert set(json.loads(answer.stdout)) & set(HEAVY) == set()


def test_helpers_live_with_their_owners():
    files = list(PACKAGE.rglob("*"))
    assert [path for path in files if path.name in {"utils.py", "util.py", "helpers.py", "common.py"}] == []
    assert [path for path in files if path.is_dir() and path.name in {"utils", "common"}] == []


def test_tests_mirror_the_package():
    strangers = []
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
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
        if found := stray_paths(text):
            stray[path.relative_to(ROOT).as_posix()] = found
    assert stray == {}


# --- the rules catch what they are for ---


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sim/world.py", "from hotlap.tracks import registry"),
        ("sim/world.py", "from ..tracks import registry"),
        ("sim/world.py", "def f():\n    import hotlap.envs.racer"),
        (
            "tracks/files.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from hotlap.envs import RacerEnv",
        ),
        ("tracks/files.py", "import importlib\nimportlib.import_module('hotlap.envs')"),
        ("envs/racer.py", "from hotlap import drivers"),
        ("envs/racer.py", "from hotlap.bridge import client"),
        ("envs/racer.py", "from hotlap.optimal import solver"),
        ("optimal/solver.py", "from hotlap.envs import RacerEnv"),
        ("training/run.py", "from hotlap.bridge import client"),
        ("training/run.py", "from hotlap.web import server"),
        ("bridge/server.py", "from hotlap.drivers import casual"),
        ("web/server.py", "from hotlap.bridge import server"),
        ("training/trainer.py", "from hotlap.reports import report"),
        ("scale/sweep.py", "from hotlap.web import server"),
        ("bench/peers.py", "from hotlap.scale import sweep"),
        ("evaluation/run.py", "from hotlap.cli import main"),
        ("config.py", "from hotlap.sim import world"),
        ("errors.py", "from .config import load"),
        ("envs/racer.py", "from hotlap import __version__"),
        ("envs/racer.py", "import hotlap"),
        ("helpers/x.py", ""),
    ],
)
def test_an_arrow_the_wrong_way_is_caught(path, source):
    assert len(list(arrow_breaches(source, path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sim/world.py", "from hotlap.errors import TrackError\nfrom . import tyres\nfrom .maths import sin"),
        ("drivers/casual.py", "from hotlap.sim.world import tick\nfrom hotlap.optimal import solver"),
        ("evaluation/run.py", "from hotlap.optimal import solver\nfrom hotlap.envs import RacerEnv"),
        ("web/server.py", "from hotlap.training import run\nfrom hotlap.bridge.access import AccessRules"),
        ("scale/sweep.py", "from hotlap.reports import statistics\nimport optuna"),
        ("bench/peers.py", "from hotlap.bridge import client\nfrom hotlap.training import trainer"),
        ("cli/main.py", "import hotlap\nfrom hotlap import training, web, bridge"),
        ("__init__.py", "from hotlap._version import __version__\nfrom .envs import RacerEnv"),
        ("__main__.py", "from hotlap.cli.main import main"),
        ("sim/batch_cpu.py", "import numpy as np\nimport hotlapping"),
    ],
)
def test_an_arrow_the_right_way_passes(path, source):
    assert list(arrow_breaches(source, path)) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("tracks/geometry.py", "from numba import njit"),
        ("envs/racer.py", "import numba.cuda"),
        ("sim/world.py", "import gymnasium as gym"),
        ("optimal/solver.py", "from gymnasium import spaces"),
        ("config.py", "import gymnasium"),
        ("drivers/casual.py", "import torch"),
        ("evaluation/run.py", "def f():\n    from torch import nn"),
        ("cli/main.py", "from stable_baselines3 import PPO"),
        ("training/run.py", "import casadi"),
        ("archive.py", "import pickle"),
        ("training/checkpoint.py", "import cloudpickle"),
        ("training/checkpoint.py", "from joblib import dump"),
        ("evaluation/run.py", "import matplotlib.pyplot as plt"),
        ("cli/main.py", "__import__('matplotlib')"),
    ],
)
def test_a_library_away_from_home_is_caught(path, source):
    assert len(list(library_breaches(source, path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("sim/batch_cuda.py", "from numba import cuda"),
        ("envs/racer.py", "import gymnasium as gym"),
        ("models/policy.py", "import torch"),
        ("models/sb3_exchange.py", "import pickle, torch"),
        ("tracks/track_map.py", "def draw():\n    import matplotlib.pyplot as plt"),
        ("optimal/solver.py", "import casadi"),
    ],
)
def test_a_library_at_home_passes(path, source):
    assert list(library_breaches(source, path)) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("training/run.py", "print('hello')"),
        ("training/run.py", "import torch\ntorch.load('x')"),
        ("training/run.py", "import torch as th\nth.load('x')"),
        ("training/run.py", "from torch import load"),
        ("archive.py", "import numpy as np\nnp.load('x', allow_pickle=True)"),
        ("archive.py", "import numpy as np\nnp.load('x', allow_pickle=flag)"),
        ("training/run.py", "model.load_replay_buffer('x')"),
    ],
)
def test_a_forbidden_call_is_caught(path, source):
    assert len(list(call_breaches(source, path))) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("cli/main.py", "print('hello')"),
        ("models/sb3_exchange.py", "import torch\ntorch.load('x')"),
        ("archive.py", "import numpy as np\nnp.load('x', allow_pickle=False)\njson.load(file)"),
        ("sim/world.py", "footprint(1)\nself.print(1)"),
    ],
)
def test_an_innocent_call_passes(path, source):
    assert list(call_breaches(source, path)) == []


def test_a_circle_is_caught_even_inside_functions():
    sources = {
        "sim/__init__.py": "",
        "sim/a.py": "from hotlap.sim import b",
        "sim/b.py": "from .c import f",
        "sim/c.py": "def f():\n    import hotlap.sim.a",
        "sim/d.py": "from . import a",
    }
    assert find_cycles(import_graph(sources)) == [["hotlap.sim.a", "hotlap.sim.b", "hotlap.sim.c"]]


def test_a_tree_has_no_circle():
    sources = {"sim/__init__.py": "from .a import f", "sim/a.py": "from .b import g", "sim/b.py": "import os"}
    assert find_cycles(import_graph(sources)) == []


@pytest.mark.parametrize("name", ["work/main/x.py", "work", "root/.cache"])
def test_a_path_of_one_machine_is_caught(name):
    assert stray_paths(f"see {'/' + name} there") == ["/" + name]


@pytest.mark.parametrize("start", ["", "../"])
def test_a_folder_beside_the_project_is_caught(start):
    assert len(stray_paths(f"see {start}{'shared'}/DESIGN.md")) == 1


@pytest.mark.parametrize("text", ["https://example.org/working", "src/workflow", "and/or", "<root/>", "x = a / root"])
def test_other_slashes_pass(text):
    assert stray_paths(text) == []
