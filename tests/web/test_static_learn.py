"""Learn in a real browser while a run begins: cars at once, and a status that is true."""

import pytest

pytestmark = pytest.mark.timeout(180)

# A run of the server's, without a server: its events are sent by the test.
FAKE_RUN = """(() => {
  window.EventSource = class {
    constructor() { window.events = this; this.listeners = {}; }
    addEventListener(name, listener) { this.listeners[name] = listener; }
    close() {}
    send(name, value) { this.listeners[name]({ data: JSON.stringify(value) }); }
  };
  window.fakeRun = { id: 'page-track-01-1', algorithm: 'ppo', track: 'track-01', seed: 1, steps: 2000000, step: 0,
    state: 'starting', started: null, error: null, checkpoints: [], best: null };
  const { learn } = hotlap.app.views;
  learn.runs.unshift(window.fakeRun);
  return learn.choose('page-track-01-1');
})()"""


def test_untrained_cars_drive_at_once_and_the_status_is_true(static_page, open_page):
    page = open_page(f"{static_page.url}#learn", 1280, 720)
    page.wait("hotlap.app.stage.swarm")
    page.evaluate(FAKE_RUN)
    page.wait("hotlap.app.stage.swarm?.numCars === 256")
    page.wait("hotlap.app.stage.swarm.bands.some((band) => band > 0) || hotlap.state().tick > 120")
    status = "document.querySelector('#run-status').textContent"
    assert "untrained" in page.state()["message"]
    page.evaluate("events.send('run', { ...fakeRun, state: 'running', step: 650000 })")
    page.wait(f"{status}.includes('650 k of 2.00 M')")
    assert "starting" not in page.evaluate("document.querySelector('#side').textContent.toLowerCase()")
    edges = "(({ top, bottom }) => [top, bottom, innerHeight])"
    box = page.evaluate(f"{edges}(document.querySelector('#run-status').getBoundingClientRect())")
    assert 0 < box[0] < box[1] < box[2]
    # A run that the page began has a name for people.
    option = page.evaluate("document.querySelector('#run').selectedOptions[0].textContent")
    assert "page-track" not in option
    assert "Lantern Bay" in option
    assert page.errors == []


def test_the_learning_is_played_from_untrained_cars_to_the_last_checkpoint(used_page):
    page = used_page
    page.show("learn")
    page.wait("hotlap.app.stage.swarm && document.querySelector('[data-action=film]')")
    steps = page.evaluate("hotlap.app.views.learn.run.checkpoints.map((one) => one.step)")
    page.evaluate("void (hotlap.app.pace = 5)")  # of the film, a checkpoint every half second
    page.evaluate(
        "void (window.shown = [], hotlap.app.stage.setSwarm = ((set) => function (swarm) {"
        "window.shown.push(hotlap.app.views.learn.shownStep); set.call(this, swarm); })(hotlap.app.stage.setSwarm))"
    )
    page.click("[data-action=film]")
    # Untrained cars are no opponent; asked at once, as the film goes on.
    page.wait(
        "document.querySelector('#checkpoint').value === '0' && "
        "document.querySelector('[data-action=race-run]').disabled"
    )
    page.wait("window.shown.length > 2")
    page.evaluate("void (hotlap.app.pace = 25)")  # a busy machine leaves some out
    page.wait(f"window.shown.at(-1) === {steps[-1]} && !hotlap.app.views.learn.film")
    shown = page.evaluate("window.shown")
    assert shown[0] == 0
    assert shown == sorted(shown)
    page.evaluate("delete hotlap.app.stage.setSwarm")
    assert page.errors == []
