"""Random generators as plain JSON, and back."""

import json

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.learning.generators import Generators, decode_generator, encode_generator


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


CPU = torch.device("cpu")


def test_saved_generators_go_on_with_the_same_numbers():
    ours, other = Generators(3, CPU), Generators(4, CPU)
    ours.numpy.permutation(7)
    torch.randn(5, generator=ours.torch)
    ours.actions.random(2)
    other.load_state_dict(ours.state_dict())
    np.testing.assert_array_equal(ours.numpy.permutation(50), other.numpy.permutation(50))
    assert torch.equal(torch.randn(9, generator=ours.torch), torch.randn(9, generator=other.torch))
    assert ours.actions.random() == other.actions.random()


def test_a_state_from_a_gpu_is_restored_on_the_cpu_without_the_gpus_generator():
    ours, other = Generators(3, CPU), Generators(3, CPU)
    saved = other.state_dict()
    other.load_state_dict({"numpy": saved["numpy"], "actions": saved["actions"], "cuda": np.zeros(16, np.uint8)})
    assert torch.equal(torch.randn(9, generator=ours.torch), torch.randn(9, generator=other.torch))


def test_initializers_draw_from_the_seed_and_leave_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(4), torch.rand(4)
    before = torch.get_rng_state()
    ours = Generators(3, CPU)
    with ours.initializing():
        assert torch.equal(torch.rand(4), expected[0])
    assert torch.equal(torch.rand(4, generator=ours.torch), expected[1])
    assert torch.equal(torch.get_rng_state(), before)
