"""The compiled learner: the same bits however many threads, and recipes that it refuses."""

import numpy as np
import pytest

from hotlap.errors import ConfigError, TrainingError
from hotlap.learning.compiled.learner import CompiledPPO, CompiledRecipe
from hotlap.tracks.registry import load_track

SMALL = CompiledRecipe(num_cars=128, num_steps=8, batch_rows=256, num_epochs=1)


def learned(threads=1, seed=5, rollouts=3):
    learner = CompiledPPO(load_track("track-01").ribbon, SMALL, seed=seed, threads=threads)
    for _ in range(rollouts):
        learner.learn()
    return learner


def test_two_threads_give_the_bits_of_one_and_another_seed_gives_others():
    one, two, other = learned(), learned(threads=2), learned(seed=6)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.arrays.statistics.tobytes() == two.arrays.statistics.tobytes()
    assert one.weights.tobytes() != other.weights.tobytes()
    assert one.num_decisions == 3 * 128 * 8


def test_statistics_are_those_of_the_observations():
    learner = CompiledPPO(load_track("track-01").ribbon, SMALL, seed=1)
    learner.learn()
    # The first rollout is not normalized, so its rows are the observations.
    rows = np.concatenate([part.observations.reshape(-1, 64)[: 64 * 8, :58] for part in learner.parts]).astype(float)
    mean, inverse = learner.arrays.factors[:58] + learner.arrays.factors[58:116], learner.arrays.factors[116:]
    np.testing.assert_allclose(mean, rows.mean(0), atol=1e-6)
    np.testing.assert_allclose(inverse, 1.0 / np.sqrt(rows.var(0) + 1e-8), rtol=1e-4)


@pytest.mark.parametrize("wrong", [{"num_cars": 200}, {"batch_rows": 192}, {"num_steps": 7}])
def test_sizes_that_do_not_fit_are_refused(wrong):
    with pytest.raises(ConfigError, match="multiples of 128"):
        CompiledRecipe(**{"num_cars": 128, "num_steps": 8, "batch_rows": 256, **wrong})


def test_a_seed_that_javascript_cannot_count_to_is_refused():
    with pytest.raises(ConfigError, match="seed"):
        CompiledPPO(load_track("track-01").ribbon, SMALL, seed=2**53)


def test_weights_that_are_not_finite_are_told():
    learner = learned(rollouts=1)
    learner.weights[:] = np.nan
    with pytest.raises(TrainingError, match="not finite"):
        learner.learn()
