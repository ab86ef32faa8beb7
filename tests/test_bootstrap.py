"""`tools/bootstrap.py` without a network: its verbs, and that a second call installs nothing."""

import ast
import json
import os
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from bootstrap_project import HERE, INPUTS, MODULES, TOOLS

ROOT = TOOLS.parent


@pytest.mark.parametrize("version", [(3, 9), (3, 14), (4, 0)])
@pytest.mark.parametrize(
    ("found", "advice"), [("python3.12", "make test PYTHON=python3.12"), (None, "Install one of those")]
)
def test_an_unsupported_python_is_refused_in_one_line(bootstrap, monkeypatch, capsys, version, found, advice):
    monkeypatch.setattr(sys, "version_info", (*version, 1))
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name if name == found else None)
    assert bootstrap.main(["test"]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "Hotlap needs Python 3.10 to 3.13; this is {}.{}.".format(*version) in line
    assert advice in line


def test_an_old_python_can_parse_the_files_and_their_versions_are_those_of_the_project(bootstrap):
    for name in MODULES:
        ast.parse((TOOLS / f"{name}.py").read_text(encoding="utf-8"), feature_version=(3, 7))
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'requires-python = ">={}.{}"'.format(*bootstrap.OLDEST) in text
    assert "Python :: {}.{}".format(*bootstrap.NEWEST) in text


def test_the_first_call_installs_torch_before_the_project_and_the_second_nothing(bootstrap, pip, commands):
    assert bootstrap.main(["test", "-k", "laps"]) == 0
    assert [call.split()[-1] for call in pip[:3]] == ["venv", "torch==2.13.0", str(bootstrap.packages.TOOL_HASHES)]
    assert pip[3].endswith("-e .[dev]")
    pip.clear()
    assert bootstrap.main(["test"]) == 0
    assert pip == []
    assert commands == [f"-m {bootstrap.FAST_TESTS} -k laps", f"-m {bootstrap.FAST_TESTS}"]


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_input_installs_again_into_the_same_environment(bootstrap, pip, name):
    bootstrap.main(["setup"])
    pip.clear()
    with (bootstrap.venv.ROOT / name).open("a", encoding="utf-8") as file:
        file.write("# more\n")
    bootstrap.main(["setup"])
    assert "venv" not in pip
    assert pip[-1].endswith("-e .[dev]")


def test_an_interrupted_installation_leaves_no_stamp_and_a_damaged_one_counts_as_none(bootstrap, pip):
    bootstrap.main(["setup"])
    (bootstrap.venv.ROOT / "constraints.txt").write_text("torch==2.14.0\n", encoding="utf-8")

    bootstrap.packages.install_project = Mock(side_effect=KeyboardInterrupt)
    assert bootstrap.main(["test"]) == 130
    assert not bootstrap.STAMP.exists()
    for damaged in ("", "{", "[]", "null"):
        bootstrap.STAMP.write_text(damaged, encoding="utf-8")
        assert bootstrap.read_stamp() == {}


@pytest.mark.parametrize(
    ("answer", "root", "words"),
    [
        (None, {}, "has no working Python with pip"),
        ("cpython 3.8", {}, "has cpython 3.8, not"),
        (HERE, {"root": "elsewhere"}, "was made for another folder (elsewhere)"),
    ],
)
def test_an_unusable_environment_is_replaced(bootstrap, pip, capsys, answer, root, words):
    bootstrap.main(["setup"])
    bootstrap.STAMP.write_text(json.dumps({**bootstrap.read_stamp(), **root}), encoding="utf-8")
    bootstrap.venv.ask_python = lambda code: answer
    pip.clear()
    assert bootstrap.main(["setup"]) == 0
    assert pip[0] == "venv"
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verb", "extra", "words"),
    [
        ("bench", "peers", "the benchmark lists the missing ones"),
        ("docs", "docs", "the documentation cannot be built without it"),
        ("wheel", "package", "its check is left out"),
    ],
)
def test_what_only_one_verb_needs_is_installed_once_and_may_fail(bootstrap, pip, capsys, commands, verb, extra, words):
    pip.failing = (f".[{extra}]",)
    assert bootstrap.main([verb]) == 0
    assert words in capsys.readouterr().err
    assert pip.pop().endswith(f"-e .[{extra}]")
    pip.clear()
    bootstrap.main([verb])
    assert pip == []


