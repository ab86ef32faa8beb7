"""The last check of an export."""

from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import ModelError
from hotlap.models.action_check import NUM_SAMPLES, refuse_bad_actions, sample_observations

ROW = spaces.Box(-1.0, 1.0, (3,), np.float32)


def model(observations=ROW, actions=ROW):
    return SimpleNamespace(path="m.zip", card=SimpleNamespace(raw_observations=observations, spaces=(None, actions)))


def test_samples_are_of_the_space_and_the_same_each_time():
    rows = sample_observations(model())
    assert rows.shape == (NUM_SAMPLES, 3)
    assert all(ROW.contains(row) for row in rows)
    np.testing.assert_array_equal(sample_observations(model()), rows)
    parts = sample_observations(model(spaces.Dict({"a": ROW, "b": spaces.Discrete(4)})))
    assert {name: len(part) for name, part in parts.items()} == {"a": NUM_SAMPLES, "b": NUM_SAMPLES}


def test_actions_within_their_bounds_pass_even_when_scaling_rounded_them():
    good = np.array([[-1.0, 0.0, 1.0], [-1.0 - 5e-7, 0.0, 1.0 + 5e-7]])
    refuse_bad_actions(model(), good)
    refuse_bad_actions(model(actions=spaces.Discrete(4)), np.array([3, 0]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.00001, -1.00001])
def test_the_first_bad_row_is_named(bad):
    actions = np.zeros((3, 3))
    actions[1, 2] = bad
    with pytest.raises(ModelError, match=r"m\.zip: its policy gives the action \[0\.0, 0\.0, .*Use an earlier model"):
        refuse_bad_actions(model(), actions)
