"""The command itself: its verbs, its help, and how it ends."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest

import hotlap as package
from hotlap.cli import main as main_module
from hotlap.cli.main import app

GROUPS = [(group.name,) for group in app.registered_groups]
COMMANDS = [
    *[(command.name or command.callback.__name__,) for command in app.registered_commands],
    *[
        (group.name, command.name)
        for group in app.registered_groups
        for command in group.typer_instance.registered_commands
    ],
]


def start(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "hotlap", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def test_python_m_hotlap_is_hotlap():
    process = start("--version")
    out, err = process.communicate(timeout=9)
    assert (process.returncode, out, err) == (0, f"hotlap {package.__version__}\n", "")


def test_the_promised_commands_are_there():
    assert {("drive",), ("evaluate",), ("doctor",), ("tracks", "import"), ("bench", "sim")} <= set(COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, *GROUPS])
def test_every_command_has_help_with_an_example(hotlap, command):
    for flag in ("--help", "-h"):
        answer = hotlap(*command, flag)
        assert (answer.code, answer.err) == (0, "")
    if command not in GROUPS:
        assert f"Example: hotlap {' '.join(command)}" in re.sub(r"\s+", " ", answer.out)


@pytest.mark.parametrize("command", [(), *GROUPS])
def test_a_bare_command_shows_its_help(hotlap, command):
    answer = hotlap(*command)
    assert answer.code == 2
    assert "Usage: hotlap" in answer.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nosuch"], "No such command 'nosuch'"),
        (["--nosuch"], "No such option: --nosuch"),
        (["tracks", "nosuch"], "No such command 'nosuch'"),
        (["evaluate"], "Missing argument"),
        (["evaluate", "casual", "more"], "unexpected extra argument"),
        (["evaluate", "casual", "--nosuch"], "No such option"),
        (["evaluate", "casual", "--episodes"], "--episodes"),
    ],
)
def test_bad_usage_is_one_line_that_says_where_help_is(refused, arguments, words):
    line = refused(*arguments)
    assert words in line
    assert re.search(r"[.?!] Try 'hotlap[^']* --help'\.$", line)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, ""),
        (MemoryError(), 2, "out of memory"),
        (package.HotlapError("first line\n  second line"), 2, "hotlap: first line second line"),
    ],
)
def test_errors_become_exit_codes(hotlap, monkeypatch, error, code, words):
    def fail(**_):
        raise error

    monkeypatch.setattr(main_module, "app", fail)
    answer = hotlap("doctor")
    assert answer.code == code
    assert words in answer.err
    assert len(answer.err.splitlines()) <= 1


def test_a_bug_of_ours_is_not_hidden(monkeypatch):
    def fail(**_):
        raise ZeroDivisionError

    monkeypatch.setattr(main_module, "app", fail)
    with pytest.raises(ZeroDivisionError):
        main_module.main()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_ends_with_130_and_no_traceback():
    process = start("evaluate", "casual", "--episodes", "20000")
    # Long enough to be driving, for less than the evaluation takes.
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=6)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise on Windows")
def test_a_reader_that_goes_away_is_no_error():
    process = start("tracks", "list", "--json")
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=9) == 0
    assert err == ""


def test_importing_the_package_is_cheap():
    code = "import time; t = time.perf_counter(); import hotlap; print(time.perf_counter() - t)"
    answers = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(2)
    ]
    # Gymnasium is most of it; loading numba or torch would take longer than this on any machine.
    assert min(answers) < 2.0
