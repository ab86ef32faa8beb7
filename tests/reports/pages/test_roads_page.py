"""The page on many roads: a table, and a card for each road, all text escaped."""

from dataclasses import replace

from hotlap.evaluation.failures import Failures, TrackPlace
from hotlap.reports.html import Picture
from hotlap.reports.pages.roads_page import render_roads
from reports.markup import assert_complete, text_of
from reports.test_road_laps import road_with

PICTURES = [Picture("a.png", "One", "", b"one"), Picture("b.png", "Two", "", b"two")]


def test_page_has_a_card_for_each_road_and_corners_where_the_optimum_is_known(track, comparison):
    failures = Failures(stopped=(TrackPlace(0.0, 0.0, comparison.sectors[0].apex_m),))
    roads = [road_with(track, failures=failures), road_with(track, 0.05, 29.5, comparison)]
    page = render_roads(roads, PICTURES, "casual", ["Skipped notes.txt"])
    assert_complete(page, 2)
    text = text_of(page)
    assert "casual on 2 roads" in text
    assert "40 random starts, seed 0" in text
    assert "“not solved”: the optimal lap is not known; --solve solves it." in text
    assert f"1 car stopped near {comparison.sectors[0].label} (crosses)" in text
    assert "Skipped notes.txt" in text
    assert page.count('class="bar"') == 7
    assert page.count('class="card whole"') == 1


def test_text_is_escaped(track):
    nasty = '<script>alert("&")</script>'
    page = render_roads([road_with(replace(track, name=nasty))], PICTURES[:1], nasty, [nasty])
    assert "<script" not in page
