"""The spaces, and what counts as an action."""

import numpy as np
import pytest

from hotlap.envs.spaces import action_space, as_actions, observation_space
from hotlap.errors import ActionError


def test_the_action_space():
    space = action_space()
    assert space.dtype == np.float32
    assert space.low.tolist() == [-1, 0, 0]
    assert space.high.tolist() == [1, 1, 1]


def test_the_observation_space():
    space = observation_space()
    assert (space.shape, space.dtype) == ((14,), np.float32)
    assert space.low.tolist() == [0] * 10 + [-1, -1, 0, 0]
    assert space.high.tolist() == [1] * 14


@pytest.mark.parametrize(
    "action",
    [
        [0.5, 1, 0],
        (0.5, 1.0, 0.0),
        np.array([0.5, 1, 0]),
        np.array([0.5, 1, 0], np.float16),
        np.array([0.5, 9, 1, 9, 0, 9], np.float32)[::2],
    ],
)
def test_any_three_numbers_are_an_action(action):
    array = as_actions(action, (3,))
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.tolist() == [0.5, 1.0, 0.0]


def test_whole_numbers_and_booleans_are_numbers():
    assert as_actions([1, 0, 1], (3,)).tolist() == [1, 0, 1]
    assert as_actions(np.array([True, False, True]), (3,)).tolist() == [1, 0, 1]


def test_a_number_too_large_for_float32_is_out_of_range_not_infinite():
    assert as_actions([1e300, -1e300, 0.5], (3,)).tolist() == [1.0, -1.0, 0.5]


def test_what_is_not_finite_stays_so_for_the_simulator_to_refuse():
    values = as_actions([np.nan, np.inf, -np.inf], (3,))
    assert np.isnan(values[0])
    assert values[1:].tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize(
    "action",
    [
        0.5, [0, 0], [0, 0, 0, 0], [[0, 0, 0]], [], None, "abc", ["0", "0", "0"], [0, [1], 2], {"steer": 0},
        [None, 0, 0], [1j, 0, 0], np.zeros((3, 1)), object(),
    ],
)  # fmt: skip
def test_what_is_no_action_is_refused(action):
    with pytest.raises(ActionError, match=r"shape \(3,\)"):
        as_actions(action, (3,))
