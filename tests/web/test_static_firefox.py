"""The page in Firefox: the same bits as in Chromium and on the CPU, a race, a road that is drawn, and training."""

import json
from collections.abc import Iterator

import numpy as np
import pytest

import hotlap
from hotlap.learning.compiled.learner import CompiledPPO
from hotlap.tracks.registry import load_track
from hotlap.web.race_replay_format import RivalRace
from hotlap.web.rival_races import verify_race
from web.firefox import Firefox, find_firefox
from web.golden_browser import golden_in_browser
from web.test_static_links import KEY_DRIVER, SHARE, line_up
from web.test_static_road import BUILD, DRAWINGS, ask_server
from web.test_static_tab_training import NUM_ROLLOUTS, SEED, TAB, fetched, train

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def firefox() -> Iterator[Firefox]:
    if find_firefox() is None:
        pytest.skip("no Firefox; on Debian: apt-get install firefox-esr")
    browser = Firefox()
    yield browser
    browser.close()


def test_golden_traces_in_firefox_give_the_physics_version(static_page, firefox):
    firefox.go(static_page.url)
    firefox.wait("window.hotlap?.app?.engine && hotlap.state().cars.length")
    assert golden_in_browser(firefox) == hotlap.PHYSICS_VERSION
    assert firefox.errors == []


def test_a_race_in_firefox_is_driven_again_by_the_cpu_and_in_chromium(static_page, firefox, open_page):
    firefox.go(f"{static_page.url}?again=1#race")
    line_up(firefox, numRivals=5, kind="mix", laps=1, place="middle")
    firefox.evaluate(f"(() => {{ {KEY_DRIVER}; keyDriver(0.8); hotlap.setPace(64); window.prompt = () => null; }})()")
    firefox.evaluate("document.querySelector('[data-action=start]').click()")
    firefox.wait("document.querySelector('#classification')", 120)
    text = firefox.evaluate(
        "(async () => { const { encodeRace } = await import('./js/race_replay.js');"
        "const { toText } = await import('./js/replay.js'); const { race } = hotlap.app.views;"
        "const numTicks = race.rivals.world.entrant.race_time_s(0) * 60 + 30;"
        "const actions = Float32Array.from(race.pilot.inputs).subarray(0, 3 * Math.ceil(numTicks));"
        "return toText(await encodeRace(race.rivals.replay(actions))); })()"
    )
    race = RivalRace.from_text(text)
    assert np.isfinite(race.race_times_s).all()
    driven = verify_race(race, "track-01")
    assert driven.race_times_s == race.race_times_s.tolist()
    # Its link holds the keys; another browser makes the same steering of them.
    firefox.evaluate(SHARE)
    friend = open_page(firefox.wait("hotlap.app.shared"))
    friend.wait("document.querySelector('#race-verdict')", 60)
    assert firefox.errors == friend.errors == []


def test_a_road_drawn_in_firefox_is_the_servers_to_the_bit(static_page, web_server, firefox):
    firefox.go(f"{static_page.url}?again=2#draw")
    firefox.wait("window.hotlap?.app?.engine && hotlap.state().view === 'draw'")
    points, width_m = DRAWINGS["wavy"]
    built = firefox.evaluate(f"{BUILD}({json.dumps(points)}, {width_m})")
    there = ask_server(web_server, points, width_m)
    assert built["ok"]
    assert there["ok"]
    assert built["road"] == there["road"]
    assert firefox.errors == []


def test_training_in_a_tab_of_firefox_gives_the_native_weights(static_page, firefox):
    learner = CompiledPPO(load_track("track-01").ribbon, seed=SEED)
    for _ in range(NUM_ROLLOUTS):
        learner.learn()
    firefox.go(f"{static_page.url}?again=3#learn")
    firefox.wait("hotlap.app.stage.swarm")
    train(firefox, 2)
    assert fetched(firefox, f"{TAB}.newest.weights", "<f4").tobytes() == learner.weights.tobytes()
    assert firefox.errors == []
