"""The static page in a real browser: watch, race, keys, replays, without a server behind it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

import hotlap
from hotlap.benchmark.people import verify_people
from hotlap.benchmark.protocol import load_protocol
from hotlap.drivers.packed import PackedDriver
from hotlap.errors import ReplayError
from hotlap.evaluation.evaluate import drive_compiled, make_evaluation_fleet
from hotlap.evaluation.telemetry import record_laps
from hotlap.runs.find_driver import find_driver
from hotlap.web.page_data import RECORDED
from hotlap.web.replay_format import Replay
from hotlap.web.replays import simulate, verify
from web.golden_browser import golden_in_browser
from web.unpacked_policy import unpack

pytestmark = pytest.mark.timeout(240)
KEY_DRIVER = (Path(__file__).parent / "key_driver.js").read_text(encoding="utf-8")
RACING = "hotlap.state().racing"
PACE = 64  # simulated seconds per second


def first_car(page):
    return page.state()["cars"][0]


def drive_race(page, laps=1, pace=PACE):
    """Race with the key driver until the result is shown."""
    page.wait("document.querySelector('[data-action=start]')")
    page.evaluate(KEY_DRIVER + "; keyDriver()")
    page.evaluate(
        f"(() => {{ const s = document.querySelector('#laps'); s.value = {laps}; "
        "s.dispatchEvent(new Event('change')); })()"
    )
    page.evaluate(f"hotlap.setPace({pace})")
    page.wait(f"hotlap.app.views.race.numLaps === {laps} && document.querySelector('[data-action=start]')")
    page.click("[data-action=start]")
    page.wait("document.querySelector('#result')", 120)


def test_the_ai_laps_without_a_click_and_no_view_has_a_console_error(static_page, open_page):
    page = open_page(static_page.url)
    page.wait("hotlap.state().cars.length && hotlap.state().cars[0].speed > 1")
    page.evaluate(f"hotlap.setPace({PACE})")
    page.wait("hotlap.state().cars[0].best_lap_time_sec", 60)
    car = first_car(page)
    assert (car["id"], car["kind"]) == ("champion", "champion")
    # The page's lap is the lap of Python's champion, to the last bit.
    laps = record_laps(find_driver("champion"), "track-01", num_laps=6).laps
    assert car["best_lap_time_sec"] in [lap.time_s for lap in laps]
    for view in ("race", "learn", "draw", "board", "watch"):
        page.click(f"nav a[data-view={view}]")
        page.wait(f"hotlap.state().view === '{view}' && hotlap.state().message")
    state = page.state()
    assert set(state) == {"view", "track", "connected", "tick", "racing", "cars", "delta_sec", "message"}
    assert set(state["cars"][0]) == {"id", "kind", "x", "y", "speed", "lap", "lap_time_sec", "best_lap_time_sec"}
    assert state["connected"] is False
    assert page.errors == []


def test_a_recorded_lap_in_the_page_is_pythons_lap_of_the_same_inputs(used_page):
    used_page.show("watch", driver="optimal")
    used_page.wait("hotlap.state().cars[0]?.id === 'optimal'")
    used_page.evaluate(f"hotlap.setPace({PACE})")
    used_page.wait("hotlap.state().cars[0].best_lap_time_sec", 60)
    replay = Replay.from_bytes((RECORDED / "track-01.optimal.replay").read_bytes())
    assert first_car(used_page)["best_lap_time_sec"] in [lap.time_s for lap in simulate(replay, "track-01")]


def test_a_models_lap_in_the_page_is_its_lap_in_python(used_page):
    used_page.show("watch", driver="recorded")
    used_page.wait("hotlap.state().cars[0]?.id === 'recorded'")
    used_page.evaluate(f"hotlap.setPace({PACE})")
    used_page.wait("hotlap.app.stage.cars[0].laps.length >= 2", 60)
    driven = used_page.evaluate("hotlap.app.stage.cars[0].laps.slice(0, 2).map((lap) => lap.time)")
    packed, header = unpack((RECORDED / "recorded-best.policy").read_bytes())
    driver = PackedDriver(packed, header["action_repeat"], "recorded")
    fleet = make_evaluation_fleet("track-01", 1, driver.observation)
    fleet.reset(start="line")
    laps = drive_compiled(driver, fleet, 2, num_threads=1).laps
    assert driven == [lap.time_s for lap in laps]


def test_the_address_chooses_track_and_driver(static_page, open_page):
    page = open_page(f"{static_page.url}?track=track-03&driver=casual#watch")
    page.wait("hotlap.state().cars.length")
    assert page.state()["track"] == "track-03"
    assert first_car(page)["id"] == "casual"
    page.click("#track-button")
    page.click("[data-track=track-02]")
    page.wait("hotlap.state().track === 'track-02' && hotlap.state().cars.length")
    assert "track=track-02" in page.evaluate("location.search")
    assert page.errors == []


def test_golden_traces_in_the_browser_give_the_physics_version(used_page):
    assert golden_in_browser(used_page) == hotlap.PHYSICS_VERSION


def test_keys_drive_restart_and_pause(used_page):
    page = used_page
    page.show("race")
    page.click("[data-action=start]")
    page.wait(RACING, 20)
    page.key("ArrowUp", True)
    page.wait("hotlap.state().cars[0].speed > 6")
    car = first_car(page)
    assert car["kind"] == "human"
    assert car["x"] != 0.0
    page.press("Escape")
    page.wait(f"!{RACING}")
    tick = page.state()["tick"]
    page.evaluate("new Promise((done) => setTimeout(done, 200))")
    assert page.state()["tick"] == tick
    page.press("Escape")
    page.wait(f"{RACING} && hotlap.state().tick > {tick}")
    page.press("KeyR")
    page.wait("hotlap.state().tick === 0 && hotlap.state().cars[0].speed === 0")
    page.wait(RACING, 20)
    page.key("ArrowUp", False)
    page.key("ArrowLeft", True)  # and WASD
    page.wait("hotlap.state().tick > 30")
    page.key("ArrowLeft", False)
    assert page.errors == []


def controls(page):
    """Steering, throttle and brake of the person's last tick."""
    return page.evaluate("hotlap.app.views.race.pilot.inputs.slice(-3)")


