"""`pip install hotlap` brings no torch: everything but training works without it, and training says what to install."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
WORKING = [
    "--help",
    "tracks list",
    "evaluate champion --episodes 2",
    "drive generalist --laps 1 --png out/lap.png",
    "race champion casual --laps 1",
    "report champion --out out/report",
]
REFUSED = ["train --steps 10", "export champion --format sb3 --out out/model.zip", "bench train"]
SCRIPT = """
import contextlib, io, json, shlex, sys
left_out, commands = json.loads(sys.argv[1])

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in left_out:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Refusal())
import hotlap, hotlap.web.server, hotlap.bridge.server, hotlap.bridge.client
from hotlap.cli.main import main

answers = {}
for command in commands:
    sys.argv = ["hotlap", *shlex.split(command)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            answers[command] = stop.code, out.getvalue(), err.getvalue()
try:
    hotlap.TensorRacer
except hotlap.HotlapError as error:
    answers["TensorRacer"] = 2, "", str(error)
print(json.dumps(answers))
"""


def needed(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring, directly or not."""
    found: set[str] = set()
    rest = [(Requirement(text), "") for text in requirements]
    while rest:
        requirement, extra = rest.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        if name not in found:
            found.add(name)
            further = [Requirement(text) for text in metadata.requires(name) or []]
            rest += [(one, extra) for one in further for extra in ("", *requirement.extras)]
    return found


def left_out() -> list[str]:
    """The top-level modules of everything that is installed here, but not by `pip install hotlap`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = {"hotlap", "pip", "setuptools", *needed(project["dependencies"])}
    homes = metadata.packages_distributions()
    return [
        module
        for module, names in homes.items()
        if re.fullmatch(r"\w+", module) and not {canonicalize_name(name) for name in names} & brought
    ]


def test_the_extra_train_brings_torch_and_the_package_alone_does_not():
    assert {"torch", "stable_baselines3", "tensorboard", "google", "pandas"} <= set(left_out())
    assert not {"numpy", "numba", "starlette", "pydantic", "hotlap"} & set(left_out())


@pytest.fixture(scope="module")
def answers(compiled, tmp_path_factory):
    """Exit code, output and errors of each command in a Python without these libraries."""
    folder = tmp_path_factory.mktemp("bare")
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "HOTLAP_HOME": str(folder / "home")}
    command = [sys.executable, "-c", SCRIPT, json.dumps([left_out(), WORKING + REFUSED])]
    answer = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=55, check=False)
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.parametrize("command", WORKING)
def test_everything_but_training_works(answers, command):
    code, out, err = answers[command]
    assert (code, err.count("Traceback")) == (0, 0), err
    assert out


@pytest.mark.parametrize("command", [*REFUSED, "TensorRacer"])
def test_what_needs_torch_says_how_to_get_it_in_one_line(answers, command):
    code, out, err = answers[command]
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert err.rstrip().endswith('Install it: pip install "hotlap[train]".')
