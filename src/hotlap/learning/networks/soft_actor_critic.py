"""SAC's networks, an actor and two critics: the names of their weights and their initial values."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from hotlap.learning.networks.layers import linear_layers, named_weights
from hotlap.models.actor_layers import ACTORS
from hotlap.models.model_file import PolicySettings

DEFAULT_WIDTHS = (256, 256)  # as in stable-baselines3
NUM_CRITICS = 2
ACTOR, CRITIC, TARGET = "actor", "critic", "critic_target"  # prefixes of the weights


@dataclass(frozen=True)
class SoftActorCritic:
    """Which weights make up the networks, by the names that stable-baselines3 gives them.

    A layer is the prefix of its `.weight` (outputs, inputs) and `.bias` (outputs,), from the observations on. The
    target critics have the critics' names with another prefix.
    """

    hidden: tuple[str, ...]  # of the actor
    mean: str
    log_std: str
    critics: tuple[tuple[str, ...], ...]
    activation: str

    @classmethod
    def of(cls, settings: PolicySettings) -> "SoftActorCritic":
        """The networks that the settings describe."""
        actor_widths, critic_widths = _widths(settings)
        hidden = tuple(f"{ACTOR}.latent_pi.{2 * index}" for index in range(len(actor_widths)))
        critics = tuple(
            tuple(f"{CRITIC}.qf{number}.{2 * index}" for index in range(len(critic_widths) + 1))
            for number in range(NUM_CRITICS)
        )
        return cls(
            hidden, f"{ACTOR}.mu", f"{ACTOR}.log_std", critics, settings.activation or ACTORS["sac"].default_activation
        )


def initial_weights(settings: PolicySettings, num_obs: int, num_actions: int) -> dict[str, Tensor]:
    """Random weights of actor and critics by name, drawn from torch's generator as stable-baselines3 draws them."""
    nets, (actor_widths, critic_widths) = SoftActorCritic.of(settings), _widths(settings)
    last = (num_obs, *actor_widths)[-1]
    layers: dict[str, nn.Linear] = dict(zip(nets.hidden, linear_layers(num_obs, actor_widths), strict=True))
    layers |= {nets.mean: nn.Linear(last, num_actions), nets.log_std: nn.Linear(last, num_actions)}
    for names in nets.critics:
        layers |= zip(names, linear_layers(num_obs + num_actions, (*critic_widths, 1)), strict=True)
    for _ in range(NUM_CRITICS):  # the library draws target critics of their own before it overwrites them
        linear_layers(num_obs + num_actions, (*critic_widths, 1))
    return named_weights(layers)


def part_of(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The weights of the actor, the critics or the target critics."""
    return {name: weight for name, weight in weights.items() if name.startswith(f"{prefix}.")}


def as_targets(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of critics under the names of the target critics."""
    return {TARGET + name.removeprefix(CRITIC): weight for name, weight in weights.items()}


def as_critics(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of target critics under the names of the critics."""
    return {CRITIC + name.removeprefix(TARGET): weight for name, weight in weights.items()}


def _widths(settings: PolicySettings) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The widths of the hidden layers of the actor and of a critic."""
    actor = tuple(DEFAULT_WIDTHS if settings.net_arch is None else settings.net_arch)
    return actor, actor if settings.critic_arch is None else tuple(settings.critic_arch)
