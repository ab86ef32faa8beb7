"""Random numbers and the exponential of the compiled PPO."""

import numpy as np

from hotlap.learning.compiled.normal import exponential, normal


def test_numbers_are_normal_and_depend_on_seed_stream_and_number():
    drawn = np.array([[normal(1, stream, number) for number in range(2000)] for stream in (3, 4)])
    assert np.abs(drawn.mean(1)).max() < 0.08
    assert np.abs(drawn.var(1) - 1.0).max() < 0.12
    assert abs(np.corrcoef(drawn)[0, 1]) < 0.08
    assert abs((np.abs(drawn) < 1.0).mean() - 0.683) < 0.03
    assert normal(1, 3, 7) == drawn[0, 7]
    assert normal(2, 3, 7) != drawn[0, 7]


def test_the_exponential_is_within_a_millionth_and_limited():
    values = np.linspace(-3.0, 3.0, 61).astype(np.float32)
    found = np.array([exponential(value) for value in values])
    np.testing.assert_allclose(found, np.exp(values.astype(float)), rtol=3e-6)
    assert exponential(np.float32(50.0)) == exponential(np.float32(10.0))
