"""Views in a real browser: the map, the track that stays, late drivers, what panels hide, focus and motion."""

import pytest

pytestmark = pytest.mark.timeout(180)
SHOWN = "hotlap.state().cars.length && hotlap.state().message"
LATENCY_MS = 300

# Whether the minimap has the road of the track under the car: it is drawn again, and the two must agree.
MAP_IS_RIGHT = """(async () => {
  const { app } = hotlap;
  const { drawMap } = await import('./js/minimap.js');
  const { minimap, mapLayer, dpr } = app.stage;
  if (!mapLayer || !minimap.width) return 'no map';
  const wanted = document.createElement('canvas');
  [wanted.width, wanted.height] = [minimap.width, minimap.height];
  drawMap(wanted, app.track, { road: 'rgba(238,241,244,.75)', width: 3, dpr });
  const pixels = (canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  if (mapLayer.width !== minimap.width) return `size ${mapLayer.width}`;
  const [a, b] = [pixels(mapLayer), pixels(wanted)];
  return a.every((value, k) => value === b[k]) && a.some((value) => value > 0) ? 'right' : 'another map';
})()"""


def open_view(page, view):
    page.click(f"nav a[data-view={view}]")
    page.wait(f"hotlap.state().view === '{view}' && hotlap.state().message")


def test_the_minimap_shows_the_road_under_the_car_after_learn(used_page):
    page = used_page
    page.show("learn")
    page.wait("hotlap.app.stage.swarm")
    open_view(page, "race")
    page.wait("document.querySelector('[data-action=start]')")
    page.wait("document.querySelector('#minimap').getBoundingClientRect().width > 0")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(MAP_IS_RIGHT) == "right"
    assert page.errors == []


def test_learn_keeps_the_visitors_track_and_says_where_its_run_is(used_page):
    page = used_page
    page.show("watch", track="track-02")
    open_view(page, "learn")
    page.wait("hotlap.app.stage.swarm")
    assert "Lantern Bay" in page.evaluate("document.querySelector('#run-track').textContent")
    open_view(page, "race")
    page.wait("document.querySelector('[data-action=start]')")
    assert page.state()["track"] == "track-02"
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.evaluate(MAP_IS_RIGHT) == "right"
    assert page.errors == []


def test_drivers_that_arrive_late_are_offered_as_ghosts(static_page, open_page):
    page = open_page("about:blank")
    page.delay(LATENCY_MS)
    page.go(f"{static_page.url}#race")
    page.wait("document.querySelector('#ghost')?.options.length > 1")
    assert page.evaluate("document.querySelector('#ghost').value") != "none"
    page.wait("document.querySelector('.grid-start h1')?.textContent.startsWith('Beat')")
    # A list of drivers that comes while the panel is open is offered too.
    late = "{ ...hotlap.app.drivers[0], id: 'late', name: 'Late' }"
    page.evaluate(f"hotlap.app.addDriver({late}), hotlap.app.driversChanged()")
    page.wait("[...document.querySelectorAll('#ghost option')].some((one) => one.textContent === 'Late')")
    assert page.errors == []


COVERED = """(() => {
  const { app } = hotlap;
  const { camera, dpr } = app.stage;
  const box = app.canvas.getBoundingClientRect();
  const panels = [...document.querySelectorAll('.side .panel, .dash, .map-box, .view-tools .tool, .delta')]
    .filter((one) => one.offsetParent && !one.hidden)
    .map((one) => one.getBoundingClientRect());
  const hidden = [];
  for (const edge of [app.track.left, app.track.right]) {
    for (let k = 0; k < edge.x.length; k += 5) {
      const [sx, sy] = camera.toScreen(edge.x[k], edge.y[k]);
      const [x, y] = [box.left + sx / dpr, box.top + sy / dpr];
      if (x < box.left || y < box.top || x > box.right || y > box.bottom) hidden.push('outside');
      for (const panel of panels)
        if (x > panel.left && x < panel.right && y > panel.top && y < panel.bottom) hidden.push(k);
    }
  }
  return hidden.length;
})()"""


@pytest.mark.parametrize("track", ["track-01", "track-02", "track-03"])
def test_no_panel_hides_a_part_of_the_whole_track(used_page, track):
    page = used_page
    page.show("watch", track=track)
    page.wait(f"hotlap.app.track.id === '{track}' && {SHOWN}")
    page.evaluate("void (hotlap.app.stage.camera.setMode('track'), hotlap.app.tools())")
    page.evaluate("new Promise((done) => setTimeout(done, 1200))")
    assert page.evaluate(COVERED) == 0


def test_the_race_pauses_when_the_window_loses_focus(used_page):
    page = used_page
    page.show("race")
    page.click("[data-action=start]")
    page.wait("hotlap.state().racing", 20)
    page.evaluate("void window.dispatchEvent(new Event('blur'))")
    tick = page.state()["tick"]
    assert not page.state()["racing"]
    assert "Paused" in page.evaluate("document.querySelector('#overlay').textContent")
    page.evaluate("new Promise((done) => setTimeout(done, 150))")
    assert page.state()["tick"] == tick
    assert page.errors == []


