"""Drawn tracks: the checks of track import, the fault's own point, and a saved road that is the checked one."""

import contextlib
import math

import numpy as np
import pytest

from hotlap.errors import TrackError
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track, user_folder
from hotlap.web.drawn_tracks import DrawingError, TakenIdError, check_drawing, check_track_file, save_drawing


def ellipse(num_points: int = 40, a_m: float = 120.0, b_m: float = 60.0) -> list[tuple[float, float]]:
    angles = [2.0 * math.pi * k / num_points for k in range(num_points)]
    return [(a_m * math.cos(angle), b_m * math.sin(angle)) for angle in angles]


@pytest.fixture(autouse=True)
def own_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOTLAP_HOME", str(tmp_path / "home"))


def test_a_drawn_ellipse_has_the_length_of_the_ellipse():
    drawn = check_drawing(ellipse(), 12.0)
    a, b = 120.0, 60.0
    h = ((a - b) / (a + b)) ** 2
    ramanujan_m = math.pi * (a + b) * (1 + 3 * h / (10 + math.sqrt(4 - 3 * h)))
    assert drawn.as_plain()["length_m"] == pytest.approx(ramanujan_m, rel=2e-3)
    assert drawn.as_plain()["narrowest_m"] == pytest.approx(12.0, abs=0.01)


@pytest.mark.parametrize("b_m", [60.0, 22.0], ids=["wide", "narrowed in its bends"])
def test_the_saved_track_has_the_road_that_was_checked(b_m):
    drawn = check_drawing(ellipse(b_m=b_m), 14.0)
    assert (drawn.as_plain()["narrowest_m"] < 13.9) == (b_m < 30.0)
    save_drawing("my-oval", drawn, "drawn", replace=False)
    assert track_digest(load_track("my-oval").nodes) == drawn.track_digest
    assert (user_folder() / "my-oval.csv").is_file()


def test_an_id_in_use_is_refused_unless_it_is_replaced():
    save_drawing("mine", check_drawing(ellipse(), 10.0), "", replace=False)
    wider = check_drawing(ellipse(), 16.0)
    with pytest.raises(TakenIdError, match="'mine' is in use"):
        save_drawing("mine", wider, "", replace=False)
    save_drawing("mine", wider, "", replace=True)
    assert track_digest(load_track("mine").nodes) == wider.track_digest


@pytest.mark.parametrize("track_id", ["track-01", "train-000", "../x", "", "A", "x" * 65, "a/b", "con.csv", "\0"])
def test_an_id_of_the_package_or_that_is_a_path_is_refused(track_id):
    with pytest.raises(TrackError, match="track id"):
        save_drawing(track_id, check_drawing(ellipse(), 10.0), "", replace=True)
    assert not user_folder().exists()


def test_the_point_of_a_fault_is_the_drawings_own():
    points = ellipse(60)
    points[31] = (points[31][0] * 0.3, points[31][1] * 0.3)  # a spike towards the middle
    with pytest.raises(DrawingError, match=r"spike|folds back|tighter") as caught:
        check_drawing(points, 10.0)
    assert abs(caught.value.point - 31) <= 1
    assert "drawing.csv" not in str(caught.value)
    assert "/" not in str(caught.value)


@pytest.mark.parametrize(
    ("points", "width_m", "words"),
    [
        (ellipse(7), 10.0, "8 to 2000 points, got 7"),
        (ellipse(2001), 10.0, "8 to 2000 points, got 2001"),
        (ellipse(), 2.9, "width must be from 3 to 40 m, got 2.9"),
        (ellipse(), math.nan, "width must be"),
        ([*ellipse()[:-1], (1e9, 0.0)], 10.0, "within 10000 m"),
        ([*ellipse()[:-1], (math.nan, 0.0)], 10.0, "within 10000 m"),
        (ellipse(a_m=9.0, b_m=6.0), 10.0, "at least 100 m"),
        ([(0.0, 0.0)] * 10, 10.0, "."),
        ([(float(k), 0.0) for k in range(100)], 10.0, "."),
    ],
)
def test_what_cannot_be_driven_is_refused_with_the_reason(points, width_m, words):
    with pytest.raises(DrawingError, match=words) as caught:
        check_drawing(points, width_m)
    assert "\n" not in str(caught.value)


def test_random_scribbles_are_a_road_or_a_refusal():
    rng = np.random.default_rng(3)
    num_roads = 0
    for _ in range(40):
        points = [tuple(point) for point in rng.uniform(-300.0, 300.0, (int(rng.integers(8, 40)), 2)).tolist()]
        with contextlib.suppress(DrawingError):
            num_roads += check_drawing(points, float(rng.uniform(3.0, 40.0))).track.nodes.num_nodes > 0
    assert num_roads < 40


def test_a_track_file_is_checked_like_an_import():
    rows = "\n".join(f"{x},{y},5,5" for x, y in ellipse())
    assert check_track_file(f"# x_m,y_m,w_tr_right_m,w_tr_left_m\n{rows}\n").track_digest
    for text in ("", "x", "1,2\n3,4", "\0", rows.replace("5,5", "0,5"), "\ud800"):
        with pytest.raises(DrawingError):
            check_track_file(text)
