"""The report's page: nothing fetched, all text escaped, the figures in it."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.comparison import compare
from hotlap.evaluation.page import Picture, render_page, signed
from hotlap.tracks.registry import load_track

VOID = {"meta", "img"}


class Balance(HTMLParser):
    """Fails on a tag closed out of turn; collects tags and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def track():
    return load_track("track-01")


@pytest.fixture(scope="module")
def comparison(track):
    raceline = centreline_raceline(track)
    return compare(follow(raceline, track, 0.9), track, raceline, float(clock(raceline, track)[1][-1]))


PICTURES = [Picture("a.png", "Losses", "red", b"one"), Picture("b.png", "Line", "fast", b"two", is_half=True)]


def test_headline_and_table_say_what_was_measured(track, comparison):
    page = render_page(comparison, track, "casual", PICTURES)
    assert f"{comparison.lap.time_s:.2f} s" in page
    assert f"{comparison.optimal_lap_s:.2f} s" in page
    assert "+11.1 %" in page
    labels = re.findall(r"T\d [a-z ]+(?=</td>)", page)
    assert labels == [sector.label for sector in comparison.sectors]
    assert page.count('class="bar"') == 7


def test_the_page_is_whole_and_fetches_nothing(track, comparison):
    page = render_page(comparison, track, "casual", PICTURES)
    reader = Balance()
    reader.feed(page)
    assert reader.open == []
    sources = [attributes["src"] for tag, attributes in reader.seen if tag == "img"]
    assert len(sources) == 2
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in reader.seen}
    assert not re.search(r"https?:|url\(|@import|//", re.sub(r"base64,[^\"]*", "", page))
    assert "prefers-color-scheme: dark" in page


def test_text_is_escaped(track, comparison):
    nasty = '<script>alert("&")</script>'
    pictures = [Picture("a.png", nasty, nasty, b"")]
    page = render_page(comparison, replace(track, name=nasty, track_id=nasty), nasty, pictures)
    assert "<script" not in page
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)" in page


def test_a_lap_that_was_not_clean_says_so(track, comparison):
    assert "not clean" not in render_page(comparison, track, "casual", [])
    spoiled = replace(comparison, lap=replace(comparison.lap, is_clean=False))
    assert "not clean" in render_page(spoiled, track, "casual", [])


def test_losses_and_gains_have_signs():
    assert signed(1.836) == "+1.84"
    assert signed(-0.5) == "−0.50"
