"""The page with its server, in a real browser: board, links, drawings, training, and a server that goes away."""

import json
import urllib.request
from dataclasses import replace

import numpy as np
import pytest

from hotlap.web.replay_format import Replay
from web.test_static_page import drive_race

pytestmark = pytest.mark.timeout(300)

# Straights and four corners, to the right of the panel.
MAX_ID_CHARS = 22
LOOP = [(0.32, 0.5), (0.32, 0.3), (0.5, 0.28), (0.82, 0.3), (0.82, 0.6), (0.7, 0.76), (0.5, 0.76), (0.34, 0.7)]


def get(server, path):
    with urllib.request.urlopen(server.url + path, timeout=30) as answer:
        return json.load(answer)


def draw(page, points):
    """Draw a closed line with the mouse; points are fractions of the canvas."""
    width, height = page.evaluate("[innerWidth, innerHeight]")
    corners = [(x * width, y * height) for x, y in points]
    page.mouse("mousePressed", *corners[0])
    for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True):
        for k in range(1, 9):
            page.mouse("mouseMoved", x0 + (x1 - x0) * k / 8, y0 + (y1 - y0) * k / 8)
    page.mouse("mouseReleased", *corners[0])


def test_a_race_ends_on_the_board_and_its_link_opens_for_another_visitor(web_server, open_page):
    page = open_page(f"{web_server.url}?driver=casual#race")
    page.wait("hotlap.state().connected && hotlap.state().view")
    drive_race(page)
    time_s = page.evaluate("Number(document.querySelector('#result .big-lap').dataset.seconds)")
    page.evaluate("document.querySelector('#driver-name').value = 'Ada', document.querySelector('#post-lap').click()")
    page.wait("hotlap.app.views.race.status.textContent.startsWith('On the board')")
    laps = {one["lap_time_sec"] for one in get(web_server, "api/board?track=track-01") if one["driver"] == "Ada"}
    assert time_s in laps

    page.evaluate(
        "window.prompt = () => null; "
        "[...document.querySelectorAll('#result .button')].find((one) => one.textContent === 'Share link').click()"
    )
    link = page.wait("hotlap.app.shared")
    name = link.split("#watch?id=")[1]
    assert len(name) <= MAX_ID_CHARS
    friend = open_page(link)
    friend.wait("document.querySelector('#replay-time')")
    assert friend.evaluate("Number(document.querySelector('#replay-time').dataset.seconds)") == time_s
    assert friend.evaluate("document.querySelector('#side h2').textContent") == "Ada"
    friend.evaluate("hotlap.setPace(64)")
    friend.wait(f"hotlap.state().cars[0].best_lap_time_sec === {time_s!r}", 60)
    # A link that holds its replay as runs of inputs opens too; a time one bit better than the lap is refused.
    replay = Replay.from_bytes(urllib.request.urlopen(f"{web_server.url}api/replays/{name}").read())
    friend.go("about:blank")
    friend.go(f"{web_server.url}#watch?replay={replay.to_text()}")
    friend.wait("document.querySelector('#replay-time')")
    better = replace(replay, lap_time_s=np.nextafter(replay.lap_time_s, np.float32(0.0)))
    friend.go("about:blank")
    friend.go(f"{web_server.url}#watch?replay={better.to_text()}")
    friend.wait("document.querySelector('#toast').classList.contains('shown')")
    assert "does not drive the lap it claims" in friend.evaluate("document.querySelector('#toast').textContent")
    assert friend.evaluate("document.querySelector('#replay-time') === null")
    page.call("Page.bringToFront")
    page.click("nav a[data-view=board]")
    page.wait("document.querySelector('#board tr[data-kind=human]')")
    assert page.errors == []


