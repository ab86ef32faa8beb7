"""Track files: what is read, what is refused and why, and round trips."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotlap.errors import HotlapError, OutputFileError, TrackError
from hotlap.tracks.files.centreline_file import read_centreline, write_centreline
from hotlap.tracks.geometry.centreline import Centreline
from tracks.shapes import circle, eight, peanut, wavy

CIRCLE = circle(num_points=100)
HEADER = "# x_m,y_m,w_tr_right_m,w_tr_left_m"
IN_TMP = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


def rows(radius_m=100.0, num_points=100, half_width_m=5.0) -> list[str]:
    return rows_of(circle(radius_m, num_points, right=half_width_m, left=half_width_m))


def rows_of(c: Centreline) -> list[str]:
    table = np.stack((c.x_m, c.y_m, c.width_right_m, c.width_left_m), axis=1)
    return [",".join(f"{value:.3f}" for value in row) for row in table]


def replaced(line: int, row: str) -> str:
    """A valid file with one line (counted from 1, the header) replaced."""
    lines = [HEADER, *rows()]
    lines[line - 1] = row
    return "\n".join(lines) + "\n"


def joined(lines: list[str]) -> str:
    return "\n".join([HEADER, *lines]) + "\n"


@pytest.fixture
def track(tmp_path: Path) -> Path:
    return tmp_path / "track.csv"


BROKEN = {
    "empty": ("", r":1: the file is empty"),
    "blank": (" \n\r\n\t\n", r":1: the file is empty"),
    "only comments": (f"{HEADER}\n# nothing\n", r":1: the file has only comments"),
    "only a header": ("x_m,y_m,w_tr_right_m,w_tr_left_m\n", r":1: the file has a header and no points"),
    "binary": ("\x89PNG\0\0\0", r":1: a track is a text file, this one is binary"),
    "one column": ("1\n2\n3\n", r":1: a row has 3, 4 or 5 columns, got 1"),
    "six columns": ("1,2,3,4,5,6\n", r":1: a row has 3, 4 or 5 columns, got 6"),
    "unknown names": ("lat,lon,right,left\n1,2,3,4\n", r":1: the header names unknown columns \(lat, lon"),
    "a short row": (replaced(8, "1,2,3"), r":8: every row must have the same columns: expected 4, got 3"),
    "another separator": (replaced(8, "1;2;3;4"), r":8: every row must have the same columns: expected 4, got 1"),
    "a word": (replaced(5, "1,2,wide,4"), r":5: column 3 must be a number, got 'wide'"),
    "an underscore": (replaced(5, "1,2,1_0,4"), r":5: column 3 must be a number, got '1_0'"),
    "a missing cell": (replaced(5, "1,,3,4"), r":5: column 2 must be a number, got ''"),
    "decimal commas": ("1,0;2,0;3,0;4,0\n", r":1: column 1 must be a number, got '1,0'|unknown columns"),
    "NaN": (replaced(6, "1,nan,3,4"), r":6: column 2 is NaN"),
    "infinity": (replaced(6, "-inf,2,3,4"), r":6: column 1 is infinite"),
    "overflow": (replaced(6, "1e999,2,3,4"), r":6: column 1 is infinite"),
    "zero width": (replaced(9, "1,2,0,4"), r":9: half-width is 0 m; it must be positive\. Check column 3"),
    "negative width": (replaced(9, "1,2,3,-4"), r":9: half-width is -4 m; it must not be negative"),
    "thin road": (replaced(9, "1,2,3,0.01"), r":9: half-width is 0.01 m; the narrowest is 0.1 m"),
    "absurd width": (replaced(9, "1,2,3,400"), r":9: half-width is 400 m; the widest is 100 m"),
    "zero total width": (joined(["1,2,0", "3,4,5"] * 9), r":2: width is 0 m; it must be positive\. Check column 3"),
    "too few points": (joined(rows(50.0, 7)), r":8: a track needs at least 8 points, got 7"),
    "far away": (replaced(4, "20000000,2,3,4"), r":4: a coordinate is beyond 10000000 m"),
    "a point twice": (joined(rows()[:50] + rows()[49:]), r":52: this point repeats the one before it"),
    "closed loop": (joined([*rows(), rows()[0]]), r":102: the first point is repeated at the end"),
    "open loop": (joined(rows()[:80]), r":81: gap at the join: the last point is 122.* m from the first"),
    "gap": (joined(rows()[:40] + rows()[60:]), r":42: gap of 122.\d m before this point, the usual spacing is 6.3"),
    "fold": (joined([*rows()[:51], rows()[48], *rows()[52:]]), r":5[123]: the line folds back"),
    "tight curve": (joined(rows_of(wavy(60.0, 8, 0.25, 400))), r":\d+: curve at s = .* tighter than the half-width"),
    "crossed edges": (joined(rows_of(peanut(30.0, 3.0, right=1.0, left=5.0))), r":\d+: the left edge crosses itself"),
    "short lap": (joined(rows(12.0, 60, 2.0)), r":2: the lap is 75.4 m long; it must be at least 100 m"),
    "long lap": (joined(rows(6000.0, 900)), r":2: the lap is 37\d+\.\d m long; it must be at most 30000 m"),
    "scribble": (
        joined([f"{x},{y},1,1" for x, y in np.random.default_rng(5).integers(0, 99, (90, 2))]),
        r"(folds|tight)",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_refused_with_file_line_and_rule(kind: str, track: Path):
    text, rule = BROKEN[kind]
    track.write_text(text, encoding="utf-8")
    with pytest.raises(TrackError, match=rule) as caught:
        read_centreline(track)
    message = str(caught.value)
    assert message.startswith(f"{track}:")
    assert "\n" not in message
    assert message.endswith((".", "?"))  # the remedy is a sentence


VARIANTS = {
    "CRLF": ("\n", "\r\n"),
    "BOM": (HEADER, "\ufeff" + HEADER),
    "semicolons": (",", ";"),
    "tabs": (",", "\t"),
    "trailing": ("\n", " ,\n"),
    "notes": ("\n", "\n\n# a note, with, some, commas\n"),
    "bare header": (HEADER, "x_m, y_m, w_tr_right_m, w_tr_left_m"),
    "no header": (HEADER + "\n", ""),
    "spaces": (",", "  ,  "),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_usual_variant_of_a_file_reads_the_same(variant, track: Path):
    track.write_bytes(joined(rows()).replace(*VARIANTS[variant]).encode())
    centreline = read_centreline(track)
    assert centreline.x_m == pytest.approx(CIRCLE.x_m, abs=5.1e-4)
    assert centreline.y_m == pytest.approx(CIRCLE.y_m, abs=5.1e-4)
    assert (centreline.width_right_m == 5.0).all()


def columns_file(header: str, order: list[int]) -> str:
    columns = (CIRCLE.x_m, CIRCLE.y_m, *(np.full(100, value) for value in (4.0, 6.0, 77.0, 8.0)))
    table = np.stack(columns, axis=1)
    return header + "\n".join(",".join(f"{v:.3f}" for v in row) for row in table[:, order]) + "\n"


@pytest.mark.parametrize(
    ("header", "order", "widths"),
    [
        ("", [0, 1, 2, 3], (4.0, 6.0)),
        ("", [0, 1, 5], (4.0, 4.0)),
        ("", [0, 1, 4, 2, 3], (4.0, 6.0)),
        ("# x_m,y_m,w_tr_left_m,w_tr_right_m\n", [0, 1, 3, 2], (4.0, 6.0)),
        ("x,y,w_right,w_left,z\n", [0, 1, 2, 3, 4], (4.0, 6.0)),
        ("width,x,y\n", [5, 0, 1], (4.0, 4.0)),
        ("# not, the, names, here\n", [0, 1, 2, 3], (4.0, 6.0)),
    ],
)
def test_columns_follow_their_number_or_their_names(header: str, order: list[int], widths, track: Path):
    track.write_text(columns_file(header, order))
    centreline = read_centreline(track)
    assert centreline.x_m == pytest.approx(CIRCLE.x_m, abs=5.1e-4)
    assert (centreline.width_right_m[0], centreline.width_left_m[0]) == widths


def test_utm_coordinates_are_kept_and_a_figure_of_eight_is_accepted(track: Path):
    shifted = [f"{691_000 + c.real:.3f},{5_335_000 + c.imag:.3f},5,5" for c in CIRCLE.x_m + 1j * CIRCLE.y_m]
    track.write_text(joined(shifted))
    assert read_centreline(track).x_m[0] == 691_100.0
    track.write_text(joined(rows_of(eight(300.0, 200))))
    assert read_centreline(track).x_m.size == 200


@IN_TMP
@given(
    radius_m=st.floats(60.0, 900.0),
    num_points=st.integers(24, 120),
    half_width_m=st.floats(1.0, 20.0),
    east_m=st.floats(-1e6, 1e6),
    comment=st.none() | st.text(max_size=40),
)
def test_a_round_trip_keeps_millimetres(tmp_path, radius_m, num_points, half_width_m, east_m, comment):
    c = circle(radius_m, num_points, right=half_width_m, left=half_width_m)
    written = Centreline(c.x_m + east_m, c.y_m, c.width_right_m, c.width_left_m)
    write_centreline(tmp_path / "a.csv", written, comment)
    once = read_centreline(tmp_path / "a.csv")
    for name in ("x_m", "y_m", "width_right_m", "width_left_m"):
        assert getattr(once, name) == pytest.approx(getattr(written, name), abs=5.1e-4, rel=0)
    write_centreline(tmp_path / "b.csv", once, comment)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_written_file_has_the_header_of_the_format(track: Path):
    write_centreline(track, CIRCLE, "Made up\nby hand")
    assert track.read_text().split("\n")[:4] == ["# Made up", "# by hand", HEADER, "100.000,0.000,5.000,5.000"]


def test_what_cannot_be_written_is_refused(tmp_path: Path):
    with pytest.raises(OutputFileError, match="cannot be written"):
        write_centreline(tmp_path / "no" / "such" / "folder.csv", CIRCLE)
    with pytest.raises(OutputFileError, match="this is a folder"):
        write_centreline(tmp_path, CIRCLE)
    with pytest.raises(TrackError, match="not finite"):
        write_centreline(tmp_path / "nan.csv", circle(math.nan))
    assert list(tmp_path.iterdir()) == []


@IN_TMP
@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused_and_never_crash(tmp_path, data: bytes):
    (tmp_path / "noise.csv").write_bytes(data)
    with pytest.raises(HotlapError, match=r"noise\.csv"):
        read_centreline(tmp_path / "noise.csv")


def read_or_message(path: Path) -> Centreline | str:
    try:
        return read_centreline(path)
    except HotlapError as error:
        return str(error)


MUTATIONS = ["", "0", "-", "nan", "1e308", "-1e9", ",", ";", "\t", "\n", "#", "x", "9" * 30, "\u2028", "\x1c", "１"]


@IN_TMP
@given(edits=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 12), st.sampled_from(MUTATIONS)), max_size=6))
def test_a_mutated_file_is_read_or_refused_but_never_crashes(tmp_path, edits):
    text = joined(rows(60.0, 40))
    for at, length, put in edits:
        at %= len(text)
        text = text[:at] + put + text[at + length :]
    (tmp_path / "mutant.csv").write_text(text, encoding="utf-8")
    outcome = read_or_message(tmp_path / "mutant.csv")
    if isinstance(outcome, str):
        assert "mutant.csv" in outcome
        assert "\n" not in outcome
    else:
        assert np.isfinite(outcome.x_m).all()
