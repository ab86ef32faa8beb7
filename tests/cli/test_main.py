"""The `hotlap` command: subcommands, help and exit codes."""

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer

import hotlap as package
from hotlap.cli import exit_codes
from hotlap.cli import main as main_module
from hotlap.cli.main import app

GROUPS = [(group.name,) for group in app.registered_groups]
COMMANDS = [(command.name or command.callback.__name__,) for command in app.registered_commands]
for group in app.registered_groups:
    COMMANDS += [(group.name, command.name) for command in group.typer_instance.registered_commands]


def test_python_m_hotlap_is_hotlap():
    answer = subprocess.run([sys.executable, "-m", "hotlap", "--version"], capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"hotlap {package.__version__}\n", "")


def test_the_first_garbage_collection_waits_and_later_ones_come_as_usual():
    code = """
import gc
from hotlap.__main__ import FIRST_COLLECTION, collect_later
usual, seen = gc.get_threshold(), []
collect_later()
gc.callbacks.append(lambda phase, info: seen.append(phase))
kept = [[] for _ in range(FIRST_COLLECTION // 2)]
assert not seen and gc.get_threshold()[0] == FIRST_COLLECTION
kept += [[] for _ in range(FIRST_COLLECTION)]
assert seen and gc.get_threshold() == usual
print("as usual")
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert answer.stdout == "as usual\n", answer.stderr


def test_the_documented_commands_exist():
    assert {("drive",), ("evaluate",), ("doctor",), ("tracks", "import"), ("bench", "sim")} <= set(COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_every_command_has_help_with_an_example(hotlap, command):
    for flag in ("--help", "-h"):
        answer = hotlap(*command, flag)
        assert (answer.code, answer.err) == (0, "")
    if command not in GROUPS:
        assert f"Example: hotlap {' '.join(command)}" in re.sub(r"\s+", " ", answer.out)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command[0] != "import"])
def test_the_example_in_the_help_has_known_options_and_nothing_but_the_command(command):
    parser = typer.main.get_command(app)
    for name in command:
        parent, parser = parser, parser.commands[name]
    assert parent.commands
    [example] = re.findall(r"^Example: hotlap (.*)$", inspect.cleandoc(parser.callback.__doc__), re.MULTILINE)
    words = shlex.split(example.partition(" && ")[0])
    assert words[: len(command)] == list(command)
    assert parser.make_context("hotlap", words[len(command) :], resilient_parsing=False)


@pytest.mark.parametrize("command", [(), *GROUPS])
def test_a_bare_command_shows_its_help(hotlap, command):
    answer = hotlap(*command)
    assert (answer.code, answer.err) == (0, "")
    assert "Usage: hotlap" in answer.out


@pytest.mark.parametrize("command", [(), *COMMANDS, *GROUPS])
def test_the_help_shows_flags_without_a_type_and_fits_a_terminal(hotlap, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    out = hotlap(*command, "--help").out
    flags = [line for line in out.splitlines() if "--help" in line or " --json " in line]
    assert flags
    assert not re.search("bool", "".join(flags), re.IGNORECASE)
    assert "<bool>" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_bad_usage_is_one_line_that_names_the_help(refused):
    for arguments, words in {
        ("nosuch",): "No such command 'nosuch'",
        ("--nosuch",): "No such option: --nosuch",
        ("evaluate",): "Missing argument",
        ("evaluate", "casual", "more"): "unexpected extra argument",
        ("evaluate", "casual", "--episodes"): "--episodes",
    }.items():
        assert re.search(rf"{words}.*[.?!] Try 'hotlap[^']* --help'\.$", refused(*arguments))


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 2, "out of memory"),
        (OSError(28, "No space left on device"), 2, "hotlap: output: No space left on device. Check the path"),
        (PermissionError(13, "Permission denied", "x/y"), 2, "hotlap: x/y: Permission denied. Check the path"),
        (package.HotlapError("first line\n  second line"), 2, "hotlap: first line second line"),
    ],
)
def test_errors_become_exit_codes(hotlap, monkeypatch, error, code, words):
    monkeypatch.setattr(main_module, "app", Mock(side_effect=error))
    answer = hotlap("doctor")
    assert answer.code == code
    assert words in answer.err
    assert len(answer.err.splitlines()) <= 1


def test_an_unexpected_error_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(main_module, "app", Mock(side_effect=ZeroDivisionError))
    with pytest.raises(ZeroDivisionError):
        main_module.main()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.usefixtures("compiled")  # compiling ends with its own pass first
def test_ctrl_c_ends_with_130_and_no_traceback():
    # The signal comes once the command runs: a fixed delay from outside would fail on a busy machine.
    code = (
        "import os, signal, threading; from hotlap.__main__ import main;"
        "threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start(); main()"
    )
    command = [sys.executable, "-c", code, "evaluate", "casual", "--episodes", "20000"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stdout) == (130, "")
    assert "Traceback" not in answer.stderr


def test_ctrl_c_during_the_imports_ends_with_130_and_no_traceback():
    code = (
        "import sys; from importlib.abc import MetaPathFinder\n"
        "class Interrupted(MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted()); from hotlap.__main__ import main; main()"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50)
    assert (answer.returncode, answer.stdout, answer.stderr) == (exit_codes.INTERRUPTED, "", "")


@pytest.mark.skipif(os.name == "nt", reason="pipes behave differently on Windows")
def test_a_closed_pipe_is_not_an_error():
    command = [sys.executable, "-m", "hotlap", "tracks", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "redirection", "code"),
    [("tracks list", ">/dev/full", 2), ("tracks list", ">&-", 0), ("tracks show nowhere", "2>/dev/full", 2)],
)
def test_full_and_closed_streams_give_an_exit_code_and_no_traceback(arguments, redirection, code):
    command = f"'{sys.executable}' -m hotlap {arguments} {redirection}"
    answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=50)
    assert answer.returncode == code
    assert len(answer.stderr.splitlines()) == (redirection == ">/dev/full")


def test_a_terminal_without_unicode_shows_question_marks():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment.pop("PYTHONIOENCODING", None)
    code = "from hotlap.cli import main; main.app = lambda **_: print('5 \\u00b5s'); main.main()"
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, timeout=50)
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert answer.stdout.split() in ([b"5", b"?s"], [b"5", b"\xc2\xb5s"])  # systems without a C locale keep UTF-8
