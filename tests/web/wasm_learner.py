"""The page's `learn.wasm` in the `wasmtime` runtime, driven as the page's workers drive it."""

import json

import numpy as np

from hotlap.learning.compiled import layout
from hotlap.learning.compiled.layout import NUM_PARTS, make_learner, make_part
from hotlap.learning.compiled.learner import CompiledRecipe
from hotlap.sim.engine import ALL_FINE
from hotlap.sim.step import make_batch
from hotlap.sim.vehicle import car_record
from web.wasm_engine import STATIC, WasmEngine

LEARN = json.loads((STATIC / "learn.json").read_text(encoding="utf-8"))


class WasmLearner:
    """Learns in WebAssembly; its arrays are views of the module's memory."""

    def __init__(self, ribbons, recipe: CompiledRecipe, seed: int) -> None:
        self.recipe, self._engine = recipe, WasmEngine(name="learn")
        put, record = self._engine.put, recipe.record(seed)
        num_cars = recipe.num_cars // NUM_PARTS
        self.learner = layout.LearnerArrays(*map(put, make_learner()))
        self._tallies = put(np.zeros((NUM_PARTS, layout.NUM_TALLIES)))
        self._gradients = put(np.zeros((NUM_PARTS, layout.NUM_GRADIENTS), np.float32))
        tracks, nodes, portals = map(put, ribbons)
        self._shared = {
            "recipe": put(record), **self.learner._asdict(), "all_tallies": self._tallies,
            "all_gradients": self._gradients, "tracks": tracks, "num_tracks": len(tracks), "nodes": nodes,
            "num_nodes": len(nodes), "portals": portals, "num_portals": len(portals), "cars": put(car_record()),
            "rules": put(recipe.racer.rules()),
        }  # fmt: skip
        self._parts = [self._place_part(index, num_cars) for index in range(NUM_PARTS)]
        self._call("begin_learner")
        self._on_parts("begin_part")

    def _place_part(self, index: int, num_cars: int):
        put = self._engine.put
        own = make_part(num_cars, self.recipe.num_steps)._asdict()
        own = {"rewards_scaled" if name == "rewards" else name: put(array) for name, array in own.items()}
        own |= {"tallies": self._tallies[index], "gradients": self._gradients[index], "part_index": index}
        return own | {name: put(array) for name, array in make_batch(num_cars, layout.NUM_SEEN)._asdict().items()}

    def _call(self, name: str, **values) -> int:
        known = {**self._shared, **values}
        return self._engine.call(name, **{one: known[one] for one in LEARN["functions"][name]})

    def _on_parts(self, name: str, **values) -> None:
        for part in self._parts:
            assert self._call(name, **part, **values) in (0, ALL_FINE)

    def learn(self) -> None:
        """A rollout and its update."""
        self._on_parts("collect")
        self._call("merge")
        if self.learner.learner["num_rollouts"][0] > 1:
            self._on_parts("judge")
            self._on_parts("normalize")
            for epoch in range(self.recipe.num_epochs):
                self._on_parts("shuffle", epoch=epoch)
                for number in range(self.recipe.decisions_per_rollout // self.recipe.batch_rows):
                    self._on_parts("differentiate", batch_index=number)
                    self._call("descend", is_last_epoch=epoch == self.recipe.num_epochs - 1)
        self._call("finish")
