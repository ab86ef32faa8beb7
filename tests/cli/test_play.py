"""`hotlap play` on the command line: what it says when it cannot start. `tests/web/test_server.py` has the server."""

import os
import subprocess
import sys

import pytest

from forked_python import run as run_python


def play(folder, *arguments, code=None, **environ):
    command, run = (["-m", "hotlap", "play"], run_python) if code is None else (["-c", code, "play"], subprocess.run)
    own = {key: value for key, value in os.environ.items() if key != "HOTLAP_PLAY_TOKEN"}
    return run(
        [sys.executable, *command, "--no-open", *arguments],
        cwd=folder, env={**own, "HOTLAP_HOME": str(folder / "home"), **environ},
        capture_output=True, text=True, timeout=50, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "70000"], "--port: a port is a whole number from 0 to 65535, got 70000."),
        (["--host", "nowhere.invalid"], "only with a token. Set HOTLAP_PLAY_TOKEN"),
        (["--host", "0.0.0.0"], "other machines may connect only with a token. Set HOTLAP_PLAY_TOKEN"),
        (["--port", "x"], "--port"),
    ],
)
def test_a_wrong_address_is_refused_in_one_line(tmp_path, arguments, words):
    answer = play(tmp_path, *arguments)
    assert answer.returncode == 2
    assert words in answer.stderr
    assert answer.stderr.startswith("hotlap: ")
    assert answer.stderr.count("\n") == 1
    assert answer.stdout == ""


def test_a_short_token_is_refused_for_other_hosts(tmp_path):
    answer = play(tmp_path, "--host", "0.0.0.0", HOTLAP_PLAY_TOKEN="short")
    assert answer.returncode == 2
    assert "HOTLAP_PLAY_TOKEN: for --host 0.0.0.0 a token has at least 16 characters, got 5" in answer.stderr


def test_a_damaged_board_is_refused_in_one_line_and_left_alone(tmp_path):
    leaderboard = tmp_path / "home" / "board.sqlite3"
    leaderboard.parent.mkdir()
    leaderboard.write_bytes(b"not a database" * 100)
    answer = play(tmp_path, "--port", "0")
    assert answer.returncode == 2
    assert "board.sqlite3: the board cannot be used (file is not a database). Move the file away" in answer.stderr
    assert answer.stderr.count("\n") == 1
    assert leaderboard.read_bytes() == b"not a database" * 100


@pytest.mark.parametrize("library", ["starlette", "uvicorn"])
def test_without_its_libraries_it_says_how_to_get_them(tmp_path, library):
    code = f"import sys; sys.modules[{library!r}] = None; from hotlap.cli.main import main; main()"
    answer = play(tmp_path, code=code)
    assert answer.returncode == 2
    assert answer.stderr == f"hotlap: the page needs {library}. Install it: pip install 'hotlap[play]'.\n"
