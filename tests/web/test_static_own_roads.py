"""Laps on roads that the page built itself: verified by a server, and opened by a friend who has no such road."""

import json
import urllib.error
import urllib.request

import pytest

from web.test_static_road import DRAWINGS

pytestmark = pytest.mark.timeout(120)
DRAWING = {"points": [[round(value, 1) for value in point] for point in DRAWINGS["wavy"][0]], "width_m": 12.0}

# A lap along the middle of the road at 14 m/s; `spoil` changes what it claims, or what it does after a second.
DRIVE = """(async (id, spoil) => {
  const { loadTrack } = await import('./js/tracks.js');
  const { encodeReplay, recordRun, toText } = await import('./js/replay.js');
  const { engine, server } = hotlap.app;
  const track = await loadTrack(id, engine.description, server.isStatic);
  const { x, y } = track.centre;
  const actions = [];
  const quantise = (value, steps) => Math.fround(Math.round(steps * value) / steps);
  const act = (world) => {
    const { read } = world;
    const at = Math.floor((read.arc_m(0) + 11) / track.stepM) % track.numNodes;
    let off = Math.atan2(y[at] - read.y_m(0), x[at] - read.x_m(0)) - read.yaw_rad(0);
    off -= 2 * Math.PI * Math.round(off / (2 * Math.PI));
    const steer = quantise(Math.max(-1, Math.min(1, -2.5 * off)), 127);
    actions.push(steer, quantise(read.forward_mps(0) < 14 ? 0.6 : 0.1, 255), 0);
    world.setAction(0, ...actions.slice(-3));
  };
  const run = recordRun(engine, track, () => ({ act }), 1);
  const [lap] = run.laps;
  const replay = { road: track.road, physics: engine.physics, seed: 0, lap: 1, lapTime: lap.time };
  if (spoil === 'time') replay.lapTime = Math.fround(lap.time - 0.01);
  if (spoil === 'inputs') for (let k = 180; k < 240; k += 3) actions[k] = 0.5;
  window.lap = { ...replay, actions: Float32Array.from(actions) };
  return { time: lap.time, text: toText(await encodeReplay(window.lap)) };
})"""


def post(web_server, path, body):
    """Status and answer of the server."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(web_server.url + path, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.load(refused)


def send_and_spoil(web_server, page, track):
    """Let the server drive a lap of the page again: as it is, then with another time, then with other inputs."""
    driven = page.evaluate(f"{DRIVE}({track!r}, null)")
    status, answer = post(web_server, "api/replays", {"track": track, "replay": driven["text"]})
    assert (status, answer.get("kind")) == (201, "lap"), answer
    for spoil in ("time", "inputs"):
        spoiled = page.evaluate(f"{DRIVE}({track!r}, {spoil!r})")["text"]
        status, answer = post(web_server, "api/replays", {"track": track, "replay": spoiled})
        assert status == 422, (spoil, answer)
        assert "claims lap 1" in answer["error"]


def test_a_lap_on_the_pages_road_of_the_day_is_driven_again_by_the_server(web_server, used_page):
    track = used_page.wait("hotlap.app.daily?.id")
    send_and_spoil(web_server, used_page, track)
    assert used_page.errors == []


def test_a_lap_on_a_drawn_road_is_verified_by_a_server_and_its_link_brings_the_road(web_server, used_page, open_page):
    page = used_page
    name = "drawn-for-a-friend"
    page.evaluate(f"import('./js/own_tracks.js').then(({{ keepOwn }}) => keepOwn({name!r}, {json.dumps(DRAWING)}))")
    status, saved = post(web_server, "api/tracks", {"id": name, **DRAWING})
    assert status == 201, saved
    send_and_spoil(web_server, page, name)
    page.evaluate(f"hotlap.app.go('watch', {{ track: {name!r} }})")
    page.wait(f"hotlap.state().track === {name!r}")
    driven = page.evaluate(f"{DRIVE}({name!r}, null)")
    page.evaluate("(window.prompt = () => null, hotlap.app.links.shareLap(lap, null, lap.actions.length / 3))")
    link = page.wait("hotlap.app.shared")
    assert page.errors == []
    friend = open_page(link)
    friend.wait("document.querySelector('#replay-time')")
    assert friend.evaluate("Number(document.querySelector('#replay-time').dataset.seconds)") == driven["time"]
    assert friend.evaluate("hotlap.app.track.road") == saved["road"]
    assert friend.errors == []
