"""Python processes are started in one way only, which keeps the current folder off their path."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "hotlap"
OWNER = "python_processes.py"
# Files that may start programs.
STARTERS = ("cli/doctor.py", "sweeps/local_pool.py", "tracks/road_workers.py", "web/optimum.py", "web/run_processes.py")
# Their processes begin with the current folder on the path.
FORBIDDEN = ("multiprocessing", "torch.multiprocessing", "concurrent.futures.ProcessPoolExecutor", "runpy", "pty")
STARTING_CALLS = ("system", "popen", "posix_spawn", "posix_spawnp", "startfile", "create_subprocess_exec",
                  "create_subprocess_shell", "subprocess_exec", "subprocess_shell")  # fmt: skip


def starts(source: str, path: str) -> Iterator[str]:
    """Every start of a process that is not `python_command`'s, and what could be one."""
    for node in ast.walk(ast.parse(source)):
        where = f"{path}:{getattr(node, 'lineno', 0)}"
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith(FORBIDDEN):
                yield f"{where}: {name} starts processes with the current folder on their path"
            if name.split(".")[0] == "subprocess" and path not in STARTERS:
                yield f"{where}: only {', '.join(STARTERS)} start programs"
            if name == "sys.executable":
                yield f"{where}: use python_command"
        if isinstance(node, ast.Attribute) and node.attr == "executable" and ast.unparse(node.value) == "sys":
            yield f"{where}: use python_command"
        if isinstance(node, ast.List | ast.Tuple) and any(
            isinstance(item, ast.Constant) and item.value in ("-m", "-c") for item in node.elts
        ):
            yield f"{where}: use python_command"
        if isinstance(node, ast.Attribute) and (node.attr in STARTING_CALLS or node.attr.startswith(("exec", "spawn"))):
            owner = ast.unparse(node.value)
            if owner in ("os", "asyncio", "loop"):
                yield f"{where}: {owner}.{node.attr} starts a program"
        if isinstance(node, ast.Call) and any(k.arg == "shell" for k in node.keywords):
            yield f"{where}: a shell"


def test_no_other_file_starts_python():
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name != OWNER:
            found += starts(path.read_text(encoding="utf-8"), name)
    assert found == []
    # The rule looks at the files that do start programs.
    assert all("import subprocess" in (PACKAGE / name).read_text(encoding="utf-8") for name in STARTERS)
    assert list(starts((PACKAGE / OWNER).read_text(encoding="utf-8"), OWNER))


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("web/optimum.py", "import sys\ncommand = [sys.executable]"),
        ("web/optimum.py", "from sys import executable"),
        ("web/optimum.py", "command = (python, '-m', 'hotlap')"),
        ("web/optimum.py", "command = ['python3', '-c', code]"),
        ("web/optimum.py", "subprocess.run('python -m hotlap', shell=True)"),
        ("web/leaderboard.py", "import subprocess"),
        ("web/leaderboard.py", "def f():\n    from subprocess import Popen"),
        ("sweeps/local_pool.py", "import multiprocessing.pool"),
        ("sweeps/local_pool.py", "from multiprocessing import Process"),
        ("sweeps/local_pool.py", "from concurrent.futures import ProcessPoolExecutor"),
        ("sweeps/local_pool.py", "import torch.multiprocessing"),
        ("sweeps/local_pool.py", "os.execv(path, arguments)"),
        ("sweeps/local_pool.py", "os.system('hotlap')"),
        ("sweeps/local_pool.py", "asyncio.create_subprocess_exec('python')"),
    ],
)
def test_another_start_is_found(path, source):
    assert list(starts(source, path))