def test_with_reduced_motion_the_camera_stays(static_page, open_page):
    page = open_page(static_page.url, is_still=True)
    page.wait("hotlap.state().cars.length && hotlap.state().cars[0].speed > 5")
    camera = "[hotlap.app.stage.camera.x, hotlap.app.stage.camera.y, hotlap.app.stage.camera.scale]"
    before = page.evaluate(camera)
    page.wait("hotlap.state().cars[0].speed > 12")
    assert page.evaluate(camera) == before
    page.press("KeyC")  # a person may still ask for a camera that moves
    page.wait(f"{camera}[0] !== {before[0]!r}")
    assert page.errors == []


def test_the_static_site_offers_generated_tracks_and_races_from_its_board(used_page):
    page = used_page
    page.click("#track-button")
    page.click("[data-track=test-010]")
    page.wait("hotlap.state().track === 'test-010' && hotlap.state().cars.length")
    assert page.state()["cars"][0]["id"] == "generalist"
    open_view(page, "board")
    page.wait("document.querySelectorAll('#board tbody tr').length")
    page.evaluate("[...document.querySelectorAll('#board button')].find((one) => one.textContent === 'Race').click()")
    page.wait("hotlap.state().view === 'race' && document.querySelector('[data-action=start]')")
    assert page.evaluate("hotlap.app.views.race.wanted") == "generalist"
    assert page.errors == []


def test_it_is_day_at_first_and_night_is_kept(static_page, open_page):
    page = open_page(static_page.url)
    page.wait(SHOWN)
    brightness = (
        "(() => { const { stage } = hotlap.app; const { width, height } = stage.canvas;"
        "const { data } = stage.context.getImageData(0, 0, width, height);"
        "return data.reduce((sum, value) => sum + value, 0) / data.length; })()"
    )
    page.wait("hotlap.app.stage.tick > 20")
    day = page.evaluate(brightness)
    page.press("KeyN")
    page.wait(f"{brightness} < {0.7 * day}")
    page.reload()
    page.wait(f"hotlap.state().cars.length && hotlap.app.stage.tick > 5 && {brightness} < {0.7 * day}")
    assert page.errors == []


def test_a_braking_car_shows_it(used_page):
    reds = (
        "(async (brake) => { const { drawCar } = await import('./js/drawing.js');"
        "const canvas = document.createElement('canvas'); [canvas.width, canvas.height] = [100, 60];"
        "const context = canvas.getContext('2d');"
        "const camera = { scale: 12, turn: 0, toScreen: () => [50, 30] };"
        "drawCar(context, camera, { x: 0, y: 0, yaw: 0, steer: 0, brake }, '#ffffff');"
        "const { data } = context.getImageData(0, 0, 100, 60); let count = 0;"
        "for (let k = 0; k < data.length; k += 4) count += data[k] > 200 && data[k + 1] < 90 && data[k + 3] > 60;"
        "return count; })"
    )
    assert used_page.evaluate(f"{reds}(0)") == 0
    assert used_page.evaluate(f"{reds}(0.5)") > 50


COMPARE = """(() => {
  const { stage } = hotlap.app;
  const { camera, picture, ground } = stage;
  Object.assign(camera, { mode: 'fixed', turn: 0.6, x: stage.cars[0].pose.x, y: stage.cars[0].pose.y, scale: 5 });
  const paint = () => {
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width: camera.width, height: camera.height });
    const context = canvas.getContext('2d', { alpha: false });
    for (let k = 0; k < 20; k += 1) ground.draw(context, picture, camera); // until all tiles are painted
    return context.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const late = (ms) => {
    for (let k = 0; k < 50; k += 1) ground.watch(Array(50).fill(ms), true);
    return ground.isSlow;
  };
  ground.watch([], false);
  const [isLateAt60Hz, whole, isLateAt25Hz, half] = [late(16.7), paint(), late(40), paint()];
  let apart = 0;
  for (let k = 0; k < whole.length; k += 1) apart += Math.abs(whole[k] - half[k]);
  const width = 2 * ground.small.canvas.width - camera.width;
  return { isLateAt60Hz, isLateAt25Hz, width, apart: apart / whole.length };
})()"""


def test_where_frames_come_late_the_turned_ground_has_half_the_pixels_and_the_same_place(used_page):
    page = used_page
    page.wait("hotlap.state().tick > 30")
    found = page.evaluate(COMPARE)
    assert (found["isLateAt60Hz"], found["isLateAt25Hz"], found["width"]) == (False, True, 0)
    assert found["apart"] < 2.0  # of 255
    assert page.errors == []


def test_who_goes_on_before_the_drivers_of_a_track_have_come_finds_them_too(used_page):
    policy = used_page.evaluate(
        "(async () => { const { app } = hotlap; const { drivers } = app.server;"
        "const pause = () => new Promise((done) => setTimeout(done, 200));"
        "app.server.drivers = async (id) => { await pause(); return drivers.call(app.server, id); };"
        "app.go('watch', { track: 'track-02' });"
        "while (app.track.id !== 'track-02') await new Promise((done) => setTimeout(done, 5));"
        "delete app.server.drivers; await app.go('watch', { track: 'track-02', driver: 'champion' });"
        "return app.drivers.find((one) => one.id === 'champion').policy; })()"
    )
    assert "track-02" in policy
    assert [car["id"] for car in used_page.state()["cars"]] == ["champion"]
