"""Hostile track files: each is refused with one line that names the file, in about a second, or is a road after all.

Others may have written them. What was tried: files that are not text, not tables, not numbers; numbers that overflow;
lines that are no road; roads made to be slow to check; and files that are not files.
"""

import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import HotlapError, TrackError
from hotlap.tracks.files.centreline_file import read_centreline
from hotlap.tracks.files.raceline_file import read_raceline
from hotlap.tracks.files.track_import import import_centreline
from hotlap.tracks.geometry.node_builder import build_nodes
from hotlap.tracks.registry import check_id, load_track
from tracks.shapes import circle, hairpins

READERS = [read_centreline, import_centreline]
CPU_SECONDS = 1.0  # of this process alone: other processes may keep the machine busy
TRIES = 3  # a core shared with another program takes twice as long for the same work


def rows(x, y, right=5.0, left=5.0) -> str:
    return "".join(f"{a:.3f},{b:.3f},{right},{left}\n" for a, b in zip(x, y, strict=True))


GOOD = rows(circle(num_points=100).x_m, circle(num_points=100).y_m)
ROW = "1,2,3,4\n"

NO_TABLE = {
    "nothing": b"",
    "a picture": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "an archive": b"PK\x03\x04\x14\0\0\0",
    "NUL bytes in a table": GOOD.encode() + b"\0",
    "UTF-16": GOOD.encode("utf-16"),
    "Latin-1": b"# N\xfcrburgring\n" + GOOD.encode(),
    "one line of 5 MB": b"1" * 5_000_000,
    "one line of 5 MB of commas": b"," * 5_000_000,
    "a million empty rows": b"\n" * 1_000_000,
    "only comments": b"# x\n" * 100_000,
    "a formula": b'=cmd|"/c calc",1,2,3\n' * 20,
    "HTML": b"<html><script>alert(1)</script></html>",
    "JSON": b'{"x": [1, 2, 3]}',
    "quoted cells": b'"1","2","3","4"\n' * 20,
    "spaces between cells": b"1 2 3 4\n" * 20,
    "pipes between cells": b"1|2|3|4\n" * 20,
    "decimal commas": b"1,5;2,5;3,5;4,5\n" * 20,
    "a million columns": b"1," * 1_000_000 + b"1\n",
    "a short row": (GOOD + "1,2\n").encode(),
    "a long row": (GOOD + "1,2,3,4,5\n").encode(),
    "a second header": (GOOD + "x_m,y_m,w_tr_right_m,w_tr_left_m\n").encode(),
    "another separator later": (GOOD + "1;2;3;4\n").encode(),
    "escape codes": ("\x1b[2J\x1b[31m,1,2,3\n" + GOOD).encode(),
    "100,001 points": b"1,2,3,4\n" * 100_001,
}

BAD_CELLS = {
    "NaN": "nan", "infinity": "inf", "minus infinity": "-inf", "1e308": "1e308", "-1e308": "-1e308", "1e999": "1e999",
    "nothing": "", "hexadecimal": "0x10", "underscore": "1_0", "thousands": "1'000", "complex": "1j", "word": "wide",
    "999 digits": "9" * 999, "100,000 digits": "9" * 100_000, "code": "__import__('os')",
    "minus zero, two dots": "-0..", "a control character": "1\x07",
}  # fmt: skip

_GRID = np.arange(27_000) * 2.0 * math.pi / 27_000
_SCRIBBLE = (30.0 + 12.0 * np.cos(_GRID)) * np.exp(1j * 233 * _GRID) * 0.65
_LACE = 20.0 * np.sin(200 * _GRID + 0.3) + 20j * np.sin(199 * _GRID)
_NOISE = np.random.default_rng(0).uniform(-20.0, 20.0, (27_000, 2)) @ np.array([1.0, 1j])
_STAR = 60.0 * np.exp(2j * math.pi * np.arange(27_001) * 13_000 / 27_001)
NO_ROAD = {
    "27,000 points wound round a ring": _SCRIBBLE,
    "27,000 points of lace": _LACE,
    "27,000 points at random": _NOISE,
    "a star of 27,001 points": _STAR,
    "every point the same": np.zeros(1000, complex),
    "there and back": np.concatenate((np.arange(100.0), np.arange(100.0)[::-1] + 0.05j)) * 5.0,
    "two points in turn": np.tile([0.0, 50.0], 500),
}


