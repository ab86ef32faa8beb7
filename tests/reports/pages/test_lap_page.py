"""The page on a driver's lap: its figures, all text escaped."""

import re
from dataclasses import replace

from hotlap.reports.html import Picture
from hotlap.reports.pages.lap_page import render_comparison
from reports.markup import assert_complete

PICTURES = [Picture("a.png", "Losses", "red", b"one"), Picture("b.png", "Line", "fast", b"two", is_half=True)]


def test_page_shows_lap_gap_and_corners(track, comparison):
    page = render_comparison(comparison, track, "casual", PICTURES)
    assert_complete(page, 2)
    assert f"{comparison.lap.time_s:.2f} s" in page
    assert f"{comparison.optimal_lap_s:.2f} s" in page
    assert "+11.1 %" in page
    labels = re.findall(r"T\d [a-z ]+(?=</td>)", page)
    assert labels == [sector.label for sector in comparison.sectors]
    assert page.count('class="bar"') == 7
    assert "No flying lap was clean" not in page
    dirty = replace(comparison, lap=replace(comparison.lap, is_clean=False))
    assert "No flying lap was clean" in render_comparison(dirty, track, "casual", [])


def test_text_is_escaped(track, comparison):
    nasty = '<script>alert("&")</script>'
    page = render_comparison(comparison, replace(track, name=nasty, track_id=nasty), nasty, [])
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)" in page
