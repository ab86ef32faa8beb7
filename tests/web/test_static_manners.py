"""What would annoy a visitor: races that go on unseen, words on top of numbers, buttons without use, what jumps."""

import json

import pytest

from web.chromium import CONTROL
from web.test_static_board import ROWS, persons_lap

pytestmark = pytest.mark.timeout(180)
RACING = "hotlap.state().racing"
STARTED = "hotlap.state().cars.length && hotlap.state().message"
SAID = "document.querySelector('#toast.shown')?.textContent"
SIZES = {
    "desktop": (1280, 720, False),
    "large": (1920, 1080, False),
    "upright": (390, 844, True),
    "across": (844, 390, True),
}
SAY = "The link is copied. Whoever opens it on this computer sees this lap driven again."
UNDER_THE_TOAST = """(() => {
  const toast = document.querySelector('#toast').getBoundingClientRect();
  const found = [];
  for (const name of ['.bar', '.bar nav', '.dash', '.map-box', '#side', '#playback', '#view-tools .tool', '.delta',
    '#race-tools', '#touch > div:first-child', '#touch > div:last-child']) {
    for (const element of document.querySelectorAll(name)) {
      const box = element.getBoundingClientRect();
      if (!box.width || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const across = Math.min(box.right, toast.right) - Math.max(box.left, toast.left);
      const down = Math.min(box.bottom, toast.bottom) - Math.max(box.top, toast.top);
      if (across > 1 && down > 1) found.push(name);
    }
  }
  return found;
})()"""


def start_race(page):
    page.wait("hotlap.state().track === 'track-01'")
    page.show("race")
    page.click("[data-action=start]")
    page.wait(RACING, 20)


def hold(page, code, name, number, times=4):
    """Hold a key down until the keyboard has repeated it."""
    for k in range(times):
        page.call(
            "Input.dispatchKeyEvent",
            type="keyDown",
            code=code,
            key=name,
            windowsVirtualKeyCode=number,
            autoRepeat=k > 0,
        )
    page.call("Input.dispatchKeyEvent", type="keyUp", code=code, key=name, windowsVirtualKeyCode=number)


def test_a_race_waits_while_a_track_is_chosen(used_page):
    page = used_page
    start_race(page)
    page.click("#track-button")
    page.wait("document.querySelector('#track-dialog').open")
    assert page.evaluate("document.body.dataset.phase") == "paused"
    page.evaluate("hotlap.app.picker.dialog.close()")
    page.wait("document.querySelector('#overlay').textContent.includes('Paused')")
    assert page.errors == []


def test_a_key_that_is_held_switches_once(used_page):
    page = used_page
    page.evaluate("void (hotlap.app.stage.isNight = false)")
    hold(page, "KeyN", "n", 78)
    assert page.evaluate("hotlap.app.stage.isNight")
    page.press("KeyN")
    mode = page.evaluate("hotlap.app.stage.camera.mode")
    hold(page, "KeyC", "c", 67, times=3)
    page.press("KeyC")
    page.press("KeyC")
    assert page.evaluate("hotlap.app.stage.camera.mode") == mode
    start_race(page)
    hold(page, "Escape", "Escape", 27)
    assert page.evaluate("document.body.dataset.phase") == "paused"
    # A zoom goes on for as long as its key is held.
    hold(page, "Equal", "+", 187)
    assert page.evaluate("hotlap.app.stage.camera.zoomSteps") == 4
    assert page.errors == []


def test_a_driving_key_that_is_let_go_under_control_is_let_go(used_page):
    page = used_page
    start_race(page)
    page.key("KeyW", True)
    assert page.evaluate("hotlap.app.controls.isHeld('gas')")
    page.key("KeyW", False, CONTROL)
    assert not page.evaluate("hotlap.app.controls.isHeld('gas')")
    page.press("Escape")


def test_the_address_names_the_track_that_is_shown(static_page, open_page):
    page = open_page(f"{static_page.url}?track=track-99#watch")
    page.wait(f"{STARTED} && {SAID}")
    assert page.evaluate("location.search") == ""
    page.evaluate("document.querySelector('#toast').classList.remove('shown')")
    page.click("nav a[data-view=race]")
    page.wait("document.querySelector('[data-action=start]')")
    assert not page.evaluate(SAID)
    assert len(page.errors) == 1  # one file was not there, and was asked for once


