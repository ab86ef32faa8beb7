"""The HTML of a page: self-contained, all text escaped, pictures in pairs."""

import re

import pytest

from hotlap.reports.html import Picture, render_document, render_headline, render_note, render_pictures, render_table
from hotlap.reports.tables import Table
from reports.markup import assert_complete

NASTY = '<script>alert("&")</script>'
SAFE = "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"


def test_document_is_complete_and_supports_dark_mode():
    page = render_document("a & b", ["<p>x</p>", *render_pictures([Picture("a.png", "A", "b", b"one")])])
    assert_complete(page, 1)
    assert "<title>a &amp; b · hotlap</title>" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r": (DRIVER|OPTIMUM|LOSS|GAIN);", page)


def test_text_is_escaped_everywhere():
    parts = [
        render_note(NASTY),
        render_headline([("lap", NASTY)]),
        *render_pictures([Picture("a.png", NASTY, NASTY, b"")]),
        render_table(Table([NASTY, NASTY], [[NASTY, NASTY]])),
    ]
    page = render_document(NASTY, parts)
    assert "<script" not in page
    assert page.count(SAFE) == 10
    assert_complete(page, 1)


@pytest.mark.parametrize(
    ("kinds", "layout"),
    [("", ""), ("w", "w"), ("hh", "(hh)"), ("whhw", "w(hh)w"), ("h", "(h)"), ("hwhh", "(h)w(hh)")],
)
def test_consecutive_halves_are_paired(kinds, layout):
    pictures = [Picture("a.png", "A", "", b"", is_half=kind == "h") for kind in kinds]
    html = "".join(render_pictures(pictures))
    remaining = iter(kinds)
    found = re.sub(r'<div class="pair">', "(", html)
    found = re.sub(r"<section.*?</section>", lambda _: next(remaining), found).replace("</div>", ")")
    assert found == layout


def test_summary_rows_are_highlighted():
    html = render_table(Table(["seed", "lap"], [["1", "30 s"], ["median", "30 s"]], num_summary_rows=1))
    assert re.findall(r'<tr class="(\w*)">', html) == ["", "sum"]
    assert re.findall(r'<td class="(\w+)">', html) == ["name", "number"] * 2
