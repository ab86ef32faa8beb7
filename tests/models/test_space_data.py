"""Spaces survive the way through JSON; descriptions of impossible spaces are refused without allocating them."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from hotlap.errors import ConfigError
from hotlap.models.space_data import same_to_policy, space_data, space_from_data
from models.forgery import memory_limit
from models.sample_spaces import SPACES

ROUND_TRIPS = [
    *(space for pair in SPACES.values() for space in pair),
    gym.make("CartPole-v1").observation_space,
    spaces.Box(-np.inf, np.inf, (3,), np.float64),
    spaces.Box(np.array([-np.inf, 0], np.float32), np.array([0, np.inf], np.float32)),
    spaces.Box(0.1, 1, ()),
    spaces.Box(-1, 1, (0,)),
    spaces.Box(-5, 5, (2,), np.int64),
    spaces.Discrete(3, start=-1),
    spaces.MultiBinary((2, 3)),
    spaces.MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [1, 1]]),
]


@pytest.mark.parametrize("space", ROUND_TRIPS, ids=str)
def test_a_space_comes_back_from_json(space):
    data = space_data(space)
    back = space_from_data(json.loads(json.dumps(data, allow_nan=False)))
    assert back == space
    assert (str(back), space_data(back)) == (str(space), data)
    if isinstance(space, spaces.Dict):
        assert list(back.spaces) == list(space.spaces)


def test_equal_bounds_are_stored_as_one_number():
    assert space_data(SPACES["pictures"][0]) == {
        "kind": "Box", "shape": [40, 44, 3], "dtype": "uint8", "low": 0, "high": 255,
    }  # fmt: skip
    assert space_data(spaces.Box(-np.inf, np.inf, (2,)))["low"] == "-inf"


def test_a_space_that_no_policy_uses_is_refused():
    with pytest.raises(ConfigError, match=r"^Text.* is a space that no policy of Hotlap uses"):
        space_data(spaces.Text(3))


BOX = {"kind": "Box", "shape": [2], "dtype": "float32", "low": 0, "high": 1}
BAD = [
    *(None, [], {}, {"kind": "Tuple"}, {**BOX, "more": 1}, {"kind": "Box"}),
    *({**BOX, "shape": [1 << 40]}, {**BOX, "shape": [0, 1 << 62]}, {**BOX, "shape": [-1]}, {**BOX, "shape": "ab"}),
    *({**BOX, "dtype": "object"}, {**BOX, "dtype": "nothing"}, {**BOX, "dtype": "complex64"}),
    *({**BOX, "low": [1, 2, 3]}, {**BOX, "low": None}, {**BOX, "low": "a"}),
    *({"kind": "Discrete", "n": n, "start": 0} for n in (0, "a", 10**30)),
    *({"kind": "MultiBinary", "n": n} for n in (0, "x", 1 << 40)),
    *({"kind": "MultiDiscrete", "nvec": [-1], "start": [0]}, {"kind": "Dict", "spaces": {"a": BOX}}),
    # Sizes whose product or sum would overflow 64 bits, parts that are too large together, and bounds that broadcast.
    *(
        {"kind": "MultiBinary", "n": [1 << 32, 1 << 32]},
        {"kind": "MultiDiscrete", "nvec": [1 << 62] * 4, "start": [0] * 4},
    ),
    {"kind": "Discrete", "n": 1 << 40, "start": 0},
    {"kind": "Dict", "spaces": [[name, {**BOX, "shape": [1 << 20]}] for name in "abc"]},
    {**BOX, "shape": [1 << 10, 2], "low": [0, 0.5]},
    {**BOX, "shape": [1] * 40},
]


@pytest.mark.parametrize("data", BAD, ids=str)
def test_data_that_describe_no_space_are_refused(data):
    with memory_limit(), pytest.raises(ConfigError, match=r"^[^\n]*does not describe a space[^\n]*$"):
        space_from_data(data)


def test_only_bounds_do_not_matter_to_a_policy():
    box = spaces.Box(-1.0, 1.0, (4,))
    assert same_to_policy(box, spaces.Box(-np.inf, np.inf, (4,)))
    assert same_to_policy(spaces.Dict({"a": box}), spaces.Dict({"a": spaces.Box(0.0, 1.0, (4,))}))
    different = [
        *(spaces.Box(-1.0, 1.0, (4,), np.float64), spaces.Box(-1.0, 1.0, (4, 1)), spaces.Discrete(4)),
        *(spaces.Dict({"a": box}), spaces.MultiBinary(4)),
    ]
    assert [space for space in different if same_to_policy(box, space)] == []
    assert not same_to_policy(spaces.Discrete(4), spaces.Discrete(5))