def test_a_link_to_race_a_driver_who_is_not_here_says_so(static_page, open_page):
    page = open_page(f"{static_page.url}?track=track-02&driver=nobody#race")
    page.wait("document.querySelector('[data-action=start]')")
    assert page.wait(SAID) == "The driver of this link is not here. Another one drives."
    # A choice of before that a track does not have is no link: nothing is said.
    page.evaluate("document.querySelector('#toast').classList.remove('shown')")
    page.evaluate("hotlap.app.views.race.challenge('optimal')")
    page.wait("hotlap.app.views.race.ghost?.id === 'optimal'")
    page.show("race", track="test-010")
    page.wait("hotlap.app.views.race.ghost?.id !== 'optimal' && document.querySelector('[data-action=start]')")
    assert not page.evaluate(SAID)
    assert page.errors == []


@pytest.mark.parametrize("size", SIZES)
def test_what_the_page_says_hides_nothing_that_is_read(static_page, open_page, size):
    width, height, is_phone = SIZES[size]
    page = open_page(f"{static_page.url}#watch", width, height, is_phone=is_phone)
    page.wait(STARTED)
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    settled = "Promise.all(document.querySelector('#toast').getAnimations().map((one) => one.finished)).then(() => 1)"
    for view in ("watch", "learn", "draw", "replay", "racing"):
        if view == "replay":
            page.evaluate(f"(async () => {{ const {{ decodeReplay, fromText }} = await import('./js/replay.js');"
                          f"const replay = await decodeReplay(fromText({json.dumps(persons_lap(1).to_text())}));"
                          "hotlap.app.playReplay(replay); })()")  # fmt: skip
            page.wait("!document.querySelector('#playback').hidden")
        elif view == "racing":
            start_race(page)
        else:
            page.show(view)
        page.evaluate(f"hotlap.app.say({SAY!r})")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.evaluate(settled)
        assert page.evaluate(UNDER_THE_TOAST) == [], view
    assert page.errors == []


def test_the_list_of_tracks_keeps_its_size_while_one_types(used_page):
    page = used_page
    page.click("#track-button")
    page.wait("document.querySelectorAll('.track-card').length > 3")
    box = "document.querySelector('#track-dialog').getBoundingClientRect()"
    size = f"[{box}.y, {box}.height]"
    before = page.evaluate(size)
    page.evaluate(
        "(() => { const search = document.querySelector('.search'); search.value = 'no such track';"
        "search.dispatchEvent(new Event('input')); })()"
    )
    page.wait("document.querySelector('#track-dialog .hint')")
    assert page.evaluate(size) == before
    page.evaluate("hotlap.app.picker.dialog.close()")


def test_every_button_at_the_pictures_edge_says_what_it_is(used_page):
    buttons = "[...document.querySelectorAll('#view-tools button')]"
    assert used_page.evaluate(f"{buttons}.length") >= 6
    unsaid = f"{buttons}.filter((one) => !one.title && !one.getAttribute('aria-label')).map((one) => one.textContent)"
    assert used_page.evaluate(unsaid) == []


def test_where_no_optimal_line_is_known_its_button_says_so(used_page):
    page = used_page
    page.evaluate(
        "void (hotlap.app.stage.track.line = null, document.querySelector('#toast').classList.remove('shown'))"
    )
    try:
        page.press("KeyL")
        assert page.wait(SAID) == "The optimal line of this track is not known."
        assert page.evaluate("document.querySelector('[data-toggle=showLine]').getAttribute('aria-pressed')") == "false"
    finally:
        page.reload()
        page.wait(STARTED)


def test_another_name_is_on_the_visitors_lap_at_once_without_a_server_too(static_page, open_page):
    page = open_page(f"{static_page.url}#board")
    page.wait(f"{ROWS}.length > 2")
    page.evaluate(
        "(async () => { const { keepBest } = await import('./js/storage.js'); const { app } = hotlap;"
        f"const replay = {json.dumps(persons_lap(1).to_text())};"
        "keepBest(app.track.road, app.engine.physics, "
        "{ time: 40, clean: true, date: '2026-01-01', replay, driver: '' }); await app.views.board.show(); })()"
    )
    page.wait(f"{ROWS}.some((row) => row.classList.contains('mine') && row.textContent.includes('You'))")
    for name in ("Ada", "Bo"):
        page.evaluate(
            f"(() => {{ const field = document.querySelector('#own-name'); field.value = '{name}';"
            "field.dispatchEvent(new Event('change')); })()"
        )
        page.wait(f"{ROWS}.some((row) => row.classList.contains('mine') && row.textContent.includes('{name}'))")
        assert page.evaluate("document.querySelector('#renamed').textContent") == f"You are {name} on the board now."
    assert page.errors == []


