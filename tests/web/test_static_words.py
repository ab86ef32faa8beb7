"""What the page says is said in a person's words."""

import json
import urllib.error
import urllib.request

import pytest

pytestmark = pytest.mark.timeout(120)


def check(web_server, points):
    body = json.dumps({"points": points, "width_m": 12.0}).encode()
    request = urllib.request.Request(web_server.url + "api/drawings/check", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["fault"]["text"]


def test_the_board_describes_a_track_in_sentences(used_page):
    used_page.show("board", track="track-02")
    text = used_page.wait("document.querySelector('.page-inner > p')?.textContent")
    assert "m of fast" not in text
    assert "2408 m" in text
    assert "Fast: long straights and big sweepers." in text


def test_a_fault_of_a_drawing_speaks_of_the_line_not_of_a_file(web_server):
    fold = [[0, 0], [100, 0], [100, 100], [50, 100], [50, 0.5], [50, 100.5], [0, 100], [-50, 50]]
    star = [[200, 0], [-150, 130], [60, -190], [60, 190], [-160, -120], [190, 60], [-100, 180], [-190, -60], [130, 150]]
    for points in (fold, star):
        text = check(web_server, points)
        assert "row" not in text
        assert " s = " not in text


def test_an_unknown_driver_or_track_is_told_without_its_id(static_page, open_page):
    page = open_page(f"{static_page.url}?driver=run:page-track-01-1#watch")
    page.wait("document.querySelector('#toast').classList.contains('shown')")
    assert "page-track-01-1" not in page.evaluate("document.querySelector('#toast').textContent")


def test_a_run_of_the_page_is_a_driver_with_a_name(used_page):
    name = used_page.evaluate(
        "import('./js/server.js').then(({ driverName }) => "
        "driverName({ id: 'run:page-track-01-2', name: 'page-track-01-2', kind: 'model' }))"
    )
    assert name == "AI of your run 2"
