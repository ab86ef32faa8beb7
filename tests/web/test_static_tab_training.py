"""Training in the tab, in a real browser: the weights of the native learner, a driver to race, a model to evaluate."""

import base64
import hashlib
import json
import zlib

import numpy as np
import pytest

from hotlap.learning.compiled.learner import CompiledPPO
from hotlap.learning.compiled.model import model_weights
from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from hotlap.tracks.registry import load_track

pytestmark = pytest.mark.timeout(240)

TAB = "hotlap.app.views.learn.tab"
TO_TEXT = "(bytes) => btoa([...new Uint8Array(bytes)].map((one) => String.fromCharCode(one)).join(''))"
NUM_ROLLOUTS = 2  # of the first one only the statistics are used
SEED = 4


def fetched(page, expression, dtype):
    """Numbers of the page, exactly."""
    return np.frombuffer(base64.b64decode(page.evaluate(f"({TO_TEXT})(({expression}).buffer)")), dtype)


def train(page, num_workers):
    page.evaluate(
        f"{TAB}.start(hotlap.app.track, {SEED}, {{ numWorkers: {num_workers}, maxRollouts: {NUM_ROLLOUTS} }})"
    )
    page.wait(f"{TAB}.run.state !== 'running'", 200)
    assert page.evaluate(f"{TAB}.run.state") == "finished"


def test_one_worker_and_two_give_the_native_weights_and_the_model_evaluates(static_page, open_page, tmp_path):
    page = open_page(f"{static_page.url}#learn")
    page.wait("hotlap.app.stage.swarm")
    learner = CompiledPPO(load_track("track-01").ribbon, seed=SEED)
    for _ in range(NUM_ROLLOUTS):
        learner.learn()
    for num_workers in (1, 2):
        train(page, num_workers)
        assert fetched(page, f"{TAB}.newest.weights", "<f4").tobytes() == learner.weights.tobytes()
        assert fetched(page, f"{TAB}.newest.statistics", "<f8").tobytes() == learner.arrays.statistics.tobytes()

    text = page.evaluate(f"{TAB}.download('track-01').then((bytes) => ({TO_TEXT})(bytes))")
    path = tmp_path / "downloaded.zip"
    path.write_bytes(base64.b64decode(text))
    model = read_model(path)
    assert (model.card.seed, model.card.step, model.card.track) == (SEED, learner.num_decisions, "track-01")
    assert {name: array.tobytes() for name, array in model.weights.items()} == {
        name: array.tobytes() for name, array in model_weights(learner.weights).items()
    }
    # It drives with the numbers that the page's cars drive with.
    url = json.dumps(f"trained:track-01@{learner.num_decisions}")
    policy = f"import('./js/drivers.js').then(({{ loadDriver }}) => loadDriver({{ policy: {url} }}))"
    numbers = f"{policy}.then((file) => ({TO_TEXT})(file.policy.numbers.buffer))"
    assert base64.b64decode(page.evaluate(numbers)) == pack_model(model).numbers.tobytes()
    assert page.errors == []


def test_the_visitor_learns_stops_races_and_finds_the_driver_again(static_page, open_page):
    page = open_page(f"{static_page.url}#learn", 1280, 720)
    page.wait("hotlap.app.stage.swarm")
    page.click("[data-action=learn-here]")
    status = "document.querySelector('#run-status').textContent"
    page.wait(f"{TAB}.run?.step > 0 && {status}.startsWith('Learning')", 120)
    assert page.evaluate("hotlap.app.stage.swarm.numCars") == 256
    page.click("[data-action=stop]")
    page.wait(f"{status}.startsWith('Stopped')")
    step = page.evaluate(f"{TAB}.run.step")
    page.click("[data-action=resume]")
    page.wait(f"{TAB}.run.step > {step}", 120)
    # A driver with a lap, without the minutes until there is one.
    page.evaluate(f"void ({TAB}.best = {{ ...{TAB}.newest, lap: 61.25 }}, {TAB}.offer())")
    page.click("[data-action=race-run]")
    page.wait("hotlap.state().view === 'race'")
    assert not page.evaluate(f"{TAB}.isRunning")  # it rests while another view is open
    page.reload()
    page.wait("hotlap.app?.drivers.some((one) => one.id === 'trained:track-01')")
    page.go(f"{static_page.url}#learn")
    page.wait("document.querySelector('#kept-driver')?.textContent.includes('1:01.250')")
    assert page.errors == []


RING = """import('./js/own_tracks.js').then(({ keepOwn }) => keepOwn('ring', { width_m: 12, points:
  Array.from({ length: 24 }, (_, k) => [120 * Math.cos(k * Math.PI / 12), 70 * Math.sin(k * Math.PI / 12)]) }))"""


@pytest.mark.parametrize("track", ["test-010", "ring"])
def test_generated_and_drawn_roads_are_learned_too(static_page, open_page, track):
    page = open_page(static_page.url)
    page.wait("window.hotlap?.app.track")
    page.evaluate(RING)
    page.show("learn", track=track)
    page.wait(f"hotlap.app.track?.id === '{track}' && hotlap.app.stage.swarm")
    page.evaluate(f"{TAB}.start(hotlap.app.track, {SEED}, {{ maxRollouts: 1 }})")
    page.wait(f"{TAB}.run.state === 'finished'", 120)
    text = page.evaluate(f"{TAB}.download('{track}').then((bytes) => ({TO_TEXT})(bytes))")
    assert track.encode() in base64.b64decode(text)
    assert page.errors == []


def test_digests_are_those_of_the_standard(used_page):
    text = json.dumps("abc" * 50)
    found = used_page.evaluate(
        "import('./js/digests.js').then(({ sha256, crc32 }) => "
        f"['', 'abc', {text}].map((text) => new TextEncoder().encode(text)).map((one) => [sha256(one), crc32(one)]))"
    )
    assert found == [[hashlib.sha256(one).hexdigest(), zlib.crc32(one)] for one in (b"", b"abc", b"abc" * 50)]
