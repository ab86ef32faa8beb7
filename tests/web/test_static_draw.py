"""Drawing a road in a real browser: stray clicks, undo, new lines, names."""

import json
import urllib.request

import pytest

from web.chromium import CONTROL, SHIFT
from web.test_server_page import LOOP, draw

pytestmark = pytest.mark.timeout(180)
POINTS = "hotlap.app.views.draw.points"
GRASS = (0.58, 0.5)  # inside the loop, far from its points
NARROW = [(0.40, 0.5), (0.7, 0.49), (0.7, 0.505), (0.40, 0.515)]


def save(web_server, track_id):
    """Save a track as an earlier visit would have done."""
    points = [[150, 0], [100, 90], [0, 120], [-100, 90], [-150, 0], [-100, -90], [0, -120], [100, -90]]
    body = json.dumps({"id": track_id, "points": points, "width_m": 12.0, "replace": True}).encode()
    request = urllib.request.Request(web_server.url + "api/tracks", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["road"]


@pytest.fixture
def drawn(used_server_page):
    """Draw with a road on it."""
    page = used_server_page
    page.show("draw")
    page.evaluate("hotlap.app.views.draw.clear()")
    page.wait("hotlap.state().message === 'Draw a closed line'")
    draw(page, LOOP)
    page.wait("document.querySelector('#draw-ok')")
    return page


def click(page, place):
    width, height = page.evaluate("[innerWidth, innerHeight]")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, place[0] * width, place[1] * height)


def test_a_click_beside_the_points_changes_nothing(drawn):
    points = drawn.evaluate(POINTS)
    click(drawn, GRASS)
    assert drawn.evaluate(POINTS) == points
    assert drawn.evaluate("hotlap.app.views.draw.isReady")
    assert drawn.errors == []


def test_every_change_can_be_undone_and_done_again(drawn):
    points = drawn.evaluate(POINTS)
    drawn.evaluate("void document.activeElement.blur()")
    drawn.evaluate("hotlap.app.views.draw.clear()")
    assert drawn.evaluate(POINTS) == []
    drawn.press("KeyZ", CONTROL)
    assert drawn.evaluate(POINTS) == points
    drawn.wait("document.querySelector('#draw-ok')")
    drawn.press("KeyZ", CONTROL | SHIFT)
    assert drawn.evaluate(POINTS) == []
    drawn.click("[data-action=undo]")
    assert drawn.evaluate(POINTS) == points
    drawn.click("[data-action=redo]")
    assert drawn.evaluate(POINTS) == []
    assert drawn.errors == []


def test_the_line_of_before_stays_until_the_new_one_is_a_road(drawn):
    points = drawn.evaluate(POINTS)
    draw(drawn, NARROW)
    drawn.wait("document.querySelector('#draw-refused')")
    assert drawn.evaluate(POINTS) == points
    assert drawn.evaluate("!document.querySelector('[data-action=race-drawing]').disabled")
    wider = [(0.3 + 1.2 * (x - 0.32), y) for x, y in LOOP]
    draw(drawn, wider)
    drawn.wait(f"JSON.stringify({POINTS}) !== {json.dumps(json.dumps(points, separators=(',', ':')))}")
    drawn.wait("document.querySelector('#draw-ok') && !document.querySelector('#draw-refused')")
    assert drawn.errors == []


def test_a_new_drawing_never_replaces_a_track_that_was_saved(web_server, drawn):
    roads = {name: save(web_server, name) for name in ("my-track", "loop")}
    drawn.evaluate("hotlap.app.views.draw.show()")
    drawn.wait("document.querySelector('#draw-ok') && document.querySelector('#draw-name').value === 'my-track-2'")
    assert drawn.evaluate("hotlap.app.views.draw.save()") == "my-track-2"
    name = "document.querySelector('#draw-name')"
    drawn.evaluate(f"{name}.value = 'Loop', {name}.dispatchEvent(new Event('change'))")
    assert drawn.evaluate("hotlap.app.views.draw.save()") == "loop-2"
    assert "loop-2" in drawn.evaluate("document.querySelector('#toast').textContent")
    drawn.evaluate("hotlap.app.views.draw.reverse()")  # the same drawing, changed: it replaces itself
    drawn.wait("document.querySelector('#draw-ok')")
    assert drawn.evaluate("hotlap.app.views.draw.save()") == "loop-2"
    for name, road in roads.items():
        with urllib.request.urlopen(f"{web_server.url}api/tracks/{name}", timeout=30) as answer:
            assert json.load(answer)["road"] == road
    assert drawn.errors == []


def test_without_a_server_a_road_is_drawn_driven_saved_and_raced(static_page, open_page):
    page = open_page(f"{static_page.url}?track=track-02#watch")
    page.wait("hotlap.state().cars.length")
    page.click("nav a[data-view=draw]")
    page.wait("hotlap.state().message === 'Draw a closed line'")
    # Nothing is left of the track that was watched: all is grass, with faint lines and a thin word where to draw.
    drawn = (
        "(() => { const { context, canvas } = hotlap.app.stage; let count = 0;"
        "const { data } = context.getImageData(400, 50, canvas.width - 450, canvas.height - 100);"
        "for (let k = 0; k < data.length; k += 1) if (Math.abs(data[k] - data[k % 4]) > 16) count += 1;"
        "return count / data.length; })()"
    )
    assert 0.001 < page.evaluate(drawn) < 0.02
    draw(page, LOOP)
    page.wait("document.querySelector('#draw-ok')")
    page.wait("hotlap.state().cars[0]?.speed > 1")  # the generalist drives it
    page.click("[data-action=race-drawing]")
    page.wait("hotlap.state().track === 'my-track' && document.querySelector('[data-action=start]')")
    assert page.evaluate("hotlap.app.views.race.ghost.id") == "generalist"
    # A driver that has no lap here leaves the ladder, and the next one is raced.
    page.evaluate(
        "(() => { const { drivers, views } = hotlap.app; views.race.wanted = null; "
        "drivers.push({ id: 'casual', kind: 'casual', name: 'Casual driver', replay: 'data/tracks.json' }); "
        "return views.race.prepare(); })()"
    )
    assert page.evaluate("[hotlap.app.views.race.ghost.id, hotlap.app.drivers.some((one) => one.id === 'casual')]") == [
        "generalist",
        False,
    ]
    page.reload()
    page.wait("hotlap.state().track === 'my-track' && document.querySelector('[data-action=start]')")
    page.click("#track-button")
    page.wait("document.querySelector('[data-track=my-track]')")
    page.evaluate("hotlap.app.picker.dialog.close()")
    page.click("nav a[data-view=draw]")
    page.wait("document.querySelector('#draw-name')?.value === 'my-track-2'")
    # Train leads to training in the tab, on this road; what needs a server is not offered.
    draw(page, LOOP)
    page.wait("document.querySelector('#draw-ok')")
    button = "[...document.querySelectorAll('#side button')].find((one) => one.textContent === '{}')"
    assert page.evaluate(f"{button.format('Optimum')} === undefined")
    page.evaluate(f"{button.format('Train')}.click()")
    page.wait(
        "hotlap.state().view === 'learn' && hotlap.app.stage.swarm && document.querySelector('#train-here')?.open"
    )
    assert page.evaluate("hotlap.app.stage.track.id") == "my-track-2"
    assert page.errors == []
