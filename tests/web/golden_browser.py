"""The golden traces driven by the page's engine in a real browser."""

import base64
import json

import numpy as np

from hotlap.sim.engine import Scenario
from hotlap.sim.step import Batch, make_batch
from hotlap.tracks import golden_traces as golden

_RUN = """
(async () => {
  const { World } = await import('./js/engine.js');
  const { engine } = hotlap.app;
  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const given = GIVEN;
  const track = { records: { tracks: bytes(given.tracks), nodes: bytes(given.nodes), portals: bytes(given.portals) },
    numNodes: given.num_nodes, numPortals: given.num_portals };
  const world = new World(engine, track, given.num_cars);
  world.at.num_tracks = given.num_tracks;
  world.at.rules = world.put(bytes(given.rules));
  world.at.autoreset = 1;
  world.view();
  world.u8.set(bytes(given.states), world.at.states);
  world.reset();
  const f = Math.fround;
  const clip = (value, low, high) => Math.min(Math.max(value, low), high);
  const sizes = given.sizes;
  const kept = [];
  for (let tick = 0; tick < given.ticks; tick += 1) {
    for (let car = 0; car < given.num_cars; car += 1) {
      const o = world.obs.subarray(14 * car, 14 * car + 14);
      const lean = f(f(f(o[1] - o[7]) + f(o[2] - o[6])) + f(o[3] - o[5]));
      const least = Math.min(Math.min(o[3], o[4]), o[5]);
      const margin = f(f(f(least * 2.5) + f(0.25)) - o[9]);
      let action = [clip(f(lean * 4), -1, 1), clip(f(margin * 3), 0, 1), clip(f(margin * -4), 0, 1)];
      const isWild = (car * 7 + Math.floor(tick / 40)) % 11 === 0;
      if (isWild) action = [tick % 80 < 40 ? 1.5 : -1.5, 1, tick % 3 === 0 ? 0.2 : 0];
      world.setAction(car, ...action);
    }
    world.step();
    if (tick % given.every === 0) for (const name of given.names) {
      kept.push(world.u8.slice(world.at[name], world.at[name] + sizes[name]));
    }
  }
  let text = '';
  const all = new Uint8Array(kept.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const one of kept) { all.set(one, at); at += one.length; }
  for (let k = 0; k < all.length; k += 8192) text += String.fromCharCode(...all.subarray(k, k + 8192));
  return btoa(text);
})()
"""


class RecordedEngine:
    """An engine that gives back what the browser computed."""

    def __init__(self, page) -> None:
        self._page = page
        self._tick = 0

    def make_batch(self, num_cars: int) -> Batch:
        self._batch = make_batch(num_cars)
        return self._batch

    def reset(self, mask, scenario: Scenario, batch: Batch) -> None:
        def text(array) -> str:
            return base64.b64encode(array.tobytes()).decode()

        given = {
            "tracks": text(scenario.ribbons.tracks), "nodes": text(scenario.ribbons.nodes),
            "portals": text(scenario.ribbons.portals), "rules": text(scenario.rules), "states": text(batch.states),
            "num_nodes": len(scenario.ribbons.nodes), "num_portals": len(scenario.ribbons.portals),
            "num_tracks": len(scenario.ribbons.tracks), "num_cars": len(batch.states), "ticks": golden.TICKS,
            "every": golden.DIGEST_EVERY, "names": list(Batch._fields),
            "sizes": {name: getattr(batch, name).nbytes for name in Batch._fields},
        }  # fmt: skip
        answer = self._page.evaluate(_RUN.replace("GIVEN", json.dumps(given)))
        self._bytes = base64.b64decode(answer)
        self._at = 0

    def step(self, actions, scenario: Scenario, batch: Batch, *, autoreset: bool, repeat: int) -> int:
        if self._tick % golden.DIGEST_EVERY == 0:
            for array in batch:
                part = self._bytes[self._at : self._at + array.nbytes]
                array[...] = np.frombuffer(part, array.dtype).reshape(array.shape)
                self._at += array.nbytes
        self._tick += 1
        return -1

    def observe(self, scenario: Scenario, batch: Batch) -> None:
        raise AssertionError("not needed")


def golden_in_browser(page) -> str:
    """The physics version as the browser computes it."""
    return golden.physics_version(RecordedEngine(page))