# One standard gamepad: the stick is axis 0, the right trigger is button 7, the left one 6.
GAMEPAD = """
window.pad = { connected: true, axes: [0, 0, 0, 0], buttons: Array.from({ length: 17 }, () => ({ value: 0 })) };
navigator.getGamepads = () => [null, window.pad];
"""


@pytest.fixture
def page_with_gamepad(used_page):
    used_page.show("race")
    used_page.evaluate(GAMEPAD)
    yield used_page
    used_page.evaluate("delete navigator.getGamepads")


def test_a_gamepad_drives_by_stick_and_triggers(page_with_gamepad):
    page = page_with_gamepad
    page.click("[data-action=start]")
    page.wait(RACING, 20)
    page.evaluate("pad.buttons[7].value = 0.5")
    page.wait("hotlap.state().cars[0].speed > 4")
    assert controls(page) == pytest.approx([0.0, 0.5, 0.0], abs=0.01)  # half the trigger is half the throttle
    page.evaluate("pad.axes[0] = 0.05")  # a stick that does not quite return to its middle
    page.evaluate("new Promise((done) => setTimeout(done, 100))")
    assert controls(page)[0] == 0.0
    page.evaluate("pad.axes[0] = -1")
    page.wait("hotlap.app.views.race.pilot.inputs.at(-3) < -0.95")
    page.evaluate("pad.axes[0] = 0; pad.buttons[7].value = 0; pad.buttons[6].value = 1")
    page.wait("hotlap.app.views.race.pilot.inputs.at(-1) > 0.99 && hotlap.state().cars[0].speed < 1")
    assert page.errors == []


