"""The running statistics are those of all values seen, and what they make of observations and rewards."""

import numpy as np
import pytest
import torch

from hotlap.errors import StateError
from hotlap.hyperparameters import NormalizeSettings
from hotlap.learning.normalizer import INITIAL_COUNT, Normalizer

OBS = [1.0, 3.0, 5.0, 7.0, 2.0, 6.0]  # of two cars: at the reset and after two steps
REWARDS, ENDED = [[1.0, 3.0], [1.5, 4.0]], [[False, True], [False, False]]
RETURNS = [1.0, 3.0, 0.5 * 1.0 + 1.5, 4.0]  # discounted by 0.5; the second car's episode ended after its first step


def moments(values):
    """Mean and variance of values and of the few imagined before them, whose mean is 0 and whose variance is 1."""
    count = len(values) + INITIAL_COUNT
    mean = sum(values) / count
    return mean, (sum(value**2 for value in values) + INITIAL_COUNT) / count - mean**2


@pytest.fixture
def filled():
    settings = NormalizeSettings(obs=True, reward=True, clip_obs=2.0, clip_reward=3.0)
    normalizer = Normalizer(settings, 0.5, num_cars=2, num_obs=1, device=torch.device("cpu"))
    first, *others = torch.tensor(OBS).view(3, 2, 1)
    normalizer.reset(first)
    for obs, rewards, ended in zip(others, torch.tensor(REWARDS), torch.tensor(ENDED), strict=True):
        normalizer.add(obs, rewards, ended)
        normalizer.merge()
    return normalizer


def test_the_statistics_are_those_of_all_observations_and_discounted_returns(filled):
    state = filled.state_dict()
    assert (state["obs_mean"].item(), state["obs_var"].item()) == pytest.approx(moments(OBS))
    assert (state["return_mean"].item(), state["return_var"].item()) == pytest.approx(moments(RETURNS))
    assert (state["obs_count"], state["return_count"]) == (6.0 + INITIAL_COUNT, 4.0 + INITIAL_COUNT)
    np.testing.assert_array_equal(state["returns"], RETURNS[2:])


def test_observations_are_centred_scaled_and_clipped_and_rewards_scaled_and_clipped(filled):
    mean, variance = moments(OBS)
    found = filled.normalize_obs(torch.tensor([[5.0], [100.0]]), out=torch.empty(2, 1))
    assert found.flatten().tolist() == pytest.approx([(5.0 - mean) / variance**0.5, 2.0])
    found = filled.normalize_rewards(torch.tensor([-1.5, 100.0]), out=torch.empty(2))
    assert found.tolist() == pytest.approx([-1.5 / moments(RETURNS)[1] ** 0.5, 3.0])


def normalizer_of(**settings):
    return Normalizer(NormalizeSettings(**settings), 0.5, num_cars=2, num_obs=1, device=torch.device("cpu"))


def test_where_it_is_off_nothing_changes_and_nothing_is_saved(filled):
    off, obs, rewards = normalizer_of(), torch.tensor([[3.0], [100.0]]), torch.tensor([50.0, -7.0])
    off.reset(obs)
    off.add(obs, rewards, torch.tensor([False, True]))
    off.merge()
    assert torch.equal(off.normalize_obs(obs, out=torch.empty(2, 1)), obs)
    assert torch.equal(off.normalize_rewards(rewards, out=torch.empty(2)), rewards)
    assert off.state_dict() == {}
    off.load_state_dict({})
    with pytest.raises(StateError, match="it has a normalizer; this run has none"):
        off.load_state_dict(filled.state_dict())


def test_a_run_with_raw_observations_starts_from_models_that_have_them_only(filled):
    raw = normalizer_of(reward=True)
    raw.load_observations({})
    with pytest.raises(StateError, match="it has normalized observations; this run has raw ones"):
        raw.load_observations(filled.state_dict())
