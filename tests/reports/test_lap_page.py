"""The page on a driver's lap: the figures in it, all text escaped."""

import re
from dataclasses import replace

import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import compare
from hotlap.reports.html import Picture
from hotlap.reports.lap_page import render_comparison
from hotlap.tracks.registry import load_track
from reports.markup import assert_whole

PICTURES = [Picture("a.png", "Losses", "red", b"one"), Picture("b.png", "Line", "fast", b"two", is_half=True)]


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def comparison(track):
    raceline = centreline_raceline(track)
    return compare(follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1]))


def test_headline_and_table_say_what_was_measured(track, comparison):
    page = render_comparison(comparison, track, "casual", PICTURES)
    assert f"{comparison.lap.time_s:.2f} s" in page
    assert f"{comparison.optimal_lap_s:.2f} s" in page
    assert "+11.1 %" in page
    labels = re.findall(r"T\d [a-z ]+(?=</td>)", page)
    assert labels == [sector.label for sector in comparison.sectors]
    assert page.count('class="bar"') == 7


def test_the_page_is_whole_and_fetches_nothing(track, comparison):
    assert_whole(render_comparison(comparison, track, "casual", PICTURES), 2)


def test_text_is_escaped(track, comparison):
    nasty = '<script>alert("&")</script>'
    page = render_comparison(comparison, replace(track, name=nasty, track_id=nasty), nasty, [])
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)" in page


def test_a_lap_that_was_not_clean_says_so(track, comparison):
    assert "not clean" not in render_comparison(comparison, track, "casual", [])
    spoiled = replace(comparison, lap=replace(comparison.lap, is_clean=False))
    assert "not clean" in render_comparison(spoiled, track, "casual", [])