def assert_refused(read, path: Path) -> None:
    times_s = []
    for _ in range(TRIES):
        started = time.process_time()
        with pytest.raises(HotlapError) as caught:
            read(path)
        times_s.append(time.process_time() - started)
        if times_s[-1] < CPU_SECONDS:
            break
    assert min(times_s) < CPU_SECONDS
    message = str(caught.value)
    assert message.startswith(str(path))
    assert message.isprintable()
    assert len(message) < len(str(path)) + 400


@pytest.mark.parametrize("read", [*READERS, read_raceline])
@pytest.mark.parametrize("attack", NO_TABLE)
def test_what_is_no_table_of_numbers_is_refused(attack: str, read, tmp_path: Path):
    path = tmp_path / "track.csv"
    path.write_bytes(NO_TABLE[attack])
    assert_refused(read, path)


@pytest.mark.parametrize("attack", BAD_CELLS)
def test_a_cell_that_is_no_usable_number_is_refused_in_every_column(attack: str, tmp_path: Path):
    path = tmp_path / "track.csv"
    for column in range(4):
        cells = GOOD.splitlines()[49].split(",")
        cells[column] = BAD_CELLS[attack]
        lines = GOOD.splitlines()
        lines[49] = ",".join(cells)
        path.write_text("\n".join(lines), encoding="utf-8")
        assert_refused(read_centreline, path)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("attack", NO_ROAD)
def test_a_line_that_is_no_road_is_refused_within_a_second(attack: str, read, tmp_path: Path):
    path = tmp_path / "track.csv"
    path.write_text(rows(NO_ROAD[attack].real, NO_ROAD[attack].imag, 0.2, 0.2))
    assert_refused(read, path)


def with_point_moved(by_m: float, spacing_m: float) -> str:
    """A road of 5 m to each side with one point moved sideways on a nearly straight part."""
    line = hairpins(30.0, spacing_m=spacing_m)
    y = line.y_m.copy()
    y[int(np.argmin(np.abs(line.x_m)))] += by_m
    return rows(line.x_m, y)


@pytest.mark.parametrize(
    ("by_m", "spacing_m"), [(12.0, 5.0), (-12.0, 5.0), (30.0, 5.0), (3.0, 1.0), (-8.0, 1.0), (200.0, 5.0)]
)
def test_a_spike_is_refused_with_its_line_and_a_remedy(by_m: float, spacing_m: float, tmp_path: Path):
    path = tmp_path / "track.csv"
    path.write_text(with_point_moved(by_m, spacing_m))
    with pytest.raises(TrackError, match=r"track\.csv:\d+: .*(spike|fold|gap).*\. [A-Z]"):
        import_centreline(path)


def test_a_small_error_of_one_point_is_a_road(tmp_path: Path):
    path = tmp_path / "track.csv"
    path.write_text(with_point_moved(0.5, 5.0))
    build_nodes(import_centreline(path))


@pytest.mark.parametrize("width", [0.1, 99.0])
def test_widths_that_jump_between_the_limits_do_not_make_the_check_slow(width: float, tmp_path: Path):
    line = circle(1000.0, 3000)
    widths = np.where(np.arange(3000) % 2, width, 0.1)
    text = "".join(f"{x:.3f},{y:.3f},{w},{w}\n" for x, y, w in zip(line.x_m, line.y_m, widths, strict=True))
    (tmp_path / "track.csv").write_text(text)
    started = time.process_time()
    build_nodes(import_centreline(tmp_path / "track.csv"))
    assert time.process_time() - started < 5.0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("read", [*READERS, read_raceline])
def test_what_is_no_plain_file_is_refused_without_waiting(read, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "huge.csv").touch()
    os.truncate(tmp_path / "huge.csv", 1 << 40)
    outcomes: dict[str, str] = {}

    def attempt(name: str) -> None:
        try:
            read(tmp_path / name)
        except HotlapError as error:
            outcomes[name] = str(error)

    for name in ("pipe.csv", "zero.csv", "loop.csv", "gone.csv", "folder.csv", "huge.csv"):
        reader = threading.Thread(target=attempt, args=(name,), daemon=True)
        reader.start()
        reader.join(5.0)
        assert name in outcomes.get(name, "it hangs")


NO_IDS = [
    "../secret",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "..",
    "",
    "A",
    "x" * 65,
    "con:",
    "a b",
    "é",
    "a\n",
    None,
    5,
    [],
]


@pytest.mark.parametrize("track_id", NO_IDS)
def test_an_id_is_never_a_path(track_id):
    with pytest.raises(TrackError, match="track id"):
        check_id(track_id)
    with pytest.raises(HotlapError, match="is not known"):
        load_track(track_id)
