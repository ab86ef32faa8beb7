"""The shell of a page: nothing fetched, all text escaped, pictures in pairs."""

import re

import pytest

from hotlap.reports.html import (
    Picture,
    headline,
    note,
    render_document,
    render_pictures,
    render_table,
    signed,
)
from hotlap.reports.tables import Table
from reports.markup import assert_whole

NASTY = '<script>alert("&")</script>'
SAFE = "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"


def test_the_document_is_whole_and_goes_with_day_and_night():
    page = render_document("a & b", ["<p>x</p>", *render_pictures([Picture("a.png", "A", "b", b"one")])])
    assert_whole(page, 1)
    assert "<title>a &amp; b · hotlap</title>" in page
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r": (DRIVER|OPTIMUM|LOSS|GAIN);", page)


def test_text_is_escaped_everywhere():
    parts = [
        note(NASTY),
        headline([("lap", NASTY)]),
        *render_pictures([Picture("a.png", NASTY, NASTY, b"")]),
        render_table(Table([NASTY, NASTY], [[NASTY, NASTY]])),
    ]
    page = render_document(NASTY, parts)
    assert "<script" not in page
    assert page.count(SAFE) == 10
    assert_whole(page, 1)


@pytest.mark.parametrize(
    ("halves", "shape"),
    [
        ("", ""),
        ("w", "w"),
        ("hh", "(hh)"),
        ("whhw", "w(hh)w"),
        ("h", "(h)"),
        ("hwhh", "(h)w(hh)"),
    ],
)
def test_halves_stand_in_pairs(halves, shape):
    pictures = [Picture("a.png", "A", "", b"", is_half=kind == "h") for kind in halves]
    html = "".join(render_pictures(pictures))
    kinds = iter(halves)
    found = re.sub(r'<div class="pair">', "(", html)
    found = re.sub(r"<section.*?</section>", lambda _: next(kinds), found).replace("</div>", ")")
    assert found == shape


def test_rows_over_all_runs_stand_out():
    html = render_table(Table(["seed", "lap"], [["1", "30 s"], ["median", "30 s"]], num_summary_rows=1))
    assert re.findall(r'<tr class="(\w*)">', html) == ["", "sum"]
    assert re.findall(r'<td class="(\w+)">', html) == ["name", "number"] * 2


def test_losses_and_gains_have_signs():
    assert signed(1.836) == "+1.84"
    assert signed(-0.5) == "−0.50"
