"""The actor of a model file as compiled code needs it, read without a learning library."""

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.spaces import action_space, num_observations
from hotlap.errors import ModelError
from hotlap.models.actor_layers import ACTORS, VARIANCE_FLOOR, actor_layers
from hotlap.models.model_file import ModelFile
from hotlap.models.space_data import space_data
from hotlap.sim.policy_forward import PackedPolicy, pack_policy


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
