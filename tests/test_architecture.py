"""The design rules, checked on the source text: imports between packages, homes of libraries, names and sizes."""

import ast
import graphlib
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hotlap"

# The packages each package builds on: it may import these and everything they build on.
STANDS_ON: dict[str, tuple[str, ...]] = {
    "_version": (),
    "errors": (),
    "byte_limited_cache": (),
    "config": ("errors",),
    "atomic_files": ("errors",),
    "hyperparameters": ("config",),
    "python_processes": (),
    "sim": ("config", "atomic_files", "byte_limited_cache", "python_processes", "_version"),
    "tracks": ("sim",),
    "optimal": ("tracks",),
    "envs": ("tracks",),
    "models": ("envs",),
    "drivers": ("models", "optimal"),
    "evaluation": ("drivers",),
    "learning": ("models", "hyperparameters"),
    "runs": ("evaluation", "hyperparameters"),
    "training": ("runs", "learning"),
    "reports": ("training",),
    "bridge": ("envs",),
    "bench": ("reports", "bridge"),
    "sweeps": ("reports",),
    "web": ("reports",),
    "cli": ("bench", "sweeps", "web"),
}
# Single modules that a package may import from a package it does not build on.
SINGLE_MODULES: dict[str, tuple[str, ...]] = {"web": ("hotlap.bridge.access",)}
# `hotlap/__init__.py` may import everything; only the command line and `python -m hotlap` may import it.
FRONT = "__init__"
ENTRY = "__main__"

MODELS_AND_UP = (
    "models",
    "drivers",
    "evaluation",
    "learning",
    "runs",
    "training",
    "reports",
    "sweeps",
    "web",
    "bench",
    "cli",
)
FROM_ENVS_UP = ("envs", "bridge", *MODELS_AND_UP)
UNPICKLERS = ("pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")
EXCHANGE_WITH_SB3 = "models/sb3_exchange.py"
# A library may be imported only in these folders and files.
LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "numba": ("sim",),
    "llvmlite": ("sim",),
    "gymnasium": FROM_ENVS_UP,
    "torch": ("models", "learning", "training", "sweeps", "bench/training.py"),
    "stable_baselines3": ("models", "training/sb3", "training/callbacks", "bench/training.py"),
    "ray": ("sweeps",),
    "optuna": ("sweeps",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "casadi": ("optimal",),
    "matplotlib": ("reports/plots", "tracks/maps/track_map.py", "tracks/maps/map_drawing.py"),
    **dict.fromkeys(UNPICKLERS, (EXCHANGE_WITH_SB3,)),
}
# A callback for plain stable-baselines3 prints when it is verbose, as the library's own do.
VERBOSE_CALLBACK = "training/callbacks/racer_metrics.py"
# Functions that unpickle a file.
UNPICKLING_METHODS = {"read_pickle", "load_replay_buffer", "load_from_zip_file", "load_from_pkl", "save_to_pkl"}

# Gymnasium is not listed: importing hotlap registers its environments with it.
HEAVY = ("numba", "torch", "matplotlib", "stable_baselines3", "casadi", "scipy", "pandas")

# Tests of a whole package rather than of one file.
WHOLE_PACKAGE_TESTS = {"physics_version", "determinism", "golden", "properties", "registration", "end_to_end"}
MAX_LINES = 350


def module_name(path: str) -> str:
    """The dotted name of a file, e.g. `hotlap.sim.world` for `sim/world.py`."""
    parts = ["hotlap", *Path(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def find_imports(source: str, path: str) -> Iterator[tuple[str, int]]:
    """The dotted name and line of every import, also in functions, under TYPE_CHECKING and by `import_module`."""
    package = module_name(path).split(".")
    if Path(path).name != "__init__.py":
        package = package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *(node.module.split(".") if node.module else [])])
            for alias in node.names:
                yield f"{origin}.{alias.name}", node.lineno
        elif isinstance(node, ast.Call) and node.args and called_name(node) in {"import_module", "__import__"}:
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                yield name.value, node.lineno


