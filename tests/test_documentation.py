"""The commands and Python examples of the documentation run, and its tables match the code."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from hotlap.config import camel_case
from hotlap.drivers.casual import CasualHabits
from hotlap.envs.settings import RacerSettings
from hotlap.training.recipe import resolve_config

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
# Commands of the README that take more than seconds or do not end.
LONG = ("train", "resume", "bridge", "play", "sweep", "bench")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def commands(path: Path, *programs: str) -> list[str]:
    """The command lines in the code blocks of a page, without prompt and comment."""
    lines = "\n".join(blocks(path, r"[a-z]*")).splitlines()
    found = [line.removeprefix("$ ").partition("  #")[0].partition(" # ")[0].strip() for line in lines]
    return [line for line in found if line.startswith(tuple(program + " " for program in programs))]


def run(command: list[str], folder: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    answer = subprocess.run(
        command, cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, timeout=55
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("command", [c for c in commands(ROOT / "README.md", "hotlap") if c.split()[1] not in LONG])
def test_the_short_commands_of_the_readme_run(tmp_path, command):
    arguments = shlex.split(command)[1:]
    run([sys.executable, "-m", "hotlap", *arguments], tmp_path)


def test_the_readme_activates_the_environment_before_its_commands():
    """`make` installs into .venv, so that `hotlap` and `tensorboard` are not found without it."""
    lines = "\n".join(blocks(ROOT / "README.md", "(?:sh|console)")).splitlines()
    activation = lines.index("source .venv/bin/activate")
    programs = [line.removeprefix("$ ").partition(" ")[0] for line in lines]
    assert min(programs.index("tensorboard"), programs.index("hotlap")) > activation


def test_the_documented_extension_of_a_run_is_longer_than_the_recipe():
    [steps] = re.findall(r"^hotlap resume \S+ --steps (\d+)", (DOCS / "training.md").read_text("utf-8"), re.MULTILINE)
    assert int(steps) > resolve_config(None, {}).steps


@pytest.fixture
def bootstrap():
    """The module `tools/bootstrap.py`, if this is its environment and nothing would be installed."""
    spec = importlib.util.spec_from_file_location("bootstrap_of_documentation", ROOT / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if Path(sys.prefix) != module.VENV or not module.is_current(module.read_stamp()):
        pytest.skip("the verbs would install packages first: run `make setup`, then the tests by `make test`")
    return module


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("command", commands(ROOT / "CONTRIBUTING.md", "make", "python"))
def test_the_commands_of_the_contributing_page_run(bootstrap, command):
    """Cheap commands run as printed, test verbs only collect one folder, and make only prints the other recipes."""
    program, *arguments = shlex.split(command)
    if program == "python":
        assert run([sys.executable, *arguments], ROOT).stdout
        return
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    verb = arguments[0]
    assert verb in bootstrap.VERBS
    is_cheap = any(argument.startswith("ARGS=") for argument in arguments)
    if verb not in ("test", "slow"):
        arguments += ["--dry-run"]
    elif not is_cheap:
        arguments += ["ARGS=tests/sim --collect-only -q"]
    answer = run(["make", *arguments, f"PYTHON={sys.executable}"], ROOT, MAKEFLAGS="")
    expected = f"tools/bootstrap.py {verb}" if "--dry-run" in arguments else r"passed" if is_cheap else r"collected"
    assert re.search(expected, answer.stdout)


def test_the_rooms_and_files_of_the_contributing_page_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    package = ROOT / "src" / "hotlap"
    rooms = {path.name for path in package.iterdir() if (path / "__init__.py").is_file()}
    assert set(re.findall(r"^  (\w+)/ ", text, re.MULTILINE)) == rooms
    named = set(re.findall(r"`([\w/]+/[\w.]*)`", text)) - {"sim/test_tyres.py"}
    assert [name for name in sorted(named) if not ((package / name).exists() or (ROOT / name).exists())] == []


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", ["casual-driver.md", "environment.md"])
def test_the_python_examples_run_from_top_to_bottom_and_raise_the_errors_shown(name, capsys):
    examples = blocks(DOCS / name, "python")
    assert examples
    names: dict[str, object] = {}
    for number, example in enumerate(examples, start=1):
        exec(compile(example, f"{name}, example {number}", "exec"), names)
    if shown := re.findall(r"print\(error\)  # (.*)", "\n".join(examples)):
        assert capsys.readouterr().out.splitlines() == shown
    assert bool(shown) == (name == "environment.md")


def test_the_documented_configuration_is_the_default():
    [text] = blocks(DOCS / "environment.md", "json")
    defaults = asdict(RacerSettings())
    assert json.loads(text) == {
        part: {camel_case(key): value for key, value in values.items()} for part, values in defaults.items()
    }


def test_the_documented_habits_are_the_casual_drivers():
    habits = CasualHabits()
    documented = {}
    text = (DOCS / "casual-driver.md").read_text(encoding="utf-8")
    for names, values in re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([\d., ]+) \|", text, re.MULTILINE):
        numbers = [float(value) for value in values.split(",")]
        documented.update(zip(re.findall(r"`(\w+)`", names), numbers, strict=True))
    assert documented == {field.name: getattr(habits, field.name) for field in fields(habits)}
