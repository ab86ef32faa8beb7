"""The network of a model file: built, filled with its weights, and asked for actions."""

import inspect
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import VecTransposeImage
from torch import nn

from hotlap.errors import ConfigError, ModelError, one_line
from hotlap.models.actor_layers import VARIANCE_FLOOR
from hotlap.models.algorithms import ALGORITHMS
from hotlap.models.model_file import Arrays, ModelCard, ModelFile, PolicyKind, PolicySettings, refuse_other_spaces
from hotlap.models.space_data import describe_space

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU}
MIN_PICTURE_SIDE = 36  # pixels: NatureCNN's convolutions need at least this
MIN_CNN_FEATURES = 256  # of a picture: 256 in a Dict, 512 alone
MIN_DEFAULT_WIDTH = 64  # of the hidden layers where net_arch is not given


def policy_kind(settings: PolicySettings, observations: spaces.Space[Any]) -> PolicyKind:
    """The policy class for these observations: the one that the settings name, or the one that suits them."""
    suited = _suited_kind(observations)
    if settings.kind in ("auto", suited):
        return suited
    if settings.kind == "MlpPolicy" and not isinstance(observations, spaces.Dict):
        return "MlpPolicy"  # flattens pictures
    raise ConfigError(
        f"policy.kind: {settings.kind} does not suit observations {describe_space(observations)}. "
        f"Leave it out for {suited}."
    )


def _suited_kind(observations: spaces.Space[Any]) -> PolicyKind:
    if isinstance(observations, spaces.Dict):
        return "MultiInputPolicy"
    if isinstance(observations, spaces.Box) and is_image_space(observations):
        _, shorter_side, _ = sorted(observations.shape)  # the smallest of the three are the channels
        return "CnnPolicy" if shorter_side >= MIN_PICTURE_SIDE else "MlpPolicy"
    return "MlpPolicy"


def network_observations(observations: spaces.Space[Any]) -> spaces.Space[Any]:
    """The observation space that a network sees: stable-baselines3 moves a picture's channels to the front."""
    if isinstance(observations, spaces.Dict):  # pairs keep the order of the keys
        return spaces.Dict([(name, network_observations(space)) for name, space in observations.spaces.items()])
    if not isinstance(observations, spaces.Box) or not is_image_space(observations):
        return observations
    if is_image_space_channels_first(observations):
        return observations
    return VecTransposeImage.transpose_space(observations)


def policy_arguments(settings: PolicySettings, algorithm: str) -> dict[str, Any]:
    """The settings as keyword arguments of stable-baselines3's policies."""
    arguments: dict[str, Any] = {}
    if settings.net_arch is not None:
        actor = list(settings.actor_widths or ())
        critic = list(settings.net_arch if settings.critic_arch is None else settings.critic_arch)
        arguments["net_arch"] = actor if actor == critic else {"pi": actor, ALGORITHMS[algorithm].critic_key: critic}
    if settings.activation is not None:
        arguments["activation_fn"] = ACTIVATIONS[settings.activation]
    if settings.log_std_init is not None and ALGORITHMS[algorithm].has_log_std:
        arguments["log_std_init"] = settings.log_std_init
    return arguments


def activation_name(card: ModelCard) -> str:
    """The activation function that the card's settings name, or the default of the policy class."""
    if card.policy.activation is not None:
        return card.policy.activation
    policy = ALGORITHMS[card.algorithm].policies["MlpPolicy"]
    default = inspect.signature(policy).parameters["activation_fn"].default
    return next(name for name, module in ACTIVATIONS.items() if module is default)


