"""Random generators as plain JSON, and back."""

import json

import numpy as np
import pytest
import torch
from stable_baselines3 import A2C

from hotlap.errors import StateError
from hotlap.training.state.rng_state import capture_rng, decode_generator, encode_generator, restore_rng


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


def test_a_state_from_a_gpu_is_restored_on_the_cpu_without_the_gpus_generator():
    learner = A2C("MlpPolicy", "CartPole-v1", device="cpu", seed=1)
    saved = capture_rng(learner)
    expected = torch.randn(3), np.random.random(3)  # noqa: NPY002 (stable-baselines3's generator)
    restore_rng(learner, {**saved, "cuda": np.zeros(16, np.uint8)})
    assert torch.equal(torch.randn(3), expected[0])
    np.testing.assert_array_equal(np.random.random(3), expected[1])  # noqa: NPY002