def called_name(call: ast.Call) -> str:
    """The last part of a called name: `load` for `torch.load(…)`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def part_of(name: str) -> str:
    """The package of a file path or of a dotted `hotlap.` name."""
    pieces = name.split("/") if "/" in name or name.endswith(".py") else name.split(".")[1:]
    return pieces[0].removesuffix(".py") if pieces else FRONT


def allowed_parts(part: str) -> set[str]:
    """The packages that `part` may import, including itself."""
    if part in {FRONT, ENTRY}:
        return set(STANDS_ON) | {FRONT}
    allowed = {part}
    for below in STANDS_ON[part]:
        allowed |= allowed_parts(below)
    return allowed | {FRONT} if part == "cli" else allowed


def arrow_breaches(source: str, path: str) -> Iterator[str]:
    """Imports of another package that the design does not allow."""
    part = part_of(path)
    if part not in STANDS_ON and part not in {FRONT, ENTRY}:
        yield f"{path}: {part} is not in the design; add it to STANDS_ON"
        return
    for name, line in find_imports(source, path):
        if name.split(".")[0] != "hotlap" or name.startswith(SINGLE_MODULES.get(part, ())):
            continue
        target = part_of(name) if part_of(name) in STANDS_ON else FRONT
        if target not in allowed_parts(part):
            yield f"{path}:{line}: {part} may not import {name}"


def library_breaches(source: str, path: str) -> Iterator[str]:
    """Imports of a library outside its home."""
    for name, line in find_imports(source, path):
        library = name.split(".")[0]
        homes = LIBRARY_HOMES.get(library)
        if homes is not None and not any(f"{path}/".startswith(f"{home}/") for home in homes):
            yield f"{path}:{line}: {library} belongs in {', '.join(homes)}"


def call_breaches(source: str, path: str) -> Iterator[str]:
    """Calls that print outside the command line or unpickle outside the exchange with stable-baselines3."""
    may_unpickle = path == EXCHANGE_WITH_SB3
    for name, line in find_imports(source, path):
        if name == "torch.load" and not may_unpickle:
            yield f"{path}:{line}: torch.load unpickles"
    for call in [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]:
        where = f"{path}:{call.lineno}"
        name = ast.unparse(call.func)
        if name == "print" and part_of(path) != "cli" and path != VERBOSE_CALLBACK:
            yield f"{where}: print belongs in cli; use logging"
        if not may_unpickle and (name in {"torch.load", "th.load"} or called_name(call) in UNPICKLING_METHODS):
            yield f"{where}: {name} unpickles"
        if not may_unpickle and any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in call.keywords):
            yield f"{where}: allow_pickle"


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """The modules that each module imports, among `sources` (relative path to text)."""
    modules = {module_name(path): path for path in sources}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        targets = set()
        for name, _ in find_imports(sources[path], path):
            # `from hotlap.sim import world` names a module, `from hotlap.sim.world import tick` something inside one.
            owner = name.rpartition(".")[0]
            targets |= {name if name in modules else owner} & modules.keys()
        graph[module] = targets - {module}
    return graph


def two_way_ties(sources: dict[str, str]) -> set[tuple[str, str]]:
    """Pairs of folders that import from each other; a file beside the packages counts as a folder of its own."""
    paths = {module_name(path): path for path in sources if path not in {"__init__.py", "__main__.py"}}
    folders = {module: str(Path(path).parent) if "/" in path else path for module, path in paths.items()}
    ties = {
        (folders[module], folders[target])
        for module, targets in import_graph(sources).items()
        for target in targets
        if module in folders and target in folders
    }
    return {(one, other) for one, other in ties if one < other and (other, one) in ties}


def stray_paths(text: str, folders: Iterable[Path]) -> list[str]:
    """Absolute paths in or below folders of the user who runs the tests: they exist on one machine only."""
    found = []
    for folder in folders:
        if folder != Path(folder.anchor):  # a user without a home may have the root folder
            found += re.findall(rf"(?<![\w.~)}}/-]){re.escape(str(folder))}(?![\w-]|\.\w)[^\s\"'`]*", text)
    return found


def own_folders() -> set[Path]:
    """The user's home folder and the checkout, as they are named and as they are with links followed."""
    folders = {ROOT, Path.home()}
    return folders | {folder.resolve() for folder in folders}


def repeated_classes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Public top-level classes defined in several files, and those that share a name with pathlib."""
    owners: dict[str, list[str]] = {name: ["pathlib"] for name in pathlib.__all__}
    for path, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in owners.items() if len(paths) > 1}


def read_sources() -> dict[str, str]:
    """Every Python file of the package: relative path to text."""
    return {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))
    }


def project_files() -> Iterator[Path]:
    """Every file of the project that is not generated."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.name != ".git")  # a worktree's is a file
    for top in ("src", "tests", "tools", "benchmarks", "docs", "experiments", ".ci"):
        for path in (ROOT / top).rglob("*"):
            made = {"__pycache__", ".hypothesis", "hotlap.egg-info", "node_modules"} & set(path.relative_to(ROOT).parts)
            if path.is_file() and not made:
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


def test_importing_hotlap_loads_nothing_heavy():
    code = "import hotlap, json, sys; print(json.dumps(sorted(sys.modules)))"
    environ = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ)
    assert set(json.loads(answer.stdout)) & set(HEAVY) == set()


def test_no_source_file_is_too_long_no_file_is_a_bucket_and_class_names_are_unique():
    lengths = {path: len(source.splitlines()) for path, source in read_sources().items()}
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
