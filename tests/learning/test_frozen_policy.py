"""A frozen policy drives as compiled code does, and another version takes its place without new tensors."""

import numpy as np
import pytest
import torch

from hotlap.drivers.packed import PackedDriver
from hotlap.envs.fleet import Fleet
from hotlap.envs.settings import RacerSettings
from hotlap.errors import ModelError
from hotlap.learning.frozen_policy import FrozenPolicy
from hotlap.models.model_file import PolicyArrays, read_model
from hotlap.models.shipped_models import find_shipped
from hotlap.sim.batch_cpu import CpuEngine

ROWS = torch.arange(20)


def observations():
    """Of twenty cars anywhere on the road."""
    settings = RacerSettings.load({"episode": {"start": "random"}})
    fleet = Fleet(["track-01"], settings, len(ROWS), CpuEngine(1), "race")
    fleet.seed(np.arange(len(ROWS), dtype=np.uint64))
    fleet.reset()
    return fleet


@pytest.mark.parametrize("name", ["champion", "generalist"])  # with and without Fourier features
def test_it_drives_as_compiled_code_does(name):
    model, fleet = read_model(find_shipped(name, "track-01")), observations()
    driver = PackedDriver.from_model(model)
    driver.begin(fleet, 0)
    found = FrozenPolicy(model, ROWS).act(torch.from_numpy(fleet.batch.obs))
    np.testing.assert_allclose(found.numpy(), driver.act(fleet.batch.obs), atol=1e-4)


def test_another_version_is_written_into_the_same_tensors():
    model, obs = read_model(find_shipped("generalist", "track-01")), torch.from_numpy(observations().batch.obs)
    policy = FrozenPolicy(model, ROWS)
    before, tensors = policy.act(obs), [tensor.data_ptr() for tensor in policy._tensors().values()]
    saved = policy.state_dict()
    policy.load(PolicyArrays({name: 0.5 * array for name, array in model.weights.items()}, model.normalizer))
    assert (policy.act(obs) != before).any()
    policy.load_state_dict(saved)
    assert torch.equal(policy.act(obs), before)
    assert [tensor.data_ptr() for tensor in policy._tensors().values()] == tensors


def test_a_model_that_sees_several_observations_is_refused(monkeypatch):
    model = read_model(find_shipped("generalist", "track-01"))
    object.__setattr__(model.card, "stack", 3)
    with pytest.raises(ModelError, match="a stack of 3; opponents need"):
        FrozenPolicy(model, ROWS)
