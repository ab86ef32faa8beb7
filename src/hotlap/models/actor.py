"""The actor of a model file as compiled code needs it, read without a learning library."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.spaces import action_space, num_observations
from hotlap.errors import DriverError, ModelError
from hotlap.models.actor_layers import ACTORS, VARIANCE_FLOOR, actor_layers
from hotlap.models.model_file import ModelCard, ModelFile, refuse_other_spaces
from hotlap.models.space_data import describe_space
from hotlap.sim.policy_forward import PackedPolicy, pack_policy
from hotlap.sim.world import NUM_ACTIONS

Shapes = dict[str, tuple[int, ...]]


def pack_model(model: ModelFile) -> PackedPolicy:
    """The policy of a racer's model file for compiled code: within 1e-5 of torch, the same bits on every machine."""
    card = model.card
    if not card.is_racer:
        raise DriverError(f"{model.path}: is a model of {card.environment}; it cannot drive. Use a racer model.")
    observations, actions = card.racer_observations, action_space()
    refuse_other_spaces(model, observations, actions, "Use a model of this environment.")
    if card.policy.kind not in ("auto", "MlpPolicy"):
        raise ModelError(
            f"{model.path}: policy.kind: {card.policy.kind} does not suit observations "
            f"{describe_space(observations)}. Leave it out for MlpPolicy."
        )
    normalizer: dict[str, NDArray[np.float64]] = {}
    if card.clip_obs is not None:
        mean, variance = model.normalizer["obs_mean"], model.normalizer["obs_var"]
        if mean.shape != observations.shape or variance.shape != observations.shape:
            raise ModelError(f"{model.path}: its normalizer does not fit its observations. Use another model.")
        normalizer = {"mean": mean, "scale": np.sqrt(variance + VARIANCE_FLOOR)}
    if {name: array.shape for name, array in model.weights.items()} != network_shapes(card):
        raise ModelError(
            f"{model.path}: its weights do not fit the network that its card describes. Use another model."
        )
    return pack_policy(
        list(actor_layers(model.weights, card.algorithm)),
        activation=card.policy.activation or ACTORS[card.algorithm].default_activation,
        bounds=(actions.low.astype(np.float32), actions.high.astype(np.float32)),
        clip=np.inf if card.clip_obs is None else card.clip_obs,
        num_observations=num_observations(card.observation),
        num_stack=card.stack,
        num_fourier=card.lap_fourier,
        is_squashed=ACTORS[card.algorithm].is_squashed,
        **normalizer,
    )


def network_shapes(card: ModelCard) -> Shapes:
    """The shapes of all weights of the racer's networks that the card describes, as stable-baselines3 builds them."""
    names, settings = ACTORS[card.algorithm], card.policy
    num_inputs = card.racer_observations.shape[0]
    actor = names.default_widths if settings.actor_widths is None else settings.actor_widths
    widths = names.default_widths if settings.net_arch is None else settings.net_arch
    critic = widths if settings.critic_arch is None else settings.critic_arch
    hidden, features = _stack_shapes(names.hidden, num_inputs, actor), actor[-1] if actor else num_inputs
    shapes = hidden | _layer_shapes(names.output, features, NUM_ACTIONS)
    if card.algorithm == "sac":
        shapes |= _layer_shapes("actor.log_std", features, NUM_ACTIONS)
        for net in ("critic.qf0", "critic.qf1", "critic_target.qf0", "critic_target.qf1"):
            shapes |= _stack_shapes(net, num_inputs + NUM_ACTIONS, (*critic, 1))
        return shapes
    shapes |= _stack_shapes("mlp_extractor.value_net", num_inputs, critic)
    shapes |= _layer_shapes("value_net", critic[-1] if critic else num_inputs, 1)
    return shapes | {"log_std": (NUM_ACTIONS,)}


def _stack_shapes(name: str, num_inputs: int, widths: Sequence[int]) -> Shapes:
    """Of layers one after the other, with activations between them."""
    shapes: Shapes = {}
    for number, (left, right) in enumerate(pairwise((num_inputs, *widths))):
        shapes |= _layer_shapes(f"{name}.{2 * number}", left, right)
    return shapes


def _layer_shapes(name: str, num_inputs: int, num_outputs: int) -> Shapes:
    return {f"{name}.weight": (num_outputs, num_inputs), f"{name}.bias": (num_outputs,)}
