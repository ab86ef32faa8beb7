"""Pictures of tracks: what is drawn where, read back from the pixels."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hotlap.errors import OutputFileError
from hotlap.tracks import track_map as pictures
from hotlap.tracks.centreline import Centreline
from hotlap.tracks.corners import find_corners
from hotlap.tracks.geometry import build_nodes, find_crossings
from hotlap.tracks.track_map import draw_track


def rounded_square(side_m=160.0, radius_m=30.0) -> Centreline:
    """Four straights and four left-hand quarter circles, starting at the middle of the lower straight."""
    turn = np.arange(0.0, math.pi / 2, 3.0 / radius_m)
    along = np.arange(-side_m / 2, side_m / 2, 4.0)
    x = np.concatenate((along, side_m / 2 + radius_m * np.sin(turn)))
    y = np.concatenate((0 * along, radius_m * (1 - np.cos(turn)))) - side_m / 2 - radius_m
    points = np.concatenate([(x + 1j * y) * 1j**quarter for quarter in range(4)])
    points = np.roll(points, -(along.size // 2))
    width = np.full(points.size, 5.0)
    return Centreline(points.real.copy(), points.imag.copy(), width, width.copy())


def eight() -> Centreline:
    """A track that crosses itself at the origin, a good way from its start line."""
    angle = (np.arange(300) + 40) * 2.0 * math.pi / 300
    width = np.full(300, 6.0)
    return Centreline(300 * np.sin(angle), 200 * np.sin(2 * angle), width, width.copy())


def share_of(path: Path, colour: str, tolerance=12) -> float:
    """Share of the picture's pixels in a colour such as #14181f."""
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=np.int64)
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return float((np.abs(pixels - wanted).max(axis=2) <= tolerance).mean())


def test_a_rounded_square_has_four_left_corners_of_a_quarter_turn():
    corners = find_corners(build_nodes(rounded_square()))
    assert len(corners) == 4
    assert [c.turn_rad for c in corners] == pytest.approx([math.pi / 2] * 4, rel=0.05)
    assert [c.apex for c in corners] == sorted(c.apex for c in corners)


def test_a_circle_is_one_long_corner():
    angle = np.arange(60) * 2.0 * math.pi / 60
    nodes = build_nodes(Centreline(50 * np.cos(angle), 50 * np.sin(angle), np.full(60, 4.0), np.full(60, 4.0)))
    assert [c.turn_rad for c in find_corners(nodes)] == pytest.approx([2 * math.pi], rel=1e-3)


def test_the_road_covers_as_much_of_the_picture_as_of_the_ground(tmp_path: Path):
    nodes = build_nodes(rounded_square())
    draw_track(nodes, tmp_path / "a.png", title="Square")
    road = share_of(tmp_path / "a.png", pictures.ROAD)
    runoff = share_of(tmp_path / "a.png", pictures.RUNOFF)
    assert road / runoff == pytest.approx(10.0 / 12.0, rel=0.15)  # metres of road against metres of runoff
    assert share_of(tmp_path / "a.png", pictures.KERB_RED) > 2e-4
    assert share_of(tmp_path / "a.png", pictures.ACCENT) > 1e-4  # the arrow


def test_medals_and_raceline_add_their_colours(tmp_path: Path):
    nodes = build_nodes(rounded_square())
    silver, slow, fast = pictures.MEDAL_COLOURS["silver"], pictures.SPEED_COLOURS[0], pictures.SPEED_COLOURS[-1]
    draw_track(nodes, tmp_path / "plain.png", title="Square")
    speed = np.where(np.abs(nodes.curvature_radpm) > 0.01, 20.0, 50.0)
    draw_track(
        nodes,
        tmp_path / "full.png",
        title="Square",
        subtitle="a lap",
        raceline=(nodes.x_m, nodes.y_m, speed),
        medals={"gold": 20.0, "silver": 22.0, "bronze": 25.0},
    )
    for colour in (silver, slow, fast):
        assert share_of(tmp_path / "full.png", colour, 4) > share_of(tmp_path / "plain.png", colour, 4) + 1e-5


def test_an_overpass_lies_on_top_of_the_road_it_crosses(tmp_path: Path):
    nodes = build_nodes(eight())
    draw_track(nodes, tmp_path / "eight.png", title="Eight")
    upper = find_crossings(nodes)[0].second
    along = np.linspace(-15.0, 15.0, 200)  # on the upper level's centreline, over both edges of the lower road
    points = np.stack((along * nodes.tangent_x[upper], along * nodes.tangent_y[upper]), axis=1)
    figure, canvas = pictures.new_map(nodes, has_colour_bar=False)
    at = canvas.axes.transData.transform(points) / figure.dpi * pictures.DPI
    pixels = np.asarray(Image.open(tmp_path / "eight.png").convert("RGB"), dtype=np.int64)
    seen = pixels[pixels.shape[0] - 1 - at[:, 1].astype(int), at[:, 0].astype(int)]
    road = [int(pictures.ROAD[k : k + 2], 16) for k in (1, 3, 5)]
    assert np.abs(seen - road).max() <= 10


def test_a_name_with_dollar_signs_is_only_text(tmp_path: Path):
    draw_track(build_nodes(rounded_square()), tmp_path / "odd.png", title="$\\frac{ cash" * 9, subtitle="$_$")
    assert (tmp_path / "odd.png").stat().st_size > 10_000


def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path):
    with pytest.raises(OutputFileError, match="cannot be written"):
        draw_track(build_nodes(rounded_square()), tmp_path / "no" / "folder.png", title="Square")


def test_importing_the_module_does_not_load_matplotlib():
    code = "import sys, hotlap.tracks.track_map; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
