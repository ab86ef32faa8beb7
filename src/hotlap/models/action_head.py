"""The action head `pedal_axis`: bounded steering, and one axis for throttle and brake, in its mean and in its noise."""

from typing import Any

import torch
from stable_baselines3.common.distributions import DiagGaussianDistribution
from stable_baselines3.common.policies import ActorCriticPolicy
from torch import Tensor, nn

from hotlap.models.model_file import NUM_PEDAL_AXES, PolicySettings

# From two tanh units to steer, throttle and brake. Slightly more than 1, so that full steering and full pedals need no
# infinite inputs, and little enough for the actions' noise to reach.
PEDAL_AXIS = ((1.1, 0.0, 0.0), (0.0, 1.1, -1.1))
INITIAL_GAIN = 0.01  # of the layer that gives the actions, as in stable-baselines3


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
    nn.init.orthogonal_(axes.weight, INITIAL_GAIN)
    head: Any = network.action_net
    head.weight.copy_(torch.tensor(PEDAL_AXIS).t())
    head.bias.zero_()
    head.requires_grad_(False)
    if type(network.action_dist) is DiagGaussianDistribution:
        network.action_dist = PedalAxisDistribution(network.action_dist.action_dim)


def num_noise_axes(policy: Any) -> int:
    """How many of a policy's actions have noise of their own: the first ones."""
    if isinstance(policy.action_dist, PedalAxisDistribution):
        return NUM_PEDAL_AXES
    return len(policy.log_std)


def match_brake_noise(policy: Any) -> None:
    """Set the brake's standard deviation, which no gradient reaches, to the throttle's."""
    if isinstance(policy.action_dist, PedalAxisDistribution):
        policy.log_std.data[NUM_PEDAL_AXES:] = policy.log_std.data[NUM_PEDAL_AXES - 1]
