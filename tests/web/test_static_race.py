"""A first race in a real browser: who comes first on the ladder, instant restart, back to a checkpoint, time lost."""

import pytest

pytestmark = pytest.mark.timeout(120)
RACING = "hotlap.state().racing"
START = "document.querySelector('[data-action=start]')"
AGAIN_S = 1.0

# Drive a whole time trial at once by a driver's policy in place of the keys, as the person's own car.
DRIVE = """(async (id) => {
  const { app } = hotlap;
  const { race } = app.views;
  const { loadDriver } = await import('./js/drivers.js');
  const { PolicyPilot } = await import('./js/engine.js');
  const { recordRun } = await import('./js/replay.js');
  const { policy } = await loadDriver(app.drivers.find((one) => one.id === id));
  const inputs = [];
  const run = recordRun(app.engine, app.track, (world) => {
    const pilot = new PolicyPilot(world, policy);
    return { act: () => { pilot.act(); inputs.push(...world.actions); } };
  }, race.numLaps);
  race.setPhase('finished');
  await race.conclude(run, Float32Array.from(inputs));
})"""


def test_one_line_says_what_this_is_and_the_big_button_races_the_first_opponent(static_page, open_page):
    page = open_page(static_page.url)
    page.wait("document.querySelector('.hero h1')?.textContent === 'This driver taught itself. Can you beat it?'")
    middle = page.middle("#race-link")
    page.mouse("mousePressed", *middle)
    page.evaluate("hotlap.app.views.watch.dailyChanged()")  # the list is made anew while the button is held
    page.mouse("mouseReleased", *middle)
    page.wait(RACING, 20)  # after the lights, without another click
    assert page.evaluate("hotlap.app.views.race.ghost.id") == "casual"
    rungs = page.evaluate("[...document.querySelectorAll('#ladder button')].map((one) => one.dataset.rung)")
    assert rungs == ["casual", "medal:bronze", "medal:silver", "medal:gold", "champion", "optimal"]
    assert page.errors == []


def test_a_medals_ghost_drives_the_medals_time_and_a_win_offers_the_next(static_page, open_page):
    page = open_page(f"{static_page.url}?driver=medal:silver#race")
    page.wait(START)
    assert page.evaluate("hotlap.app.views.race.ghost.run.best.time") == pytest.approx(32.6, abs=1e-9)
    page.evaluate(f"{DRIVE}('generalist')")  # 30.27 s: faster than silver, slower than gold
    page.wait("document.querySelector('#result')")
    assert "You beat the silver time" in page.evaluate("document.querySelector('#result h1').textContent")
    assert page.evaluate("document.querySelector('#result .medal').textContent") == "silver"
    assert page.evaluate("document.activeElement.textContent.startsWith('Again')")
    page.click("[data-action=next-rung]")
    page.wait(f"{START} && hotlap.app.views.race.ghost.id === 'medal:gold'")
    page.reload()
    page.wait(f"{START} && document.querySelectorAll('#ladder .beaten').length === 3")
    assert page.errors == []


def test_the_result_says_where_time_was_lost(used_page):
    page = used_page
    page.show("race", driver="champion")
    page.wait(f"{START} && hotlap.app.views.race.ghost.id === 'champion'")
    page.evaluate(f"{DRIVE}('generalist')")
    page.wait("document.querySelector('#losses')")
    assert "Most time is left in the" in page.evaluate("document.querySelector('#losses p').textContent")
    total, parts = page.evaluate(
        "(async () => { const { findLosses } = await import('./js/lap_losses.js'); const { app } = hotlap;"
        "const ghost = app.views.race.ghost.run; const slow = { secondsAt: (m) => 1.1 * ghost.secondsAt(m) };"
        "const found = findLosses(app.track, slow, ghost, 1);"
        "return [0.1 * ghost.laps[1].time, found.reduce((sum, one) => sum + one.lost, 0)]; })()"
    )
    assert parts == pytest.approx(total, abs=0.02)  # the corners' parts make the whole lap
    assert page.errors == []


UNDER = """(() => {
  const { stage, canvas } = hotlap.app;
  const [x, y] = stage.camera.toScreen(stage.cars[0].pose.x, stage.cars[0].pose.y);
  const box = canvas.getBoundingClientRect();
  return document.elementFromPoint(box.left + x / stage.dpr, box.top + y / stage.dpr).id;
})()"""


def test_restart_is_instant_and_a_car_comes_back_to_its_checkpoint(static_page, open_page):
    page = open_page(f"{static_page.url}#race", 1280, 720)
    page.wait(START)
    page.wait(f"{UNDER} === 'overlay' || {UNDER} === 'canvas'")  # no panel hides the own car before the start
    side = "document.querySelector('#side')"
    assert page.evaluate(f"{side}.scrollHeight <= {side}.clientHeight && !{side}.classList.contains('more')")
    page.click("[data-action=start]")
    page.wait(RACING, 20)
    seconds = page.evaluate(
        "new Promise((done) => { const began = performance.now(); hotlap.app.views.race.restart();"
        "const look = () => (hotlap.state().racing ? done((performance.now() - began) / 1000) : setTimeout(look, 5));"
        "look(); })"
    )
    assert seconds < AGAIN_S
    # Past the first checkpoint, then into the wall.
    page.evaluate("void (hotlap.app.controls.read = () => [hotlap.app.stage.world.read.gate(0) ? 0.4 : 0, 1, 0])")
    page.wait("Math.abs(hotlap.app.stage.world.read.lateral_m(0)) > 5", 20)
    page.press("Backspace")
    page.evaluate("void (hotlap.app.controls.read = () => [0, 0, 0])")
    state = page.evaluate(
        "(({ read }) => [read.lateral_m(0), read.arc_m(0) / hotlap.app.track.length_m, read.gate(0) / 30,"
        "read.lap_spoiled(0)])(hotlap.app.stage.world)"
    )
    assert abs(state[0]) < 0.5
    assert state[1] == pytest.approx(state[2], abs=0.02)
    assert state[3] == 1
    # What is driven after that is neither kept nor sent.
    page.evaluate(f"{DRIVE}('generalist')")
    page.wait("document.querySelector('#result')")
    assert "does not count" in page.evaluate("document.querySelector('#result').textContent")
    assert page.evaluate("Object.keys(localStorage).some((key) => key.startsWith('hotlap.best'))") is False
    assert page.errors == []