def test_fingers_on_a_phone_steer_accelerate_and_brake(static_page, open_page):
    page = open_page(f"{static_page.url}#race", 390, 844, is_phone=True)
    page.click("[data-action=start]")
    page.wait(RACING, 20)
    page.touch(["#touch-gas"])
    page.wait("hotlap.state().cars[0].speed > 6")
    page.touch(["#touch-gas", "#touch-right"])  # two thumbs
    page.wait("hotlap.app.views.race.pilot.inputs.at(-3) > 0.05")
    assert controls(page)[1] > 0.9
    page.touch([])
    page.wait("hotlap.app.views.race.pilot.inputs.at(-2) === 0")
    page.touch(["#touch-brake"])
    page.wait("hotlap.app.views.race.pilot.inputs.at(-1) > 0.4")
    assert page.errors == []


def test_the_engine_is_silent_at_first_then_follows_the_speed_and_the_choice_is_kept(static_page, open_page):
    page = open_page(f"{static_page.url}#race")
    page.click("[data-action=start]")
    page.wait(RACING, 20)
    assert page.evaluate("!hotlap.app.sound.isOn && !hotlap.app.sound.context")
    page.click("#sound-button")
    pitch = "hotlap.app.sound.voices[0].voice.frequency.value"
    page.wait("hotlap.app.sound.context.state === 'running'")
    page.key("ArrowUp", True)
    page.wait(f"{pitch} < 140")
    page.wait(f"hotlap.state().cars[0].speed > 10 && {pitch} > 150")
    page.wait("hotlap.app.sound.gain.gain.value > 0.08")
    page.press("Escape")
    page.wait("hotlap.app.sound.gain.gain.value < 0.001")
    page.reload()
    page.wait("document.querySelector('#sound-button')?.getAttribute('aria-pressed') === 'true'")
    assert page.errors == []


def test_a_key_driver_beats_the_casual_driver_cleanly_and_the_lap_is_kept(static_page, open_page, tmp_path):
    """As a practised person might: ten key changes a second at most, and nothing but four keys."""
    page = open_page(f"{static_page.url}?driver=casual#race")
    drive_race(page, laps=2)
    assert "You beat" in page.evaluate("document.querySelector('#result h1').textContent")
    own = page.evaluate("hotlap.app.stage.cars[0].run.laps.map((lap) => [lap.time, lap.clean])")
    casual_s = page.evaluate("hotlap.app.views.race.ghost.run.best.time")
    best_s = min(time_s for time_s, is_clean in own if is_clean)
    assert best_s < casual_s
    # The inputs drive the same lap in Python, to the last bit.
    key = "Object.keys(localStorage).find((key) => key.startsWith('hotlap.best.'))"
    replay = Replay.from_text(page.evaluate(f"JSON.parse(localStorage[{key}]).replay"))
    assert verify(replay, "track-01").time_s == best_s
    page.reload()
    page.click("nav a[data-view=board]")
    page.wait("document.querySelector('#board tr.mine')")
    assert f"{best_s:.3f}"[:5] in page.evaluate("document.querySelector('#board tr.mine').textContent")
    assert page.errors == []

    # The drive as a file: verified as laps of people are, and refused with another time or input.
    page.evaluate(
        "URL.createObjectURL = (file) => { file.text().then((text) => { hotlap.given = text; }); return '#'; }"
    )
    page.click("#give-laps")
    given = json.loads(page.wait("hotlap.given"))
    path = tmp_path / "hotlap-laps.json"
    path.write_text(json.dumps(given))
    [track] = verify_people(path, load_protocol(), lambda track: casual_s).tracks
    flying = [time_s for time_s, is_clean in own[1:] if is_clean]
    assert (track.track, track.people, track.laps, track.median_lap_s) == ("track-01", 1, 1, flying[0])
    assert track.faster_rate == 1.0
    [entry] = given["entries"]
    assert set(entry) == {"track", "physics", "lap", "lap_time_sec", "clean", "date", "replay", "driver", "kind"}
    assert re.fullmatch("person-[0-9a-f]{8}", entry["driver"])  # no name was typed
    steered = replay.actions.copy()
    steered[600, 0] = -steered[600, 0] if steered[600, 0] else 1.0
    for forged in ({"lap_time_sec": best_s - 1.0}, {"replay": replace(replay, actions=steered).to_text()}):
        path.write_text(json.dumps({**given, "entries": [{**entry, **forged}]}))
        with pytest.raises(ReplayError, match="entry 0"):
            verify_people(path, load_protocol(), lambda track: casual_s)
