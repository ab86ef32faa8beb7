"""A track file that is dropped on the page in a real browser: driven at once, or refused in one line."""

import json
import os
from pathlib import Path

import pytest

from tracks.map_texts import LENGTH_M, geojson_text, osm_text

pytestmark = pytest.mark.timeout(240)

# Milliseconds from the drop to the first frame in which a car moves on the track.
STOPWATCH = """
window.addEventListener('drop', () => {
  const began = performance.now();
  const look = () => {
    const { track, cars } = hotlap.state();
    if (track === 'ring' && cars.length && cars[0].speed > 0) window.waited = performance.now() - began;
    else requestAnimationFrame(look);
  };
  look();
}, true);
"""
TOAST = "document.querySelector('#toast').textContent"


@pytest.fixture
def page(used_server_page):
    """Watch, with a car that drives."""
    used_server_page.wait("hotlap.state().cars.length && hotlap.state().cars[0].speed > 1")
    return used_server_page


def picture(page, name):
    if folder := os.environ.get("HOTLAP_PICTURES"):
        page.picture(Path(folder) / f"{name}.png")


def test_a_dropped_file_is_driven_by_the_generalist_within_a_moment(page, tmp_path, record_property):
    path = tmp_path / "Ring.osm"
    path.write_text(osm_text(), encoding="utf-8")
    page.drag("dragEnter", path)
    page.drag("dragOver", path)
    page.wait("!document.querySelector('#drop').hidden")
    picture(page, "drop-dragged")
    page.evaluate("void window.dispatchEvent(new DragEvent('dragleave'))")  # out of the window
    page.wait("document.querySelector('#drop').hidden")
    assert page.state()["track"] == "track-01"
    page.evaluate(f"void (() => {{ {STOPWATCH} }})()")
    page.drop(path)
    waited_ms = page.wait("window.waited")
    record_property("figure", f"dropped file to the first moving frame: {waited_ms:.0f} ms")
    state = page.state()
    assert (state["view"], [car["id"] for car in state["cars"]]) == ("watch", ["generalist"])
    assert abs(page.evaluate("hotlap.app.track.length_m") - LENGTH_M) < 0.003 * LENGTH_M
    assert page.evaluate("document.querySelector('#drop').hidden")
    shown = page.evaluate("document.querySelector('#attribution').textContent")
    assert shown == "© OpenStreetMap contributors, Open Database License 1.0 (way 71, way 72)"
    if page.evaluate("hotlap.app.server.has('optimal')"):
        # A lap solved before on this machine is known at once.
        page.wait("/^(Solving the o|O)ptimal lap/.test(document.querySelector('#track-note').textContent)")
    picture(page, "drop-driven")
    page.reload()
    page.wait("document.querySelector('#attribution')?.textContent.startsWith('© OpenStreetMap')")
    assert page.errors == []


def test_a_lap_is_on_the_track_before_the_driver_that_follows_it_is_made(static_page, open_page):
    page = open_page(static_page.url)
    solving = {"state": "solving", "progress": 0.2, "line": None, "lap_time_sec": None, "standing_lap_time_sec": None}
    known = {**solving, "progress": 0.6, "line": {"x_m": [1]}, "lap_time_sec": 61.5, "standing_lap_time_sec": 65}
    answers = [solving, known, {**known, "progress": 0.7}, {**known, "state": "solved"}]
    told = page.evaluate(
        "(async () => { const { solveOptimum } = await import('./js/optimum.js'); const told = [];"
        f"const answers = {json.dumps(answers)};"
        "const server = { post: async () => {}, get: async () => answers.shift() };"
        "window.setTimeout = (done) => queueMicrotask(done);"
        "await solveOptimum(server, 'ring', () => true, (text) => told.push(text), (lap) => told.push(lap.progress));"
        "return told; })()"
    )
    times = "Optimal lap 1:01.500, from standing 1:05.000."
    assert told == [
        "Solving the optimal lap: 20 %",
        0.6,
        f"{times} Making its driver: 60 %",
        f"{times} Making its driver: 70 %",
        times,
    ]


def test_a_bad_file_is_told_why_and_nothing_changes(page, tmp_path):
    bad = {
        "empty.osm": (b"", "empty.osm:1: is not XML"),
        "picture.csv": (b"\x89PNG\r\n\x1a\n\0", "picture.csv:1: a track is a text file, this one is binary"),
        "loop.geojson": (b'{"type": "LineString", "coordinates": [[8, 50], [8.01, 50]]}', "its roads form no loop"),
        "planet.osm": (None, "planet.osm has 21 MB; a track file has at most 20. Cut out one circuit."),
    }
    for name, (content, words) in bad.items():
        path = tmp_path / name
        path.write_bytes(content or b"")
        if content is None:
            os.truncate(path, 21_000_000)
        page.drop(path)
        page.wait(f"{TOAST}.includes({json.dumps(words)})")
        assert str(tmp_path) not in page.evaluate(TOAST)
    page.drop(tmp_path / "empty.osm", tmp_path / "loop.geojson")
    page.wait(f"{TOAST} === 'One file at a time: a track is one file, got 2.'")
    page.drop(tmp_path)
    page.wait(f"{TOAST}.endsWith('cannot be read. Is it a folder? Choose one file.')")
    assert page.state()["track"] == "track-01"
    assert page.state()["cars"][0]["id"] == "champion"
    assert page.state()["connected"]
    # The browser notes the two answers of 422 in its console; the page itself has no error.
    assert all("422" in error for error in page.errors)


def test_a_file_is_opened_by_the_button_of_draw(page, tmp_path):
    path = tmp_path / "Chosen.geojson"
    path.write_text(geojson_text(attribution="Surveyed by the club."), encoding="utf-8")
    page.click("nav a[data-view=draw]")
    page.wait("document.querySelector('[data-action=open-file]')")
    picture(page, "drop-button")
    page.call("Page.setInterceptFileChooserDialog", enabled=True)
    page.click("[data-action=open-file]")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector="#track-file")["nodeId"]
    page.call("DOM.setFileInputFiles", files=[str(path)], nodeId=node)
    page.call("Page.setInterceptFileChooserDialog", enabled=False)
    page.wait(
        "hotlap.state().track === 'chosen' && hotlap.state().view === 'watch' && hotlap.state().cars[0].speed > 1"
    )
    assert page.evaluate("document.querySelector('#attribution').textContent").startswith("Surveyed by the club.")
    assert page.errors == []


def test_without_a_server_a_drop_says_what_it_needs(used_page, tmp_path):
    opened = used_page
    path = tmp_path / "ring.osm"
    path.write_text(osm_text(), encoding="utf-8")
    opened.drop(path)
    opened.wait(f"{TOAST}.startsWith('Track files are read by the server. Start one with the command hotlap play')")
    assert opened.state()["track"] == "track-01"
    assert opened.errors == []
