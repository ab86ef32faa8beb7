"""The initial weights of PPO's networks are those of stable-baselines3 from the same seed."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy

from hotlap.learning.networks.actor_critic import ActorCritic, initial_weights
from hotlap.models.action_head import fix_action_head
from hotlap.models.model_file import PolicySettings
from hotlap.models.policy import policy_arguments

NUM_OBS, NUM_ACTIONS = 14, 3

SETTINGS = [
    PolicySettings(),
    PolicySettings(net_arch=(8, 6), activation="elu", log_std_init=-0.5),
    PolicySettings(net_arch=(8,), critic_arch=(5, 7)),
    PolicySettings(net_arch=()),
    PolicySettings(net_arch=(8, 6), activation="tanh", action_head="pedal_axis"),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_names_and_bits_are_those_of_the_library(settings):
    observations = spaces.Box(-1.0, 1.0, (NUM_OBS,))
    actions = spaces.Box(np.array([-1, 0, 0], np.float32), np.ones(NUM_ACTIONS, np.float32))
    torch.manual_seed(5)
    library = ActorCriticPolicy(observations, actions, lambda _: 0.0, **policy_arguments(settings, "ppo"))
    fix_action_head(library, settings)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    ours = initial_weights(settings, NUM_OBS, NUM_ACTIONS)
    assert torch.equal(torch.rand(1), drawn)  # as many numbers were drawn
    expected = library.state_dict()
    assert list(ours) == list(expected)
    for name, weight in ours.items():
        assert torch.equal(weight, expected[name]), name


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_layers_named_are_those_that_have_weights(settings):
    nets = ActorCritic.of(settings, NUM_ACTIONS)
    named = {f"{layer}.{part}" for layer in (*nets.policy, *nets.value) for part in ("weight", "bias")}
    assert named | {"log_std"} == set(initial_weights(settings, NUM_OBS, NUM_ACTIONS))
    assert nets.fixed == ({"action_net"} if settings.action_head == "pedal_axis" else set())
