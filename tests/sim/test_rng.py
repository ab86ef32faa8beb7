"""The counter-based generator against plain Python integers, and its statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.kernels import F, uniforms

WORD = 2**64
seeds = st.integers(0, WORD - 1)
counts = st.integers(0, 2**31 - 2)


def draw(seed, episode, number) -> np.ndarray:
    rows = np.broadcast_arrays(
        np.atleast_1d(np.asarray(seed, np.uint64)), np.asarray(episode, np.int64), np.asarray(number, np.int64)
    )
    values = np.full(rows[0].shape, np.nan, F)
    uniforms(*(np.ascontiguousarray(row) for row in rows), values)
    return values


def by_integers(seed: int, episode: int, number: int) -> float:
    """SplitMix64's finaliser three times over, in Python's unbounded integers."""

    def scramble(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    z = scramble((seed + golden) % WORD)
    z = scramble((z + episode * golden) % WORD)
    z = scramble((z + (number + 1) * golden) % WORD)
    return (z >> 40) / 2**24


@given(seeds, counts, counts)
def test_a_draw_equals_the_integer_reference_and_is_in_zero_to_one(seed, episode, number):
    value = draw(seed, episode, number)[0]
    assert float(value) == by_integers(seed, episode, number)
    assert 0.0 <= value < 1.0


def test_the_first_draws_never_change():
    assert draw(0, 0, [0, 1, 2]).tolist() == [0.3380524516105652, 0.26913022994995117, 0.27156656980514526]
    assert draw([1, 2**64 - 1], [3, 7], 4).tolist() == [0.338733971118927, 0.9450810551643372]


@pytest.mark.parametrize("counted", ["seed", "episode", "number"])
def test_many_draws_are_uniform_and_hardly_repeat(counted):
    count = np.arange(100_000)
    which = {"seed": 5, "episode": 6, "number": 7} | {counted: count}
    values = draw(**which).astype(np.float64)
    # Six standard errors of the mean and variance of a uniform variable.
    assert values.mean() == pytest.approx(1 / 2, abs=6 * np.sqrt(1 / 12 / values.size))
    assert values.var() == pytest.approx(1 / 12, abs=6 * np.sqrt(1 / 180 / values.size))
    filled = np.histogram(values, bins=100, range=(0.0, 1.0))[0]
    assert np.abs(filled - 1000).max() < 6 * np.sqrt(1000)
    assert np.corrcoef(values[:-1], values[1:])[0, 1] == pytest.approx(0.0, abs=6 / np.sqrt(values.size))
    assert np.unique(values).size > 0.99 * values.size


def test_seeds_episodes_and_draws_give_unrelated_streams():
    number = np.arange(10_000)
    streams = [draw(seed, episode, number) for seed, episode in ((1, 0), (2, 0), (1, 1), (2, 1))]
    apart = np.abs(np.corrcoef(streams) - np.eye(4)).max()
    assert apart < 6 / np.sqrt(number.size)