class LearnedPolicy:
    """Deterministic actions for batches of raw observations: normalizer, network and clipping in one."""

    def __init__(
        self, network: BasePolicy, clip_obs: float | None = None, normalizer: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self._network = network
        self._clip_obs = clip_obs
        self.normalizer: Arrays = dict(normalizer or {})
        if clip_obs is not None:
            # The same expression as VecNormalize's, so that observations are normalized bit for bit as in training.
            self._mean = self.normalizer["obs_mean"]
            self._scale = np.sqrt(self.normalizer["obs_var"] + VARIANCE_FLOOR)

    @classmethod
    def from_file(
        cls,
        model: ModelFile,
        observations: spaces.Space[Any] | None = None,
        actions: spaces.Space[Any] | None = None,
    ) -> "LearnedPolicy":
        """The policy of a model file, for an environment with these spaces; without them, for those of its card."""
        saved_observations, saved_actions = model.card.spaces
        observations = saved_observations if observations is None else observations
        actions = saved_actions if actions is None else actions
        remedy = "Use a model of this environment."
        refuse_other_spaces(model, observations, actions, remedy, seen_as=network_observations)
        if model.card.clip_obs is not None and any(
            model.normalizer[name].shape != observations.shape for name in ("obs_mean", "obs_var")
        ):
            raise ModelError(f"{model.path}: its normalizer does not fit its observations. Use another model.")
        network = _build_network(model, observations, actions)
        network.set_training_mode(False)
        return cls(network, model.card.clip_obs, model.normalizer)

    @property
    def weights(self) -> Arrays:
        """The network's weights, as a model file holds them; they share the network's memory where they can."""
        return {name: tensor.cpu().numpy() for name, tensor in self._network.state_dict().items()}

    def act(self, obs: Any) -> NDArray[Any]:
        """Actions for raw observations, one row each."""
        if self._clip_obs is not None:
            obs = np.clip((obs - self._mean) / self._scale, -self._clip_obs, self._clip_obs).astype(np.float32)
        try:
            actions, _ = self._network.predict(obs, deterministic=True)
        except ValueError as error:  # torch refuses to make a distribution of NaN
            raise ModelError(
                f"the policy gives no action ({one_line(error):.120}). If its output is not finite, its weights are "
                "too large: use an earlier model."
            ) from None
        return actions


def _build_network(model: ModelFile, observations: spaces.Space[Any], actions: spaces.Space[Any]) -> BasePolicy:
    """The network that the card describes, with the file's weights in it."""
    card = model.card
    try:
        kind = policy_kind(card.policy, observations)
    except ConfigError as error:
        raise ModelError(f"{model.path}: {error}") from None
    misfit = f"{model.path}: its weights do not fit the network that its card describes. Use another model."
    num_weights = sum(array.size for array in model.weights.values())
    if _min_parameters(card.policy, kind, observations, actions) > num_weights:
        raise ModelError(misfit)
    arguments = policy_arguments(card.policy, card.algorithm)
    with torch.random.fork_rng(devices=[]):  # initial weights are random; the caller's generator must not change
        policy_class = ALGORITHMS[card.algorithm].policies[kind]
        network = policy_class(network_observations(observations), actions, lambda _: 0.0, **arguments)
    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in model.weights.items()})
    except RuntimeError:
        raise ModelError(misfit) from None
    return network


def _min_parameters(
    settings: PolicySettings, kind: PolicyKind, observations: spaces.Space[Any], actions: spaces.Space[Any]
) -> int:
    """A lower bound of a network's size, so that a card of a huge network is refused before anything is allocated."""
    num_inputs = int(spaces.utils.flatdim(observations))
    hidden = (MIN_DEFAULT_WIDTH,) if settings.net_arch is None else settings.net_arch
    # Other kinds have convolutions before the hidden layers.
    first = num_inputs if kind == "MlpPolicy" else 1
    widths = (first, *hidden, int(spaces.utils.flatdim(actions)))
    layers = sum(left * right for left, right in pairwise(widths))
    return max(num_inputs, layers + (0 if kind == "MlpPolicy" else _convolution_weights(observations)))


def _convolution_weights(observations: spaces.Space[Any]) -> int:
    """The weights of stable-baselines3's NatureCNN, one for each picture, biases left out."""
    if isinstance(observations, spaces.Dict):
        return sum(map(_convolution_weights, observations.spaces.values()))
    if not isinstance(observations, spaces.Box) or not is_image_space(observations):
        return 0
    channels, *sides = sorted(observations.shape)
    for kernel, stride in ((8, 4), (4, 2), (3, 1)):
        sides = [max(0, (side - kernel) // stride + 1) for side in sides]
    return 8 * 8 * 32 * channels + 4 * 4 * 64 * 32 + 3 * 3 * 64 * 64 + 64 * sides[0] * sides[1] * MIN_CNN_FEATURES
