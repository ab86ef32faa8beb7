"""Policy files: the documented bytes hold the numbers that the kernel drives with."""

import numpy as np
import pytest

from hotlap.models.actor import pack_model
from hotlap.models.model_file import read_model
from hotlap.sim.policy_forward import decide_cars, make_memory
from hotlap.web.policy_file import policy_bytes, read_policy_bytes
from web.unpacked_policy import unpack


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
