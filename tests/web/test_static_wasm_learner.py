"""The page's `learn.wasm` is this source's learner, to the bit."""

import numpy as np

from hotlap.learning.compiled.entry_points import HERE
from hotlap.learning.compiled.layout import RECIPE_DTYPE, make_learner, make_part
from hotlap.learning.compiled.learner import CompiledPPO, CompiledRecipe
from hotlap.learning.compiled.model import make_card
from hotlap.sim.compilation import folder_digest, source_digest
from hotlap.tracks.registry import load_track
from web.wasm_learner import LEARN, WasmLearner

SMALL = CompiledRecipe(num_cars=128, num_steps=16, batch_rows=512, num_epochs=2)
REBUILD = "run `python tools/build_wasm.py`"


def test_the_module_was_made_from_this_source():
    assert LEARN["source_digest"] == f"{source_digest()}-{folder_digest(HERE)}", REBUILD


def test_the_page_learns_with_the_default_recipe():
    recipe = CompiledRecipe()
    record = np.zeros(1, RECIPE_DTYPE)
    for name, value in LEARN["recipe"].items():
        record[name] = value
    assert record.tobytes() == recipe.record(seed=0).tobytes()
    assert LEARN["decisions_per_rollout"] == recipe.decisions_per_rollout
    assert LEARN["model"]["card"] == make_card(recipe).as_plain()
    part = make_part(recipe.num_cars // 2, recipe.num_steps)
    assert sorted(LEARN["part_bytes"].values()) == sorted(array.nbytes for array in part)
    assert LEARN["learner_bytes"] == {name: array.nbytes for name, array in make_learner()._asdict().items()}


def test_the_weights_have_the_cpus_bits():
    ribbons = load_track("track-01").ribbon
    page, cpu = WasmLearner(ribbons, SMALL, seed=7), CompiledPPO(ribbons, SMALL, seed=7)
    first = cpu.weights.copy()
    for _ in range(4):
        page.learn()
        cpu.learn()
        for name in ("weights", "moments", "statistics", "factors"):
            mine, pages = getattr(cpu.arrays, name), getattr(page.learner, name)
            assert mine.tobytes() == pages.tobytes(), name
    assert np.abs(cpu.weights - first).max() > 1e-3  # it learned
    assert cpu.arrays.learner["kl"][0] > 0.0
