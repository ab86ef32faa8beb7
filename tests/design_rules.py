"""The design rules over source text: imports between packages, homes of libraries, calls, names and paths."""

import ast
import pathlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

# The packages each package builds on: it may import these and everything they build on.
STANDS_ON: dict[str, tuple[str, ...]] = {
    "_version": (),
    "errors": (),
    "byte_limited_cache": (),
    "config": ("errors",),
    "atomic_files": ("errors",),
    "hyperparameters": ("config",),
    "python_processes": (),
    "interrupts": (),
    "sim": ("config", "atomic_files", "byte_limited_cache", "python_processes", "_version"),
    "drawing": (),
    "tracks": ("sim", "drawing"),
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
    "benchmark": ("web",),
    "datasets": ("web",),
    "cli": ("bench", "benchmark", "datasets", "sweeps"),
}
# Single modules that a package may import from a package it does not build on.
SINGLE_MODULES: dict[str, tuple[str, ...]] = {"web": ("hotlap.bridge.access",)}
# `hotlap/__init__.py` may import everything; only the command line and `python -m hotlap` may import it.
FRONT = "__init__"
ENTRY = "__main__"

MODELS_AND_UP = (
    "models", "drivers", "evaluation", "learning", "runs", "training", "reports", "sweeps", "web", "datasets", "bench",
    "cli",
)  # fmt: skip
FROM_ENVS_UP = ("envs", "bridge", *MODELS_AND_UP)
UNPICKLERS = ("pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal")
EXCHANGE_WITH_SB3 = "models/sb3_exchange.py"
# A library may be imported only in these folders and files.
LIBRARY_HOMES: dict[str, tuple[str, ...]] = {
    "numba": ("sim",),
    "llvmlite": ("sim",),
    "gymnasium": FROM_ENVS_UP,
    "torch": (
        "envs/tensor_racer.py",
        "envs/tensor_engines.py",
        "models",
        "learning",
        "training",
        "sweeps",
        "bench/training.py",
    ),
    "stable_baselines3": ("models", "training/sb3", "training/callbacks", "bench/training.py"),
    "ray": ("sweeps",),
    "optuna": ("sweeps",),
    "h5py": ("datasets",),
    "wandb": ("training/loggers.py",),
    "pygame": ("envs/window.py",),
    "huggingface_hub": ("reports/hub_folder.py",),
    "mlflow": ("training/loggers.py",),
    "starlette": ("web",),
    "uvicorn": ("web",),
    "casadi": ("optimal",),
    "matplotlib": (),  # heavy; `drawing` draws everything
    **dict.fromkeys(UNPICKLERS, (EXCHANGE_WITH_SB3,)),
}
# A callback for plain stable-baselines3 prints when it is verbose, as the library's own do.
VERBOSE_CALLBACK = "training/callbacks/racer_metrics.py"
# Functions that unpickle a file.
UNPICKLING_METHODS = {"read_pickle", "load_replay_buffer", "load_from_zip_file", "load_from_pkl", "save_to_pkl"}
WATCHED_CALLS = {"print", "load"} | UNPICKLING_METHODS


def module_name(path: str) -> str:
    """The dotted name of a file, e.g. `hotlap.sim.world` for `sim/world.py`."""
    parts = ["hotlap", *Path(path).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache  # several rules look at them
def find_imports(source: str, path: str) -> tuple[tuple[str, int], ...]:
    """The dotted name and line of every import, also in functions, under TYPE_CHECKING and by `import_module`."""
    return tuple(_walk_imports(source, path))


def _walk_imports(source: str, path: str) -> Iterator[tuple[str, int]]:
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
        if called_name(call) not in WATCHED_CALLS and not any(k.arg == "allow_pickle" for k in call.keywords):
            continue
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
        if folder != Path(folder.anchor) and str(folder) in text:  # a user without a home may have the root folder
            found += re.findall(rf"(?<![\w.~)}}/-]){re.escape(str(folder))}(?![\w-]|\.\w)[^\s\"'`]*", text)
    return found


def repeated_classes(sources: dict[str, str]) -> dict[str, list[str]]:
    """Public top-level classes defined in several files, and those that share a name with pathlib."""
    owners: dict[str, list[str]] = {name: ["pathlib"] for name in pathlib.__all__}
    for path, source in sources.items():
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                owners.setdefault(node.name, []).append(path)
    return {name: paths for name, paths in owners.items() if len(paths) > 1}
