"""Where the algorithms of stable-baselines3 keep the actor's layers in a policy's weights."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

VARIANCE_FLOOR = 1e-8  # as in stable-baselines3's VecNormalize


@dataclass(frozen=True)
class ActorNames:
    """Where an algorithm of stable-baselines3 keeps its actor in the state dict, and how its actions are bounded."""

    hidden: str = "mlp_extractor.policy_net"  # prefix of the hidden layers
    output: str = "action_net"  # prefix of the last layer
    default_activation: str = "tanh"
    default_widths: tuple[int, ...] = (64, 64)  # of the hidden layers, the critic's too
    is_squashed: bool = False  # actions pass through tanh and are scaled to their bounds, instead of being clipped


ACTORS: Mapping[str, ActorNames] = {
    "ppo": ActorNames(),
    "a2c": ActorNames(),
    "sac": ActorNames(
        "actor.latent_pi", "actor.mu", default_activation="relu", default_widths=(256, 256), is_squashed=True
    ),
}


def actor_layers(weights: Mapping[str, NDArray[Any]], algorithm: str) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Weights (out, in) and biases (out,) of a perceptron's layers, from observations to actions."""
    names = ACTORS[algorithm]
    # The numbers missing between the hidden layers are activations.
    pattern = re.compile(rf"{re.escape(names.hidden)}\.(\d+)\.weight")
    numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, weights) if match)
    for layer in (*(f"{names.hidden}.{number}" for number in numbers), names.output):
        yield weights[f"{layer}.weight"], weights[f"{layer}.bias"]
