"""Files that cannot be read as a table, before anyone looks at what the columns hold."""

import os
from pathlib import Path

import pytest

from hotlap.errors import InputFileError, TrackError
from hotlap.tracks.files import csv_table


def read(path: Path):
    return csv_table.read_table(path, "x, y").to_numbers()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TrackError, match="a device or a pipe"):
        read(tmp_path / "pipe")


def test_a_path_without_a_file_is_refused(tmp_path: Path):
    with pytest.raises(InputFileError, match="no such file"):
        read(tmp_path / "nowhere.csv")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "nowhere" / "track.csv")
    with pytest.raises(TrackError, match="this is a folder"):
        read(tmp_path)
    with pytest.raises(TrackError, match="cannot be read"):
        read(Path("track\0.csv"))


def test_a_huge_file_is_refused_unread_and_too_many_points_with_their_number(tmp_path: Path, monkeypatch):
    track = tmp_path / "track.csv"
    with track.open("wb") as file:
        file.truncate(csv_table.MAX_FILE_BYTES + 1)
    with pytest.raises(TrackError, match="at most 20 MB"):
        read(track)
    monkeypatch.setattr(csv_table, "MAX_POINTS", 99)
    track.write_text("# x,y\n" + "1,2\n" * 100)
    with pytest.raises(TrackError, match=":101: a file has at most 99 points, got 100"):
        read(track)
    monkeypatch.setattr(csv_table, "MAX_LINES", 50)
    track.write_text("1,2\r\n" * 51)
    with pytest.raises(TrackError, match=":1: a file has at most 50 lines, got 51"):
        read(track)


def test_another_encoding_is_refused_with_its_line(tmp_path: Path):
    (tmp_path / "track.csv").write_bytes(b"# x,y\n# N\xfcrburg\n1,2\n")
    with pytest.raises(TrackError, match=":2: a track file is UTF-8"):
        read(tmp_path / "track.csv")
