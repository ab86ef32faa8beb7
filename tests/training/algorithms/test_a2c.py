"""A2C on a last rollout of a single step."""

import numpy as np
import pytest

from training.algorithms.small_learners import build, weights


@pytest.mark.parametrize(
    ("num_envs", "is_normalized", "is_updated"), [(1, True, False), (1, False, True), (2, True, True)]
)
def test_a_single_decision_is_skipped_where_advantages_are_normalized(num_envs, is_normalized, is_updated):
    found = []
    for num_steps in (10, 11):  # rollouts have 5
        learner = build("a2c", num_envs, a2c={"normalize_advantage": is_normalized})
        found.append(weights(learner.learn(num_steps * num_envs)))
    assert learner.rollout_steps == 1
    assert np.isfinite(found[1]).all()
    assert (found[0] != found[1]).any() == is_updated
