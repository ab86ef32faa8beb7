"""How commands talk."""

import json
import math
import os
import sys
from pathlib import Path

import pytest

from hotlap.cli.output import percent, print_json, progress_bar, seconds, writable
from hotlap.errors import OutputFileError


def test_json_is_one_line_and_what_is_no_number_is_null(capsys):
    figures = {"a": math.nan, "b": [1.5, math.inf], "c": {"d": -math.inf, "e": "nan"}, "f": None, "g": (1, True)}
    print_json(figures)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": None, "b": [1.5, None], "c": {"d": None, "e": "nan"}, "f": None, "g": [1, True]}


def test_numbers_for_people():
    assert (seconds(31.416), seconds(None)) == ("31.42 s", "-")
    assert (percent(0.966), percent(None)) == ("97 %", "-")


def test_progress_is_silent_where_nobody_watches(capsys):
    with progress_bar("driving") as progress:
        progress(0.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.strip() == ""


def test_progress_goes_to_stderr(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("driving") as progress:
        progress(0.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert "driving" in err


def test_a_place_for_a_file_is_made(tmp_path):
    path = tmp_path / "new" / "folder" / "a.png"
    assert writable(path) == path
    assert path.parent.is_dir()
    assert not path.exists()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(OutputFileError, match=r"is a folder\. Name a file"):
        writable(tmp_path)


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputFileError, match="cannot be made"):
        writable(tmp_path / "a" / "b.png")


def test_what_may_not_be_written_is_refused_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path) == tmp_path))
    with pytest.raises(OutputFileError, match="may not be written"):
        writable(tmp_path / "a.png")
