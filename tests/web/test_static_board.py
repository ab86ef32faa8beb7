"""The leaderboard in a real browser: whose rows, whose colours, whose names."""

import json
import urllib.request
from dataclasses import replace

import numpy as np
import pytest

from hotlap.web.page_data import RECORDED
from hotlap.web.replay_format import Replay
from hotlap.web.replays import simulate

pytestmark = pytest.mark.timeout(180)
LATENCY_MS = 300
ROWS = "[...document.querySelectorAll('#board tbody tr')]"


def persons_lap(first_throttle):
    """A lap as a person might have driven it: the casual driver's, with another first input."""
    recorded = Replay.from_bytes((RECORDED / "track-01.casual.replay").read_bytes())
    actions = recorded.actions.copy()
    actions[0, 1] = np.float32(first_throttle) / np.float32(255)
    changed = replace(recorded, actions=actions)
    return replace(changed, lap=1, lap_time_s=np.float32(simulate(changed, "track-01")[0].time_s))


def post(web_server, driver, replay):
    body = json.dumps({"track": "track-01", "driver": driver, "replay": replay.to_text()}).encode()
    request = urllib.request.Request(web_server.url + "api/board", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_only_the_visitors_own_rows_are_marked(web_server, open_page):
    post(web_server, "Ada", persons_lap(1))
    page = open_page(f"{web_server.url}#board")
    page.wait(f"{ROWS}.some((row) => row.textContent.includes('Ada'))")
    assert page.evaluate(f"{ROWS}.filter((row) => row.classList.contains('mine')).length") == 0
    # A lap that this browser sends is its own.
    own = persons_lap(2)
    page.evaluate(f"hotlap.app.board.send('track-01', 'Bo', {json.dumps(own.to_text())})")
    page.evaluate("hotlap.app.views.board.show()")
    page.wait(f"{ROWS}.some((row) => row.textContent.includes('Bo'))")
    marked = page.evaluate(f"{ROWS}.filter((row) => row.classList.contains('mine')).map((row) => row.textContent)")
    assert [("Bo" in text, "Ada" in text) for text in marked] == [(True, False)]
    assert page.errors == []


def test_a_lap_is_sent_only_under_a_name_and_a_link_names_whoever_drove(web_server, open_page):
    page = open_page(f"{web_server.url}#race")
    page.wait("document.querySelector('[data-action=start]') && hotlap.state().connected")
    text = persons_lap(3).to_text()
    show = (
        "(async () => { const { decodeReplay, fromText, recordRun, ReplayPilot } = await import('./js/replay.js');"
        f"const race = hotlap.app.views.race; const text = {json.dumps(text)};"
        "const replay = await decodeReplay(fromText(text));"
        "const run = recordRun(hotlap.app.engine, hotlap.app.track, () => new ReplayPilot(replay), 1);"
        "race.setPhase('finished'); await race.conclude(run, replay.actions); })()"
    )
    names = (
        f"fetch('{web_server.url}api/board?track=track-01').then((a) => a.json()).then((l) => l.map((e) => e.driver))"
    )
    page.evaluate(show)
    page.wait("document.querySelector('#result #driver-name')")
    assert page.evaluate("document.querySelector('#driver-name').value") == ""
    assert "You" not in page.evaluate(names)
    page.evaluate("window.prompt = () => null")
    share = "[...document.querySelectorAll('#result .button')].find((one) => one.textContent === 'Share link').click()"
    page.evaluate(share)
    shared = f"fetch('{web_server.url}api/replays/' + hotlap.app.shared.split('id=')[1] + '?form=about')"
    page.wait("hotlap.app.shared")
    assert page.evaluate(f"{shared}.then((answer) => answer.json())")["driver"] is None
    page.evaluate("document.querySelector('#driver-name').value = 'Cleo', document.querySelector('#post-lap').click()")
    page.wait("document.querySelector('#result [role=status]').textContent.startsWith('On the board')")
    assert "Cleo" in page.evaluate(names)
    # Another name is put on the lap that was sent, and on no other.
    page.evaluate("hotlap.app.go('board')")
    page.wait("document.querySelector('#own-name')?.value === 'Cleo'")
    page.evaluate(
        "(() => { const field = document.querySelector('#own-name'); field.value = 'Dora';"
        "field.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('#renamed').textContent === 'On your lap too.'")
    page.wait(f"{ROWS}.some((row) => row.classList.contains('mine') && row.textContent.includes('Dora'))")
    drivers = page.evaluate(names)
    assert "Dora" in drivers
    assert "Cleo" not in drivers
    assert {"Ada", "Bo"} <= set(drivers)
    assert page.errors == []


def test_the_board_says_that_it_is_loading(web_server, open_page):
    page = open_page("about:blank")
    page.delay(LATENCY_MS)
    page.go(f"{web_server.url}#board")
    page.wait("document.querySelector('#board-loading')?.offsetHeight > 0")
    page.wait(f"{ROWS}.length > 2 && !document.querySelector('#board-loading')")


def test_a_driver_has_one_colour_and_one_lap_time_everywhere(used_page, used_server_page):
    page = used_server_page
    page.wait("hotlap.app.drivers.length > 3")
    # All of them drive at once, the last of the list first.
    page.evaluate("void (hotlap.app.views.watch.chosen = hotlap.app.drivers.map((one) => one.id).reverse())")
    page.evaluate("hotlap.app.views.watch.start()")
    page.wait("hotlap.app.stage.cars.length === hotlap.app.drivers.length")
    colours = page.evaluate("Object.fromEntries(hotlap.app.stage.cars.map((car) => [car.name, car.colour]))")
    assert len(set(colours.values())) == len(colours)
    shown = {}
    for name, board in (("server", page), ("static", used_page)):
        board.call("Page.bringToFront")
        board.show("board")
        board.wait(f"{ROWS}.length >= {len(colours)}")
        shown[name] = board.evaluate(
            f"{ROWS}.filter((row) => row.dataset.kind !== 'human').map((row) => [row.dataset.driver, "
            "row.dataset.colour, row.querySelector('.number').textContent])"
        )
    for rows in shown.values():
        assert {name: colour for name, colour, _ in rows} == colours
    assert {name: lap for name, _, lap in shown["server"]} == {name: lap for name, _, lap in shown["static"]}
    assert {name: lap for name, _, lap in shown["static"]}["Casual driver"] == "0:40.730"
