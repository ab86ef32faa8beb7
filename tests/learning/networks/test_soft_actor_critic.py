"""The initial weights of SAC's networks are those of stable-baselines3 from the same seed."""

import pytest
import torch
from gymnasium import spaces
from stable_baselines3.sac.policies import SACPolicy

from hotlap.learning.networks.soft_actor_critic import as_targets, initial_weights, part_of
from hotlap.models.model_file import PolicySettings
from hotlap.models.policy import policy_arguments


@pytest.mark.parametrize(
    "settings",
    [
        PolicySettings(),
        PolicySettings(net_arch=(8, 6), activation="tanh"),
        PolicySettings(net_arch=(6,), critic_arch=(7, 5)),
        PolicySettings(net_arch=(6,), critic_arch=()),
    ],
)
def test_names_and_bits_are_those_of_the_library(settings):
    torch.manual_seed(5)
    spaces_of = spaces.Box(-1.0, 1.0, (14,)), spaces.Box(-1.0, 1.0, (3,))
    library = SACPolicy(*spaces_of, lambda _: 0.0, **policy_arguments(settings, "sac"))
    drawn = torch.rand(1)
    torch.manual_seed(5)
    ours = initial_weights(settings, 14, 3)
    assert torch.equal(torch.rand(1), drawn)  # as many numbers were drawn
    ours |= as_targets(part_of(ours, "critic"))
    expected = library.state_dict()
    assert list(ours) == list(expected)
    for name, weight in ours.items():
        assert torch.equal(weight, expected[name]), name
