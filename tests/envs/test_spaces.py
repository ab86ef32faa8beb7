"""The ranges of observations, and which values are accepted as actions."""

import numpy as np
import pytest

from hotlap.envs.spaces import as_actions, observation_space
from hotlap.errors import ActionError


@pytest.mark.parametrize(("alone", "among_others"), [("road", "race"), ("road-2", "race-2")])
def test_other_cars_follow_the_columns_of_the_road(alone, among_others):
    few, many = observation_space(alone).low, observation_space(among_others).low
    assert many[: len(few)].tolist() == few.tolist()
    assert many[len(few) :].tolist() == [0.0, *[-1.0] * 6, 0.0] * 4


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
def test_three_numbers_are_an_action(action):
    array = as_actions(action, (3,))
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    assert array.tolist() == [0.5, 1.0, 0.0]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ([1, 0, 1], [1, 0, 1]),
        (np.array([True, False, True]), [1, 0, 1]),
        ([1e300, -1e300, 0.5], [1.0, -1.0, 0.5]),  # too large for float32: clipped, not infinite
        ([np.nan, np.inf, -np.inf], [np.nan, np.inf, -np.inf]),  # left for the simulator to refuse
    ],
)
def test_other_numbers_are_converted(action, expected):
    np.testing.assert_array_equal(as_actions(action, (3,)), expected)


@pytest.mark.parametrize(
    "action",
    [
        0.5, [0, 0], [0, 0, 0, 0], [[0, 0, 0]], [], None, "abc", ["0", "0", "0"], [0, [1], 2], {"steer": 0},
        [None, 0, 0], [1j, 0, 0], np.zeros((3, 1)), object(),
    ],
)  # fmt: skip
def test_other_values_are_refused(action):
    with pytest.raises(ActionError, match=r"shape \(3,\)"):
        as_actions(action, (3,))