def test_further_arguments_go_to_the_last_command_and_check_stops_at_the_first_failure(bootstrap, pip, commands):
    bootstrap.main(["bench", "-k", "sim"])
    assert commands == ["-m hotlap bench sim", "-m hotlap bench peers", "-m pytest --bench --timeout 0 -k sim"]
    commands.clear()
    bootstrap.run = lambda command: commands.append(" ".join(command)) or (3 if "mypy" in command else 0)
    assert bootstrap.main(["check"]) == 3
    assert commands == ["-m ruff format --check", "-m ruff check", "tools/lint_javascript.py", "-m mypy"]


@pytest.mark.parametrize("verb", ["lint", "check"])
def test_javascript_that_breaks_a_rule_fails_the_verb(bootstrap, pip, commands, verb):
    bootstrap.run = lambda command: commands.append(command[-1]) or int(command == ["tools/lint_javascript.py"])
    assert bootstrap.main([verb]) == 1
    assert commands[-1] == "tools/lint_javascript.py"


def test_every_script_of_a_verb_exists(bootstrap):
    scripts = {command for commands in bootstrap.VERBS.values() for command in commands if command.startswith("tools/")}
    assert scripts == {"tools/build_docs.py", "tools/build_packages.py", "tools/lint_javascript.py"}
    assert all((ROOT / script).is_file() for script in scripts)


def test_train_never_overwrites_a_run(bootstrap, pip, commands):
    assert bootstrap.main(["train", "--seed", "7"]) == 0
    assert commands == ["-m hotlap train --recipe racer-ppo --continue --report --seed 7"]


def test_make_and_help_know_every_verb_and_an_unknown_one_is_refused(bootstrap, capsys):
    assert bootstrap.main(["fly"]) == 2
    assert "no verb 'fly'; the verbs are train, play, test, lint, check" in capsys.readouterr().err
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^VERBS := (.*)$", makefile, re.MULTILINE)[1].split() == list(bootstrap.VERBS)
    assert re.findall(r"^  ([\w-]+)  +\w", bootstrap.__doc__, re.MULTILINE) == list(bootstrap.VERBS)


def test_the_exit_status_of_a_command_is_returned(bootstrap):
    bootstrap.venv.VENV_PYTHON = Path(sys.executable)
    assert bootstrap.run(["-c", "raise SystemExit(7)"]) == 7
    if os.name == "posix":
        assert bootstrap.run(["-c", "import os; os.kill(os.getpid(), 9)"]) == 137


def test_clean_removes_caches_and_keeps_results(bootstrap):
    made = (".venv/lib", "build", ".mypy_cache", "src/hotlap/__pycache__", "tools/javascript/node_modules")
    for name in (*made, "results", "out"):
        (bootstrap.venv.ROOT / name).mkdir(parents=True)
    assert bootstrap.main(["clean"]) == 0
    left = {
        path.relative_to(bootstrap.venv.ROOT).as_posix() for path in bootstrap.venv.ROOT.rglob("*") if path.is_dir()
    }
    assert left == {"src", "src/hotlap", "tools", "tools/javascript", "results", "out"}


@pytest.mark.parametrize("name", ["/", ".", "", "..", "../other", "src/../.."])
def test_clean_removes_nothing_where_a_cache_is_not_below_the_project(bootstrap, monkeypatch, capsys, name):
    removed = []
    monkeypatch.setattr(bootstrap.shutil, "rmtree", lambda *path, **_: removed.append(path))
    bootstrap.venv.VENV.mkdir()
    bootstrap.CACHES = ("build", name)
    assert bootstrap.main(["clean"]) == 2
    assert "so nothing is removed" in capsys.readouterr().err
    assert removed == []
