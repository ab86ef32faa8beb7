"""The track of the day and the search for tracks, in a real browser."""

from datetime import datetime, timedelta, timezone

import pytest

from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import about_generated, load_track
from hotlap.web.page_data import DAY_ONE, daily_track

pytestmark = pytest.mark.timeout(120)
CARDS = "[...document.querySelectorAll('.track-card')]"


def test_the_page_knows_the_servers_track_of_the_day(used_page):
    page = used_page
    days = [DAY_ONE + timedelta(days=number) for number in (-3, 0, 1, 77, 124, 125, 5000)]
    times = [datetime(day.year, day.month, day.day, 23, 59, 59, tzinfo=timezone.utc).timestamp() for day in days]
    found = page.evaluate(
        f"import('./js/daily.js').then(({{ dailyTrack }}) => {times}.map((time) => dailyTrack(1000 * time)))"
    )
    assert found == [{"day": day.isoformat(), "track": daily_track(day)} for day in days]
    # The page builds the day's road itself, of its line: the server's, by its digest.
    page.wait("document.querySelector('#daily')")
    day, track = page.evaluate("[hotlap.app.daily.day, hotlap.app.daily.id]")
    assert daily_track(datetime.fromisoformat(day).date()) == track
    page.click("#daily")
    page.wait(f"hotlap.state().track === '{track}' && hotlap.state().tick > 60")
    assert page.evaluate("hotlap.app.track.road") == track_digest(load_track(track).nodes)
    assert page.evaluate("hotlap.app.track.medals_sec.gold > 0")
    roads = page.evaluate(
        "Promise.all(['train-007', 'test-024'].map(async (id) => (await import('./js/tracks.js'))"
        ".loadTrack(id, hotlap.app.engine.description, true))).then((all) => all.map((one) => one.road))"
    )
    assert roads == [about_generated(track)["road"] for track in ("train-007", "test-024")]
    assert page.errors == []


def test_the_track_of_the_day_is_offered_and_has_a_board_of_its_own(used_server_page):
    page = used_server_page
    page.wait("document.querySelector('#daily')")
    day, track = page.evaluate("[hotlap.app.daily.day, hotlap.app.daily.id]")
    assert daily_track(datetime.fromisoformat(day).date()) == track
    page.click("#daily")
    page.wait(f"hotlap.state().track === '{track}' && hotlap.state().cars.length === 1")
    page.click("nav a[data-view=board]")
    page.wait("document.querySelector('#board tbody tr')")
    pressed = "document.querySelector('.days [aria-pressed=true]').textContent"
    assert page.evaluate(pressed) == "Today"
    assert page.evaluate("document.querySelector('#page h1').textContent").endswith(", track of the day")
    page.click(".days button:last-child")
    page.wait(f"{pressed} === 'All time' && document.querySelector('#board tbody tr')")
    asked = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert any(f"api/board?track={track}&day={day}" in one for one in asked)
    assert page.errors == []


def test_tracks_are_found_by_length_and_character_and_have_a_thumbnail(web_server, open_page):
    page = open_page(web_server.url)
    page.wait("hotlap.app.daily")
    page.click("#track-button")
    page.wait(f"{CARDS}.length >= 128")
    assert page.evaluate(f"{CARDS}[0].dataset.track === hotlap.app.daily.id")
    choose = (
        "(() => { for (const [name, value] of [['length', '0-1000'], ['kind', 'technical']]) {"
        "const select = document.querySelector(`[data-filter=${name}]`); select.value = value;"
        "select.dispatchEvent(new Event('change')); } })()"
    )
    page.evaluate(choose)
    texts = page.evaluate(f"{CARDS}.map((card) => card.querySelector('small').textContent)")
    assert 0 < len(texts) < 20
    assert all(int(text.split(" m")[0]) <= 1000 and "technical" in text for text in texts)
    page.wait(
        f"{CARDS}[0].querySelector('canvas').getContext('2d').getImageData(0, 0, 480, 240).data.some((one) => one > 0)"
    )
    # No track was loaded for it.
    asked = page.evaluate("performance.getEntriesByType('resource').map((one) => one.name)")
    assert not any("train-" in one or "test-" in one for one in asked)
    assert page.errors == []
