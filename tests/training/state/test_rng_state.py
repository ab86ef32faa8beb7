"""Random generators as plain JSON, and back."""

import json

import numpy as np
import pytest

from hotlap.errors import StateError
from hotlap.training.state.rng_state import decode_generator, encode_generator


@pytest.mark.parametrize("kind", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_generators_survive_json(kind):
    generator, other = np.random.Generator(kind(1)), np.random.Generator(kind(2))
    generator.random(7)
    generator.integers(0, 2**16, dtype=np.uint16)  # leaves half a word behind
    decode_generator(json.loads(json.dumps(encode_generator(generator))), other)
    np.testing.assert_array_equal(generator.integers(0, 99, 100, np.uint16), other.integers(0, 99, 100, np.uint16))
    np.testing.assert_array_equal(generator.normal(size=100), other.normal(size=100))


def test_large_integers_of_a_generator_are_written_as_text():
    state = encode_generator(np.random.default_rng(0))
    assert state["state"]["state"] == str(np.random.default_rng(0).bit_generator.state["state"]["state"])
    assert encode_generator(None) is None


@pytest.mark.parametrize(
    "state",
    [
        None, 7, [], {}, "PCG64", {"bit_generator": "MT19937"}, {"bit_generator": "PCG64", "state": {}},
        {"bit_generator": "PCG64", "state": {"state": "1", "inc": []}, "has_uint32": "0", "uinteger": "0"},
    ],
)  # fmt: skip
def test_a_bad_generator_state_is_refused(state):
    with pytest.raises(StateError, match="random generator"):
        decode_generator(state, np.random.default_rng(0))
