"""Policy files: the documented bytes hold the numbers that the kernel drives with."""

import json
import struct

import numpy as np
import pytest

from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from hotlap.sim.policy_forward import LAYER_DTYPE, POLICY_DTYPE, PackedPolicy, decide_cars, make_memory
from hotlap.web.policy_file import policy_bytes, read_policy_bytes


def unpack(content: bytes) -> tuple[PackedPolicy, dict]:
    """A policy from its file, read by the documentation alone."""
    magic, length = struct.unpack_from("<4sI", content)
    assert magic == b"HLP1"
    assert length % 4 == 0
    header = json.loads(content[8 : 8 + length])
    shape, layers = np.zeros(1, POLICY_DTYPE), np.zeros(len(header["layers"]), LAYER_DTYPE)
    for name in POLICY_DTYPE.names:
        shape[name] = np.inf if header[name] is None else header[name]
    for record, layer in zip(layers, header["layers"], strict=True):
        for name in LAYER_DTYPE.names:
            record[name] = layer[name]
    numbers = np.frombuffer(content, "<f4", offset=8 + length)
    assert len(numbers) == header["num_numbers"]
    return PackedPolicy(shape, layers, numbers.astype(np.float32)), header


def test_the_file_drives_like_the_model(any_racer):
    model = read_model(any_racer.path)
    packed, header = unpack(policy_bytes(model))
    original = pack_model(model)
    for ours, theirs in zip(read_policy_bytes(policy_bytes(model))[0], packed, strict=True):
        assert ours.tobytes() == theirs.tobytes()
    obs = np.random.default_rng(0).random((5, 14), np.float32)
    actions = []
    for policy in (packed, original):
        memory = make_memory(policy, 5)
        for _ in range(3):
            decide_cars(policy, obs, memory)
        actions.append(memory.actions)
    assert actions[0].tobytes() == actions[1].tobytes()
    assert header["action_repeat"] == model.card.action_repeat
    assert header["physics"] == model.card.physics
    assert header["track"] == "track-01"


def test_a_model_of_another_environment_has_no_policy_file(cartpole):
    with pytest.raises(ValueError, match="it cannot drive"):
        policy_bytes(read_model(cartpole.path))
