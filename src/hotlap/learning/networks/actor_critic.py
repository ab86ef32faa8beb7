"""PPO's two networks, the policy's and the value function's: the names of their weights and their initial values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hotlap.learning.networks.layers import linear_layers, named_weights
from hotlap.models.actor_layers import ACTORS
from hotlap.models.model_file import ACTION_GAIN, NUM_PEDAL_AXES, PEDAL_AXIS, PolicySettings

DEFAULT_WIDTHS = (64, 64)  # as in stable-baselines3
HIDDEN_GAIN, VALUE_GAIN = math.sqrt(2.0), 1.0  # of the orthogonal initial weights
LOG_STD = "log_std"


@dataclass(frozen=True)
class ActorCritic:
    """Which weights make up the two networks, by the names that stable-baselines3 gives them.

    A layer is the prefix of its `.weight` (outputs, inputs) and `.bias` (outputs,), from the observations on.
    """

    policy: tuple[str, ...]
    value: tuple[str, ...]
    activation: str
    num_axes: int  # actions with noise of their own, the first ones; the head `pedal_axis` has one less than actions
    fixed: frozenset[str] = frozenset()  # layers that are not trained

    @classmethod
    def of(cls, settings: PolicySettings, num_actions: int) -> "ActorCritic":
        """The networks that the settings describe."""
        has_axes = settings.action_head == "pedal_axis"
        return cls(
            (*_hidden_layers("policy_net", _widths(settings)[0]), "action_net"),
            (*_hidden_layers("value_net", _widths(settings)[1]), "value_net"),
            settings.activation or ACTORS["ppo"].default_activation,
            NUM_PEDAL_AXES if has_axes else num_actions,
            frozenset({"action_net"}) if has_axes else frozenset(),
        )


def initial_weights(settings: PolicySettings, num_obs: int, num_actions: int) -> dict[str, Tensor]:
    """Random weights by name, drawn from torch's generator in the order in which stable-baselines3 draws them."""
    policy_widths, value_widths = _widths(settings)
    policy, value = linear_layers(num_obs, policy_widths), linear_layers(num_obs, value_widths)
    action_net = nn.Linear(([num_obs, *policy_widths])[-1], num_actions)
    value_net = nn.Linear(([num_obs, *value_widths])[-1], 1)
    for layer in (*policy, *value):
        _initialize(layer, HIDDEN_GAIN)
    _initialize(action_net, ACTION_GAIN)
    _initialize(value_net, VALUE_GAIN)
    if settings.action_head == "pedal_axis":
        nn.init.orthogonal_(policy[-1].weight, ACTION_GAIN)
        with torch.no_grad():
            action_net.weight.copy_(torch.tensor(PEDAL_AXIS).t())
    names = _hidden_layers("policy_net", policy_widths) + _hidden_layers("value_net", value_widths)
    layers = dict(zip(names, (*policy, *value), strict=True)) | {"action_net": action_net, "value_net": value_net}
    return {LOG_STD: torch.full((num_actions,), settings.log_std_init or 0.0)} | named_weights(layers)


def _widths(settings: PolicySettings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The widths of the hidden layers of the policy and of the value function."""
    widths = settings.net_arch if settings.net_arch is not None else DEFAULT_WIDTHS
    policy = settings.actor_widths if settings.actor_widths is not None else DEFAULT_WIDTHS
    return tuple(policy), tuple(widths if settings.critic_arch is None else settings.critic_arch)


def _hidden_layers(net: str, widths: Sequence[int]) -> tuple[str, ...]:
    # Every other module of stable-baselines3's networks is an activation.
    return tuple(f"mlp_extractor.{net}.{2 * index}" for index in range(len(widths)))


def _initialize(layer: nn.Linear, gain: float) -> None:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)
