"""Raceline files: a round trip, the format, and what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotlap.errors import HotlapError, TrackError
from hotlap.tracks.files.raceline_file import (
    RACELINE_COLUMNS,
    RACELINE_DECIMALS,
    Raceline,
    read_raceline,
    write_raceline,
)

IN_TMP = settings(deadline=None, max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.fixture
def line_file(tmp_path: Path) -> Path:
    return tmp_path / "raceline.csv"


def raceline(num_points=50, comment="") -> Raceline:
    angle = np.arange(num_points) * 2.0 * math.pi / num_points
    x, y, none = 100 * np.cos(angle), 100 * np.sin(angle), 0 * angle
    return Raceline(100 * angle, x, y, angle, 0.01 + none, 30 + none, none, comment)


@IN_TMP
@given(
    step_m=st.lists(st.floats(0.01, 20.0), min_size=2, max_size=30),
    scale=st.floats(-1e5, 1e5),
    speed_mps=st.floats(0.0, 100.0),
    comment=st.text(alphabet="abc #,;=0123é", max_size=30),
)
def test_a_round_trip_keeps_every_column(tmp_path, step_m, scale, speed_mps, comment):
    s = np.cumsum(np.array(step_m))
    written = Raceline(s, scale * s, -s, s / 7.0, 1.0 / s, speed_mps + 0 * s, scale + 0 * s, comment)
    write_raceline(tmp_path / "line.csv", written)
    back = read_raceline(tmp_path / "line.csv")
    for name, places in zip(RACELINE_COLUMNS, RACELINE_DECIMALS, strict=True):
        assert getattr(back, name) == pytest.approx(getattr(written, name), abs=0.51 * 10.0**-places, rel=1e-12)
    assert back.comment == " ".join(comment.split())


def test_a_raceline_file_has_two_comment_lines_then_numbers(line_file: Path):
    write_raceline(line_file, raceline(comment="digest 12ab"))
    lines = line_file.read_text().split("\n")
    assert lines[:2] == ["# digest 12ab", "# s_m; x_m; y_m; psi_rad; kappa_radpm; vx_mps; ax_mps2"]
    assert lines[2] == "0.000; 100.000; 0.000; 0.00000; 0.010000; 30.000; 0.000"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("1; 2; 3\n", r":1: a raceline has 7 columns, got 3"),
        ("0;1;2;3;4;5;6\n", r":1: a raceline needs at least 2 points"),
        ("0;1;2;3;4;5;6\n0;1;2;3;4;5;6\n", r":2: s_m must grow"),
        ("0;1;2;3;4;5;6\n1;1;2;3;4;-5;6\n", r":2: vx_mps is negative"),
        ("0;1;2;3;4;5;6\n1;1;2;3;4;5\n", r":2: every row must have the same columns: expected 7, got 6"),
        ("0;1;2;3;4;5;6\n1;1;2;3;4;5;nan\n", r":2: column 7 is NaN"),
        ("# nothing\n", r":1: the file has only comments"),
    ],
)
def test_a_broken_raceline_is_refused(text: str, rule: str, line_file: Path):
    line_file.write_text(text)
    with pytest.raises(TrackError, match=rule):
        read_raceline(line_file)


@IN_TMP
@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused_and_never_crash(tmp_path, data: bytes):
    (tmp_path / "noise.csv").write_bytes(data)
    with pytest.raises(HotlapError, match=r"noise\.csv"):
        read_raceline(tmp_path / "noise.csv")
