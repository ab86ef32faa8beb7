"""A model file of the compiled PPO drives as the learner did."""

import numpy as np

from hotlap.learning.compiled.layout import NUM_SEEN, SIZE
from hotlap.learning.compiled.learner import CompiledPPO, CompiledRecipe
from hotlap.learning.compiled.model import make_model
from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model, write_model
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.tracks.registry import load_track


def test_a_written_model_normalizes_and_decides_with_the_learners_bits(tmp_path):
    recipe = CompiledRecipe(num_cars=128, num_steps=8, batch_rows=256, num_epochs=1, log_std_init=-0.9)
    learner = CompiledPPO(load_track("track-01").ribbon, recipe, seed=2)
    for _ in range(3):
        learner.learn()
    path = tmp_path / "here.zip"
    write_model(path, make_model(path, learner, "track-01"))
    packed = pack_model(read_model(path))
    assert packed.numbers[: 3 * NUM_SEEN].tobytes() == learner.arrays.factors.tobytes()

    # The next rollout's first decisions: actions are means plus noise, and the noise is known by its probability.
    seen = np.concatenate([batch.obs for batch in learner._batches])
    memory = make_memory(packed, len(seen))
    decide_cars(packed, seen, memory)
    learner._on_parts(learner._collect)
    log_std = learner.weights[-2:]
    for index, part in enumerate(learner.parts):
        actions = part.actions.reshape(2, -1)[:, :SIZE].T
        means = memory.actions[index * SIZE : (index + 1) * SIZE]
        # Where the mean of the pedals is not clipped, throttle minus brake is it.
        axes = np.stack([means[:, 0], means[:, 1] - means[:, 2]], axis=1)
        noise = (actions - axes) / np.exp(log_std)
        log_probs = -0.5 * (noise**2).sum(1) - log_std.sum()
        np.testing.assert_allclose(part.log_probs[:SIZE], log_probs, atol=1e-4)
