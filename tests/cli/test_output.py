"""Output of the commands."""

import json
import math
import os
import sys
from pathlib import Path

import pytest

from hotlap.atomic_files import writable
from hotlap.cli.output import print_json, progress_bar
from hotlap.errors import OutputFileError


def test_json_is_one_line_with_null_for_nan_and_infinity(capsys):
    figures = {"a": math.nan, "b": [1.5, math.inf], "c": {"d": -math.inf, "e": "nan"}, "f": None, "g": (1, True)}
    print_json(figures)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"a": None, "b": [1.5, None], "c": {"d": None, "e": "nan"}, "f": None, "g": [1, True]}


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_goes_to_stderr_if_it_is_a_terminal(capsys, monkeypatch, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("driving") as progress:
        progress(0.5)
    out, err = capsys.readouterr()
    assert (out, bool(err.strip())) == ("", is_terminal)
    assert ("driving" in err) == is_terminal


def test_the_folder_of_an_output_file_is_made(tmp_path):
    path = tmp_path / "new" / "folder" / "a.png"
    assert writable(path) == path
    assert path.parent.is_dir()
    assert not path.exists()


def test_a_path_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputFileError, match=r"is a folder\. Name a file"):
        writable(tmp_path)
    with pytest.raises(OutputFileError, match="cannot be made"):
        writable(tmp_path / "a" / "b.png")
    with pytest.raises(OutputFileError, match=r"cannot be written \(File name too long\)"):
        writable(tmp_path / ("x" * 300))
    with pytest.raises(OutputFileError, match="embedded null"):
        writable(tmp_path / "a\0" / "b.png")
    with pytest.raises(OutputFileError, match="this is a device or a pipe"):
        writable(Path(os.devnull))
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path) == tmp_path))
    with pytest.raises(OutputFileError, match="no permission to write"):
        writable(tmp_path / "a.png")