def test_a_drawn_track_is_checked_saved_and_raced(web_server, used_server_page, open_page):
    page = used_server_page
    page.show("draw")
    page.evaluate("hotlap.app.views.draw.clear()")
    page.wait("hotlap.state().message === 'Draw a closed line'")
    draw(page, LOOP)
    page.wait("document.querySelector('#draw-ok')")
    assert page.state()["message"].startswith("A road of")
    points = page.evaluate("hotlap.app.views.draw.points")
    link = page.evaluate("(window.prompt = () => null, hotlap.app.views.draw.share().then(() => hotlap.app.shared))")
    other = open_page(link)
    other.wait("document.querySelector('#draw-ok')")
    assert np.abs(np.subtract(other.evaluate("hotlap.app.views.draw.points"), points)).max() <= 0.051  # decimetres
    page.call("Page.bringToFront")
    page.click("[data-action=race-drawing]")
    page.wait("hotlap.state().track.startsWith('my-track') && document.querySelector('[data-action=start]')", 60)
    page.click("[data-action=start]")
    page.wait("hotlap.state().racing", 20)
    page.key("ArrowUp", True)
    page.wait("hotlap.state().cars[0].speed > 3")
    page.key("ArrowUp", False)
    assert page.state()["track"] in [one["id"] for one in get(web_server, "api/tracks")]
    assert page.errors == []


def test_a_bad_drawing_is_told_why(used_server_page):
    page = used_server_page
    page.show("draw")
    page.evaluate("hotlap.app.views.draw.clear()")
    page.wait("hotlap.state().message === 'Draw a closed line'")
    narrow = [(0.40, 0.5), (0.7, 0.49), (0.7, 0.505), (0.40, 0.515)]
    draw(page, narrow)
    text = page.wait("document.querySelector('#draw-fault')?.textContent")
    assert any(word in text for word in ("tight", "crosses", "folds back")), text
    assert page.evaluate("document.querySelector('[data-action=race-drawing]').disabled")
    assert page.errors == []


@pytest.mark.slow
def test_the_server_may_stop_and_start_again_and_two_tabs_drive_at_once(web_server, browser):
    page, other = browser.open(web_server.url), browser.open(f"{web_server.url}#race")
    for one in (page, other):
        one.wait("hotlap.state().connected && hotlap.state().cars.length")
    web_server.stop()
    page.wait("!hotlap.state().connected && document.querySelector('.offline')")
    tick = page.state()["tick"]
    page.call("Page.bringToFront")
    page.wait(f"hotlap.state().tick > {tick + 30}")
    web_server.restart()
    page.wait("hotlap.state().connected && !document.querySelector('.offline')", 60)
    assert page.state()["cars"][0]["speed"] >= 0.0


@pytest.mark.slow
def test_a_training_appears_live_its_curve_grows_and_the_slider_changes_the_driver(web_server, browser):
    page = browser.open(f"{web_server.url}#learn")
    page.wait("hotlap.state().connected && document.querySelector('[data-action=train]')")
    page.evaluate(
        "document.querySelector('#steps').value = 400000; document.querySelector('[data-action=train]').click()"
    )
    page.wait("hotlap.app.views.learn.run && hotlap.app.views.learn.run.id !== 'recorded'", 60)
    page.wait("hotlap.app.views.learn.run.curves?.return?.step.length > 1", 200)
    points = page.evaluate("hotlap.app.views.learn.run.curves.return.step.length")
    page.wait(f"hotlap.app.views.learn.run.curves.return.step.length > {points}", 120)
    page.wait("document.querySelector('#run-laps').textContent.startsWith('Newest: completed ')", 120)
    page.wait("hotlap.app.views.learn.run.checkpoints.length > 2 && hotlap.app.stage.swarm", 120)
    assert page.evaluate("hotlap.app.stage.swarm.numCars") == 256
    before = page.evaluate("hotlap.app.views.learn.shownStep")
    slide = "(slider) => { slider.value = 0; slider.dispatchEvent(new Event('input')); }"
    page.evaluate(f"({slide})(document.querySelector('#checkpoint'))")
    page.wait(f"hotlap.app.views.learn.shownStep < {before}", 30)
    page.evaluate("document.querySelector('[data-action=stop]')?.click()")
    page.wait("['stopped', 'finished'].includes(hotlap.app.views.learn.run.state)", 120)
    assert page.errors == []
