"""A league as a picture."""

from io import BytesIO

from PIL import Image

from hotlap.reports.plots.league_chart import draw_league
from reports.pages.test_league_page import LEAGUE


def test_a_picture_has_a_row_for_each_driver_and_room_for_long_names():
    small, large = (
        Image.open(BytesIO(draw_league(LEAGUE, names)))
        for names in (["a", "b"], ["a $name$ of forty letters " * 2, "b"])
    )
    assert small.size == large.size
    assert small.tobytes() != large.tobytes()
