"""The network of a model file: built, filled with its weights, and asked for actions."""

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.a2c import CnnPolicy, MlpPolicy, MultiInputPolicy
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import VecTransposeImage
from stable_baselines3.sac import CnnPolicy as SACCnnPolicy
from stable_baselines3.sac import MlpPolicy as SACMlpPolicy
from stable_baselines3.sac import MultiInputPolicy as SACMultiInputPolicy
from torch import nn

from hotlap.errors import ConfigError, ModelError
from hotlap.models.model_file import ModelCard, ModelFile, PolicyKind, PolicySettings

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU, "elu": nn.ELU}
# PPO and A2C share their policies.
_ACTOR_CRITICS = {"MlpPolicy": MlpPolicy, "CnnPolicy": CnnPolicy, "MultiInputPolicy": MultiInputPolicy}
_SOFT = {"MlpPolicy": SACMlpPolicy, "CnnPolicy": SACCnnPolicy, "MultiInputPolicy": SACMultiInputPolicy}
POLICIES: dict[str, Mapping[str, type[BasePolicy]]] = {"ppo": _ACTOR_CRITICS, "a2c": _ACTOR_CRITICS, "sac": _SOFT}
VARIANCE_FLOOR = 1e-8  # as in stable-baselines3's VecNormalize
_BOX = re.compile(r"Box\(.*, (\([\d, ]*\)), (\w+)\)")  # its shape and type
LONGEST_SPACE = 120  # letters of an error about it
# The library's convolutions leave nothing of a smaller picture.
SMALLEST_PICTURE = 36


def policy_kind(settings: PolicySettings, observations: spaces.Space[Any]) -> PolicyKind:
    """The library's name of the policy that suits the observations; the one that the settings name, if it does."""
    suited = _suited_kind(observations)
    if settings.kind in ("auto", suited):
        return suited
    if settings.kind == "MlpPolicy" and not isinstance(observations, spaces.Dict):
        return "MlpPolicy"  # takes pictures too, pixel by pixel
    raise ConfigError(
        f"policy.kind: {settings.kind} does not suit observations {_one_line(observations)}. Leave it out for {suited}."
    )


def _suited_kind(observations: spaces.Space[Any]) -> PolicyKind:
    if isinstance(observations, spaces.Dict):
        return "MultiInputPolicy"
    if isinstance(observations, spaces.Box) and is_image_space(observations):
        _, shorter_side, _ = sorted(observations.shape)  # of the three, the channels are the fewest
        return "CnnPolicy" if shorter_side >= SMALLEST_PICTURE else "MlpPolicy"
    return "MlpPolicy"


def network_observations(observations: spaces.Space[Any]) -> spaces.Space[Any]:
    """The observations as the library hands them to a network: a picture's channels come first."""
    if isinstance(observations, spaces.Dict):
        return spaces.Dict({name: network_observations(space) for name, space in observations.spaces.items()})
    if not isinstance(observations, spaces.Box) or not is_image_space(observations):
        return observations
    if is_image_space_channels_first(observations):
        return observations
    return VecTransposeImage.transpose_space(observations)


def policy_arguments(settings: PolicySettings, algorithm: str) -> dict[str, Any]:
    """The settings as the library's policies take them."""
    arguments: dict[str, Any] = {}
    if settings.net_arch is not None:
        arguments["net_arch"] = list(settings.net_arch)
    if settings.activation is not None:
        arguments["activation_fn"] = ACTIVATIONS[settings.activation]
    if settings.log_std_init is not None and algorithm != "sac":
        arguments["log_std_init"] = settings.log_std_init
    return arguments


class LearnedPolicy:
    """Deterministic actions for batches of raw observations: normalizer, network and clipping in one."""

    def __init__(
        self, network: BasePolicy, clip_obs: float | None = None, normalizer: Mapping[str, NDArray[Any]] | None = None
    ) -> None:
        self._network = network
        self._clip_obs = clip_obs
        if clip_obs is not None:
            statistics = normalizer or {}
            # The same expression as VecNormalize's, so that the policy sees here what it saw in training.
            self._mean = statistics["obs_mean"]
            self._scale = np.sqrt(statistics["obs_var"] + VARIANCE_FLOOR)

    @classmethod
    def from_file(
        cls, model: ModelFile, observations: spaces.Space[Any], actions: spaces.Space[Any]
    ) -> "LearnedPolicy":
        """The policy of a model file, for an environment with these spaces."""
        card = model.card
        for name, space, saved, is_same in (
            ("observations", observations, card.observation_space, _are_seen_alike),
            ("actions", actions, card.action_space, _are_same),
        ):
            if not is_same(str(space), saved):
                raise ModelError(
                    f"{model.path}: its {name} are {_one_line(saved)}; this environment's are {_one_line(space)}. "
                    "Take a model of this environment."
                )
        if card.clip_obs is not None and any(
            model.normalizer[name].shape != observations.shape for name in ("obs_mean", "obs_var")
        ):
            raise ModelError(f"{model.path}: its normalizer does not fit its observations. Take another model.")
        network = _build_network(card, observations, actions, model)
        network.set_training_mode(False)
        return cls(network, card.clip_obs, model.normalizer)

    def act(self, obs: Any) -> NDArray[Any]:
        """Actions for raw observations, one row each."""
        if self._clip_obs is not None:
            obs = np.clip((obs - self._mean) / self._scale, -self._clip_obs, self._clip_obs).astype(np.float32)
        actions, _ = self._network.predict(obs, deterministic=True)
        return actions


def _are_same(one: str, other: str) -> bool:
    """Whether two printed spaces are one; where numpy breaks a long row depends on its print options."""
    return one.split() == other.split()


def _are_seen_alike(one: str, other: str) -> bool:
    """Whether a policy sees no difference between two printed spaces: the bounds of a Box are none to it.

    EnvPool prints other bounds than Gymnasium for the same environment.
    """
    boxes = [_BOX.fullmatch(" ".join(text.split())) for text in (one, other)]
    return _are_same(one, other) or (all(boxes) and len({box.groups() for box in boxes if box}) == 1)


def _one_line(space: object) -> str:
    """A space as an error shows it: the beginning, and the end, where its shape is."""
    text = " ".join(str(space).split())
    return text if len(text) <= LONGEST_SPACE else f"{text[: LONGEST_SPACE // 2]} … {text[-LONGEST_SPACE // 2 :]}"


def _build_network(
    card: ModelCard, observations: spaces.Space[Any], actions: spaces.Space[Any], model: ModelFile
) -> BasePolicy:
    """The network that the card describes, with the file's weights in it."""
    misfit = f"{model.path}: its weights do not fit the network that it describes. Take another model."
    # Before anything is allocated: a description of huge layers is refused, not built.
    if sum(left * right for left, right in pairwise(card.policy.net_arch or ())) > sum(
        array.size for array in model.weights.values()
    ):
        raise ModelError(misfit)
    try:
        policy_class = POLICIES[card.algorithm][policy_kind(card.policy, observations)]
    except ConfigError as error:
        raise ModelError(f"{model.path}: {error}") from None
    arguments = policy_arguments(card.policy, card.algorithm)
    with torch.random.fork_rng(devices=[]):  # building a network draws first weights; nobody's generator may notice
        network = policy_class(network_observations(observations), actions, lambda _: 0.0, **arguments)
    try:
        network.load_state_dict({name: torch.from_numpy(array) for name, array in model.weights.items()})
    except RuntimeError:
        raise ModelError(misfit) from None
    return network