def test_the_button_that_sends_a_lap_is_gone_once_it_is_sent(web_server, open_page):
    page = open_page(f"{web_server.url}#race")
    page.wait("document.querySelector('[data-action=start]') && hotlap.state().connected")
    page.evaluate(
        "(async () => { const { decodeReplay, fromText, recordRun, ReplayPilot } = await import('./js/replay.js');"
        f"const replay = await decodeReplay(fromText({json.dumps(persons_lap(4).to_text())}));"
        "const run = recordRun(hotlap.app.engine, hotlap.app.track, () => new ReplayPilot(replay), 1);"
        "const { race } = hotlap.app.views; race.setPhase('finished'); await race.conclude(run, replay.actions); })()"
    )
    page.wait("document.querySelector('#post-lap')")
    page.evaluate(
        "(() => { let count = 0; const { board } = hotlap.app; const send = board.send.bind(board);"
        "board.send = (...given) => { window.sent = count += 1; return send(...given); };"
        "document.querySelector('#driver-name').value = 'Eve';"
        "const button = document.querySelector('#post-lap'); button.click(); button.click(); })()"
    )
    page.wait("document.querySelector('#result [role=status]').textContent.startsWith('On the board')")
    page.wait("!document.querySelector('#post-lap')")
    assert page.evaluate("window.sent") == 1
    # The field has another name put on the lap from now on.
    page.evaluate(
        "(() => { const field = document.querySelector('#driver-name'); field.value = 'Fay';"
        "field.dispatchEvent(new Event('change')); })()"
    )
    page.wait("document.querySelector('#result [role=status]').textContent === 'You are Fay on the board now.'")
    assert page.errors == []


def test_an_opponents_lap_stands_on_the_ladder_once_it_was_driven(used_page):
    page = used_page
    page.show("race", driver="champion")
    page.wait("hotlap.app.views.race.ghost?.id === 'champion'")
    time = "document.querySelector('[data-rung={}] time').textContent"
    champion = page.evaluate("hotlap.lapText(hotlap.app.views.race.ghost.run.best.time)")
    assert page.evaluate(time.format("champion")) == champion
    page.evaluate("hotlap.app.views.race.challenge('casual')")
    page.wait("hotlap.app.views.race.ghost?.id === 'casual'")
    assert page.evaluate(time.format("champion")) == champion
    assert page.evaluate(time.format("casual")) == "0:40.730"


def test_the_bars_of_lost_time_begin_below_each_other(used_page):
    page = used_page
    lefts = page.evaluate(
        "(() => { const box = document.createElement('div'); box.className = 'losses';"
        "box.innerHTML = '<p>Advice</p>' + ['T4 hairpin', 'T12 right sweeper, long'].map((label) =>"
        " `<div class=\"loss\"><span>${label}</span><u><i></i></u><b>+0.1</b></div>`).join('');"
        "box.style.width = '400px'; document.querySelector('#overlay').append(box);"
        "const lefts = [...box.querySelectorAll('u')].map((one) => one.getBoundingClientRect().left);"
        "box.remove(); return lefts; })()"
    )
    assert lefts[0] == lefts[1]


def test_on_a_phone_the_whole_example_and_the_road_of_a_link_can_be_reached(static_page, open_page):
    page = open_page(f"{static_page.url}#draw", 390, 844, is_phone=True)
    page.wait("hotlap.state().message === 'Draw a closed line'")
    outside = (
        "(() => { const { camera, dpr } = hotlap.app.stage; const side = document.querySelector('#side');"
        "const top = side.getBoundingClientRect().bottom - hotlap.app.canvas.getBoundingClientRect().top;"
        "const seen = hotlap.app.views.draw.points.map(([x, y]) => camera.toScreen(x, y));"
        "return seen.filter(([x, y]) => x < 0 || y < top * dpr || x > camera.width || y > camera.height).length; })()"
    )
    for _ in range(3):  # examples differ
        page.evaluate("hotlap.app.views.draw.example()")
        page.wait("document.querySelector('#draw-ok')")
        assert page.evaluate(outside) == 0
        page.evaluate("hotlap.app.views.draw.clear()")
    page.evaluate(
        "import('./js/drawn_line.js').then(({ exampleLine, lineToText }) => {"
        " hotlap.app.go('draw', { more: 'line=' + lineToText(exampleLine().map(([x, y]) => [1.2 * x, y]), 12) }); })"
    )
    page.wait("document.querySelector('#draw-ok')")
    assert page.evaluate(outside) == 0
    assert page.errors == []


def test_learn_names_the_track_that_stays_chosen(used_page):
    page = used_page
    page.show("watch", track="track-02")
    page.show("learn")
    page.wait("hotlap.app.stage.swarm")
    said = page.evaluate("document.querySelector('#run-track').textContent")
    assert said.endswith("Kestrel Aerodrome stays chosen for the other views.")
