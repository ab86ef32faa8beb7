"""Track maps, checked by their pixels."""

import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hotlap.drawing.axes import AxesView
from hotlap.errors import OutputFileError
from hotlap.tracks.geometry.centreline import Centreline
from hotlap.tracks.geometry.node_builder import build_nodes, find_crossings
from hotlap.tracks.maps import map_colours
from hotlap.tracks.maps.map_drawing import new_map
from hotlap.tracks.maps.track_map import DPI, draw_track
from tracks.shapes import line, rounded_square


def eight() -> Centreline:
    """A track that crosses itself at the origin, a good way from its start line."""
    angle = (np.arange(300) + 40) * 2.0 * math.pi / 300
    return line(300 * np.sin(angle), 200 * np.sin(2 * angle), right=6.0, left=6.0)


def fraction_of(path: Path, colour: str, tolerance=12) -> float:
    """Fraction of the picture's pixels in a colour such as #14181f."""
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype=np.int64)
    wanted = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)])
    return float((np.abs(pixels - wanted).max(axis=2) <= tolerance).mean())


def test_the_road_covers_as_much_of_the_picture_as_of_the_ground(tmp_path: Path):
    nodes = build_nodes(rounded_square())
    draw_track(nodes, tmp_path / "a.png", title="Square")
    road = fraction_of(tmp_path / "a.png", map_colours.ROAD)
    runoff = fraction_of(tmp_path / "a.png", map_colours.RUNOFF)
    assert road / runoff == pytest.approx(10.0 / 12.0, rel=0.15)  # metres of road against metres of runoff
    assert fraction_of(tmp_path / "a.png", map_colours.KERB_RED) > 2e-4
    assert fraction_of(tmp_path / "a.png", map_colours.ACCENT) > 1e-4  # the arrow


def test_medals_and_raceline_add_their_colours(tmp_path: Path):
    nodes = build_nodes(rounded_square())
    draw_track(nodes, tmp_path / "plain.png", title="Square")
    raceline = nodes.x_m, nodes.y_m, np.where(np.abs(nodes.curvature_radpm) > 0.01, 20.0, 50.0)
    medals = {"gold": 20.0, "silver": 22.0, "bronze": 25.0}
    draw_track(nodes, tmp_path / "full.png", title="Square", subtitle="a lap", raceline=raceline, medals=medals)
    slow, *_, fast = map_colours.SPEED_COLOURS
    for colour in (map_colours.MEDAL_COLOURS["silver"], slow, fast):
        assert fraction_of(tmp_path / "full.png", colour, 4) > fraction_of(tmp_path / "plain.png", colour, 4) + 1e-5


def test_an_overpass_lies_on_top_of_the_road_it_crosses(tmp_path: Path):
    nodes = build_nodes(eight())
    draw_track(nodes, tmp_path / "eight.png", title="Eight")
    upper = find_crossings(nodes)[0].second
    along = np.linspace(-15.0, 15.0, 200)  # on the upper level's centreline, over both edges of the lower road
    points = np.stack((along * nodes.tangent_x[upper], along * nodes.tangent_y[upper]), axis=1)
    _, canvas = new_map(nodes, has_colour_bar=False)
    at = AxesView(canvas.axes, DPI).to_pixels(points).astype(int)
    pixels = np.asarray(Image.open(tmp_path / "eight.png").convert("RGB"), dtype=np.int64)
    seen = pixels[at[:, 1], at[:, 0]]
    road = [int(map_colours.ROAD[k : k + 2], 16) for k in (1, 3, 5)]
    assert np.abs(seen - road).max() <= 10


def test_any_name_can_be_drawn_and_an_unwritable_picture_is_refused(tmp_path: Path):
    nodes = build_nodes(rounded_square())
    draw_track(nodes, tmp_path / "odd.png", title="$\\frac{ cash" * 9, subtitle="$_$")
    assert (tmp_path / "odd.png").stat().st_size > 10_000
    with pytest.raises(OutputFileError, match="cannot be written"):
        draw_track(nodes, tmp_path / "no" / "folder.png", title="Square")
