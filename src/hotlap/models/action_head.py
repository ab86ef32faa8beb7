"""The action head `pedal_axis`: bounded steering, and one axis for throttle and brake, in its mean and in its noise."""

from typing import Any

import torch
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn

from hotlap.models.model_file import ACTION_GAIN, NUM_PEDAL_AXES, PEDAL_AXIS, PolicySettings


class PedalAxisDistribution(DiagGaussianDistribution):
    """Gaussian steering, and a Gaussian pedal axis whose positive part is the throttle and whose negative is the brake.

    The brake's noise is the opposite of the throttle's. Noise of its own would press both pedals at once, and slow the
    cars in training but not the policy without noise. The brake follows from the throttle, so it adds nothing to
    probabilities and entropy.
    """

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log probabilities of actions, those of steering and pedal axis."""
        found: Tensor = self.distribution.log_prob(actions)  # type: ignore[no-untyped-call]
        return found[:, :NUM_PEDAL_AXES].sum(1)

    def entropy(self) -> Tensor:
        """The entropy of steering and pedal axis."""
        found: Tensor = self.distribution.entropy()  # type: ignore[no-untyped-call]
        return found[:, :NUM_PEDAL_AXES].sum(1)

    def sample(self) -> Tensor:
        """Draw actions."""
        means, std = self.distribution.mean, self.distribution.stddev
        noise = torch.randn(len(means), NUM_PEDAL_AXES, device=means.device) * std[:, :NUM_PEDAL_AXES]
        return means + torch.cat([noise, -noise[:, NUM_PEDAL_AXES - 1 :]], 1)


@torch.no_grad()
def fix_action_head(network: ActorCriticPolicy, settings: PolicySettings) -> None:
    """Give a new network the fixed last layer that `action_head` describes; it is not trained.

    It is an ordinary layer of stable-baselines3's network, so such a model needs no code of ours to run.
    """
    if settings.action_head != "pedal_axis":
        return
    axes = [module for module in network.mlp_extractor.policy_net if isinstance(module, nn.Linear)][-1]
    nn.init.orthogonal_(axes.weight, ACTION_GAIN)
    head: Any = network.action_net
    head.weight.copy_(torch.tensor(PEDAL_AXIS).t())
    head.bias.zero_()
    head.requires_grad_(False)
    if type(network.action_dist) is DiagGaussianDistribution:
        network.action_dist = PedalAxisDistribution(network.action_dist.action_dim)


def match_brake_noise(policy: Any) -> None:
    """Set the brake's standard deviation, which no gradient reaches, to the throttle's."""
    if isinstance(policy.action_dist, PedalAxisDistribution):
        policy.log_std.data[NUM_PEDAL_AXES:] = policy.log_std.data[NUM_PEDAL_AXES - 1]
