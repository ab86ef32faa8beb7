"""The seeds of a batch: given ones are kept modulo 2**64, missing ones are drawn, others are refused."""

import numpy as np
import pytest

from hotlap.envs.seeds import resolve_seed
from hotlap.errors import ConfigError


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(
    ("seed", "found"),
    [(5, 5), (2**64 + 3, 3), (-1, 2**64 - 1), ([4, 2**64, -2], [4, 0, 2**64 - 2]), ((1, 2, 3), [1, 2, 3])],
)
def test_given_seeds_are_used_modulo_two_to_the_64(seed, found):
    assert resolve_seed(seed, 3, rng()) == found


def test_missing_seeds_are_drawn_from_the_generator():
    assert resolve_seed(None, 3, rng()) == int(rng().integers(2**62))
    drawn = rng().integers(2**63, size=2).tolist()
    assert resolve_seed([None, 8, None], 3, rng()) == [drawn[0], 8, drawn[1]]


@pytest.mark.parametrize(
    ("seed", "text"),
    [
        ([1, 2], "one seed for each of the 3 cars, got 2"),
        ([1, 2, 0.5], "must hold whole numbers or None"),
        ("7", "must be a whole number or a list of them, got '7'"),
        (0.5, "must be a whole number or a list of them"),
    ],
)
def test_other_seeds_are_refused(seed, text):
    with pytest.raises(ConfigError, match=text):
        resolve_seed(seed, 3, rng())
