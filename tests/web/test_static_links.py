"""Links that hold a whole replay, in a real browser: short, exact, and refused where they are not true."""

import json
from pathlib import Path

import numpy as np
import pytest

from hotlap.web.race_replay_format import RivalRace
from hotlap.web.rival_races import verify_race

pytestmark = pytest.mark.timeout(240)
KEY_DRIVER = (Path(__file__).parent / "key_driver.js").read_text()
START = "document.querySelector('[data-action=start]')"
SHARE = "[...document.querySelectorAll('#result .button')].find((one) => one.textContent === 'Share link').click()"
MAX_LINK_CHARS = 2000
TICKS_A_MINUTE = 3600

# A thumb on a gamepad: it steers towards the line ahead, trembles, and never holds a trigger quite still.
PAD = """(() => {
  const { app } = hotlap;
  const { line, length_m } = app.track;
  let count = 0;
  navigator.getGamepads = () => {
    const { pose } = app.stage.cars[0];
    const at = (m) =>
      Math.floor((app.stage.world.read.arc_m(0) + m) / (length_m / line.x.length)) % line.x.length;
    const aim = at(8 + 0.5 * pose.speed);
    let off = Math.atan2(line.y[aim] - pose.y, line.x[aim] - pose.x) - pose.yaw;
    off -= 2 * Math.PI * Math.round(off / (2 * Math.PI));
    count += 1;
    const tremor = 0.03 * Math.sin(0.7 * count) + 0.02 * Math.sin(0.31 * count);
    const steer = Math.max(-1, Math.min(1, -3 * off + tremor));
    let target = Infinity;
    for (let m = 0; m < 110; m += 4) target = Math.min(target, Math.sqrt((0.75 * line.speed[at(m)]) ** 2 + 10 * m));
    const buttons = Array.from({ length: 16 }, () => ({ value: 0 }));
    buttons[7].value = Math.max(0, Math.min(1, 0.3 * (target - pose.speed)));
    buttons[6].value = Math.max(0, Math.min(0.6, 0.15 * (pose.speed - target)));
    return [{ connected: true, axes: [Math.sign(steer) * (0.08 + 0.92 * Math.abs(steer) ** (2 / 3))], buttons }];
  };
})()"""


def drive_a_lap(page, driver):
    page.wait(START)
    page.evaluate(driver)
    page.evaluate("hotlap.app.views.race.numLaps = 1; hotlap.setPace(64); window.prompt = () => null")
    page.click("[data-action=start]")
    page.wait("document.querySelector('#result .big-lap')", 90)
    page.evaluate(SHARE)
    return page.wait("hotlap.app.shared"), page.evaluate("hotlap.app.stage.cars[0].run.laps[0].time")


@pytest.mark.parametrize("driver", [f"{KEY_DRIVER}; keyDriver(0.8)", PAD], ids=["keys", "gamepad"])
def test_a_link_to_a_lap_of_more_than_a_minute_is_short_and_drives_the_lap(static_page, open_page, driver):
    page = open_page(f"{static_page.url}?track=track-02#race")
    link, time_s = drive_a_lap(page, driver)
    assert time_s > 60.0
    assert len(link) * TICKS_A_MINUTE < MAX_LINK_CHARS * 60 * time_s
    friend = open_page(link)
    friend.wait("document.querySelector('#replay-time')")
    assert friend.evaluate("Number(document.querySelector('#replay-time').dataset.seconds)") == time_s
    # The same inputs, tick by tick, as those that were driven.
    played = friend.evaluate("[...hotlap.app.stage.cars[0].pilot.replay.actions]")
    driven = page.evaluate("hotlap.app.views.race.pilot.inputs")
    assert played == driven[: len(played)]
    assert page.errors == friend.errors == []


def line_up(page, **settings):
    page.wait(START)
    page.evaluate(
        "(async () => { const race = hotlap.app.views.race; await race.setFormat('rivals'); "
        f"Object.assign(race.rivals, {json.dumps(settings)}); await race.prepare(); }})()"
    )
    page.wait(START)


def test_a_race_against_rivals_is_a_link_and_the_cpu_drives_it_again_to_the_bit(static_page, open_page):
    page = open_page(f"{static_page.url}#race")
    line_up(page, numRivals=5, kind="mix", laps=1, place="middle")
    page.evaluate(f"{KEY_DRIVER}; keyDriver(0.8)")
    page.evaluate("hotlap.setPace(64); window.prompt = () => null")
    page.click("[data-action=start]")
    page.wait("document.querySelector('#classification')", 90)
    shown = "[...document.querySelectorAll('#classification tbody tr')].map((row) => row.textContent)"
    rows = page.evaluate(shown)
    page.evaluate(SHARE)
    link = page.wait("hotlap.app.shared")
    assert len(link) < MAX_LINK_CHARS
    text = page.evaluate(
        "(async () => { const { decodeRace, encodeRace } = await import('./js/race_replay.js');"
        "const { fromText, toText } = await import('./js/replay.js');"
        "const race = await decodeRace(fromText(hotlap.app.shared.split('replay=')[1]));"
        "const actions = Float32Array.from(hotlap.app.views.race.pilot.inputs).subarray(0, 3 * race.numTicks);"
        "return toText(await encodeRace({ ...race, actions })); })()"
    )
    race = RivalRace.from_text(text)
    assert [group.driver_id for group in race.rivals] == ["casual", "champion", "generalist"]
    driven = verify_race(race, "track-01")
    assert np.isfinite(race.race_times_s).all()
    assert driven.actions.shape[1] == 6

    friend = open_page(link)
    friend.wait("document.querySelector('#race-verdict')", 60)
    assert friend.evaluate(shown) == [row.replace("You", "A friend") for row in rows]
    friend.wait("hotlap.state().tick > 60")
    assert len(friend.state()["cars"]) == 6
    assert friend.evaluate("document.querySelector('#replay-order').offsetHeight > 0")
    # One bit of a rival's time, and nobody sees the race.
    friend.go("about:blank")
    code = "const b = atob(t.replaceAll('-', '+').replaceAll('_', '/')); const k = 30 + b.charCodeAt(28) + 6 + 4;"
    forged = page.evaluate(
        f"((t) => {{ {code} return btoa(b.slice(0, k) + String.fromCharCode(b.charCodeAt(k) ^ 1) + b.slice(k + 1))"
        ".replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', ''); })(hotlap.app.shared.split('replay=')[1])"
    )
    friend.go(f"{static_page.url}#watch?replay={forged}")
    friend.wait("document.querySelector('#toast').classList.contains('shown')", 60)
    assert "does not end as it claims" in friend.evaluate("document.querySelector('#toast').textContent")
    assert friend.evaluate("document.querySelector('#race-verdict') === null")
    assert page.errors == friend.errors == []


def test_a_link_to_a_server_that_is_not_here_and_a_cut_link_say_so(static_page, open_page):
    page = open_page("about:blank")
    for address, words in (
        ("#watch?id=AAAAAAAAAAAAAAAA", "on a server that is not here"),
        ("#watch?replay=SExSMQ", "not a replay"),
        ("#watch?replay=SFJDMQ", "not a race"),
        ("#watch?replay=%25", "link is damaged"),
    ):
        page.go(static_page.url + address)
        page.wait(f"document.querySelector('#toast.shown')?.textContent.includes({words!r})")
        page.wait("hotlap.state().cars.length === 1")
    assert page.errors == []
