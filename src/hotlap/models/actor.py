"""The actor of a model file as compiled code needs it, read without a learning library."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.spaces import action_space, num_observations
from hotlap.errors import ModelError
from hotlap.models.model_file import Arrays, ModelFile
from hotlap.models.space_data import space_data
from hotlap.sim.policy_forward import PackedPolicy, pack_policy

VARIANCE_FLOOR = 1e-8  # as in stable-baselines3's VecNormalize


@dataclass(frozen=True)
class ActorNames:
    """Where an algorithm of stable-baselines3 keeps its actor in the state dict, and how its actions are bounded."""

    hidden: str = "mlp_extractor.policy_net"  # prefix of the hidden layers
    output: str = "action_net"  # prefix of the last layer
    default_activation: str = "tanh"
    is_squashed: bool = False  # actions pass through tanh and are scaled to their bounds, instead of being clipped


ACTORS: Mapping[str, ActorNames] = {
    "ppo": ActorNames(),
    "a2c": ActorNames(),
    "sac": ActorNames("actor.latent_pi", "actor.mu", default_activation="relu", is_squashed=True),
}


def actor_layers(weights: Arrays, algorithm: str) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Weights (out, in) and biases (out,) of a perceptron's layers, from observations to actions."""
    names = ACTORS[algorithm]
    # The numbers missing between the hidden layers are activations.
    pattern = re.compile(rf"{re.escape(names.hidden)}\.(\d+)\.weight")
    numbers = sorted(int(match[1]) for match in map(pattern.fullmatch, weights) if match)
    for layer in (*(f"{names.hidden}.{number}" for number in numbers), names.output):
        yield weights[f"{layer}.weight"], weights[f"{layer}.bias"]


def pack_model(model: ModelFile) -> PackedPolicy:
    """The policy of a racer's model file for compiled code; the same numbers as `LearnedPolicy.pack` gives."""
    card = model.card
    if not card.is_racer:
        raise ModelError(f"{model.path}: is a model of {card.environment}; it cannot drive. Use a racer model.")
    actions, num_inputs = action_space(), card.racer_observations.shape[0]
    misfit = f"{model.path}: its weights do not fit the network that its card describes. Use another model."
    if card.spaces[0].shape != (num_inputs,) or space_data(card.spaces[1]) != space_data(actions):
        raise ModelError(f"{model.path}: its observations or actions are not the racer's. Use another model.")
    normalizer: dict[str, NDArray[np.float64]] = {}
    if card.clip_obs is not None:
        mean, variance = model.normalizer["obs_mean"], model.normalizer["obs_var"]
        if mean.shape != (num_inputs,) or variance.shape != (num_inputs,):
            raise ModelError(f"{model.path}: its normalizer does not fit its observations. Use another model.")
        normalizer = {"mean": mean, "scale": np.sqrt(variance + VARIANCE_FLOOR)}
    try:
        layers = list(actor_layers(model.weights, card.algorithm))
    except KeyError:
        raise ModelError(misfit) from None
    if any(weight.ndim != 2 or bias.ndim != 1 for weight, bias in layers):
        raise ModelError(misfit)
    if card.policy.actor_widths not in (None, tuple(len(bias) for _, bias in layers[:-1])):
        raise ModelError(misfit)
    return pack_policy(
        layers,
        activation=card.policy.activation or ACTORS[card.algorithm].default_activation,
        bounds=(actions.low.astype(np.float32), actions.high.astype(np.float32)),
        clip=np.inf if card.clip_obs is None else card.clip_obs,
        num_observations=num_observations(card.observation),
        num_stack=card.stack,
        num_fourier=card.lap_fourier,
        is_squashed=ACTORS[card.algorithm].is_squashed,
        **normalizer,
    )
