"""Model files: the card that describes a model, reading and writing.

This module imports no learning library, so that a model's card can be read quickly.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

from gymnasium import Space
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.config import Range, build, check_ranges, setting, snake_case
from hotlap.envs.fleet import check_repeat
from hotlap.envs.observations import stacked_observation_space
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.spaces import DEFAULT_OBSERVATION, OBSERVATION_LAYOUTS, ObservationName
from hotlap.errors import ConfigError, ModelError
from hotlap.models.archive import Archive, read_archive, write_archive
from hotlap.models.number_checks import (
    refuse_bad_statistics,
    refuse_not_finite,
    refuse_other_types,
    refuse_overflow,
)
from hotlap.models.space_data import describe_space, same_to_policy, space_data, space_from_data
from hotlap.sim.version import PHYSICS_VERSION

AlgorithmName = Literal["ppo", "sac", "a2c"]
PolicyKind = Literal["auto", "MlpPolicy", "CnnPolicy", "MultiInputPolicy"]
POLICY_GROUP, NORMALIZER_GROUP = "policy", "normalizer"
MAX_LAYERS = 32  # hidden ones, of the policy and of the value function
MAX_WIDTH = 65_536
MAX_WEIGHTS = 1 << 27  # between hidden layers: half a gigabyte in float32, before gradients and optimizer
NUM_PEDAL_AXES = 2  # of the action head `pedal_axis`: steering, and throttle against brake
# From its two tanh units to steer, throttle and brake. Slightly more than 1, so that full steering and full pedals need
# no infinite inputs, and little enough for the actions' noise to reach.
PEDAL_AXIS = ((1.1, 0.0, 0.0), (0.0, 1.1, -1.1))
ACTION_GAIN = 0.01  # of the initial weights of the layer that gives the actions, as in stable-baselines3
_ENVIRONMENT = re.compile(r"[\w:./-]{1,200}", re.ASCII)
Arrays = dict[str, NDArray[Any]]


class PolicyArrays(NamedTuple):
    """A policy as a learner gives it: its weights by stable-baselines3's names, and the normalizer's statistics."""

    weights: Arrays
    normalizer: Arrays


@dataclass(frozen=True)
class PolicySettings:
    """The shape of a policy's networks; None means the default of stable-baselines3."""

    kind: PolicyKind = setting("auto", "Type of the policy; `auto` chooses by the observation space.")
    net_arch: tuple[int, ...] | None = setting(None, "Widths of the hidden layers.", Range(1, MAX_WIDTH))
    activation: Literal["tanh", "relu", "elu"] | None = setting(None, "Activation function of the hidden layers.")
    log_std_init: float | None = setting(
        None, "Initial logarithm of the actions' standard deviation.", Range(-20.0, 5.0)
    )
    critic_arch: tuple[int, ...] | None = setting(
        None, "Widths of the value function's hidden layers; those of `net_arch` if not given.", Range(1, MAX_WIDTH)
    )
    action_head: Literal["linear", "pedal_axis"] = setting(
        "linear",
        "How the last hidden layer gives the mean action. `pedal_axis` is for the racer: tanh bounds the steering, and "
        "one axis for throttle and brake, in its mean and in its noise. The mean cannot drift to where noise changes "
        "nothing, and noise never presses both pedals.",
    )

    @property
    def actor_widths(self) -> tuple[int, ...] | None:
        """Widths of the policy's hidden layers, with those of the action head; None where the library chooses them."""
        if self.net_arch is None:
            return None
        return (*self.net_arch, NUM_PEDAL_AXES) if self.action_head == "pedal_axis" else tuple(self.net_arch)

    def __post_init__(self) -> None:
        for name in ("net_arch", "critic_arch"):
            _check_layers(name, getattr(self, name) or ())
        check_ranges(self)
        if self.critic_arch is not None and self.net_arch is None:
            raise ConfigError("critic_arch: needs net_arch. Give both.")
        if self.action_head != "linear" and (self.net_arch is None or self.activation != "tanh"):
            raise ConfigError(f"action_head: {self.action_head} needs net_arch and the activation tanh. Give both.")


def _check_layers(name: str, widths: Sequence[int]) -> None:
    """Refuse networks that take minutes or more memory than there is to build."""
    if len(widths) > MAX_LAYERS:
        raise ConfigError(f"{name}: has {len(widths):,} layers; at most {MAX_LAYERS} are allowed. Use fewer.")
    num_weights = sum(left * right for left, right in pairwise(widths))
    if max(widths, default=0) <= MAX_WIDTH and num_weights > MAX_WEIGHTS:
        raise ConfigError(f"{name}: has {num_weights:,} weights; at most {MAX_WEIGHTS:,} are allowed. Use fewer.")


@dataclass(frozen=True)
class ModelCard:
    """Everything needed to rebuild a model's policy and to use it as in training."""

    algorithm: AlgorithmName
    environment: str
    seed: int
    step: int
    config_digest: str
    weights_digest: str
    policy: PolicySettings
    observation_space: Mapping[str, Any]  # as `space_data` describes a space
    action_space: Mapping[str, Any]
    env_args: Mapping[str, Any] = field(default_factory=dict)
    physics: str | None = None  # this and the next three: models of the racer only
    observation_layout: str | None = None
    track: str | None = None
    track_digest: str | None = None  # of the road that `track` was in training; an id may get another road later
    action_repeat: int = 1
    stack: int = 1
    lap_fourier: int = 0
    clip_obs: float | None = None  # None: observations are not normalized
    trained_on: str = ""

    def __post_init__(self) -> None:
        if not _ENVIRONMENT.fullmatch(self.environment):  # it is printed, so control characters are refused too
            raise ConfigError(f"environment must be a Gymnasium id, got {self.environment!a:.80}.")
        if self.is_racer and self.env_args:
            raise ConfigError(f"env_args: a model of {RACER_ID} has none, got {sorted(self.env_args)!a:.80}.")
        check_repeat(self.action_repeat)
        _ = self.racer_observations  # raises where a number is out of range
        if self.clip_obs is not None and not self.clip_obs > 0.0:
            raise ConfigError(f"clip_obs must be more than zero, got {self.clip_obs:g}.")
        _ = self.spaces

    @property
    def is_racer(self) -> bool:
        """Whether this is a model of the racer."""
        return self.environment == RACER_ID

    @cached_property
    def spaces(self) -> tuple[Space[Any], Space[Any]]:
        """Observation space, stack and Fourier features included, and action space."""
        return space_from_data(self.observation_space), space_from_data(self.action_space)

    @property
    def observation(self) -> ObservationName:
        """The name of the observation layout; a model of an unknown one is refused when it is read."""
        names: dict[str | None, ObservationName] = {layout: name for name, layout in OBSERVATION_LAYOUTS.items()}
        return names.get(self.observation_layout, DEFAULT_OBSERVATION)

    @property
    def racer_observations(self) -> Box:
        """The racer's observation space with this stack, Fourier features and layout."""
        return stacked_observation_space(self.stack, self.lap_fourier, self.observation)

    @property
    def raw_observations(self) -> Space[Any]:
        """What the environment gives: for the racer the last `stack` observations, without the Fourier features."""
        return stacked_observation_space(self.stack, 0, self.observation) if self.is_racer else self.spaces[0]

    def as_plain(self) -> dict[str, Any]:
        """The card as plain JSON data."""
        plain = asdict(self)
        for name in ("net_arch", "critic_arch"):
            widths = plain["policy"][name]
            plain["policy"][name] = list(widths) if widths is not None else None
        return plain


@dataclass(frozen=True)
class ModelFile:
    """The content of a model file: the card, the policy's weights, and the normalizer's statistics if it has one."""

    path: Path
    card: ModelCard
    weights: Arrays
    normalizer: Arrays


def read_model(path: Path) -> ModelFile:
    """The model in a file, verified and checked to fit this version's physics and observations."""
    archive = read_archive(path, only=(POLICY_GROUP, NORMALIZER_GROUP))
    card = card_of(archive.about, path)
    refuse_foreign(card, path)
    normalizer = archive.tensors.get(NORMALIZER_GROUP, {})
    weights = archive.tensors.get(POLICY_GROUP)
    if not weights:
        raise ModelError(f"{path}: holds no policy. Use another model.")
    if card.clip_obs is not None and not {"obs_mean", "obs_var"} <= set(normalizer):
        raise ModelError(
            f"{path}: was trained on normalized observations, but their statistics are missing. Use another model."
        )
    model = ModelFile(path, card, weights, normalizer)
    refuse_bad_numbers(model)
    return model


def write_model(path: Path, model: ModelFile) -> None:
    """Write a model file that can be evaluated, driven with and exported; training cannot resume from it."""
    groups = {POLICY_GROUP: model.weights, NORMALIZER_GROUP: model.normalizer}
    about = {"card": model.card.as_plain(), "step": model.card.step}
    write_archive(path, Archive(about, {}, {name: arrays for name, arrays in groups.items() if arrays}))


def card_of(about: Mapping[str, Any], path: Path) -> ModelCard:
    """The card in a file's manifest; a model of the racer behind a bridge is a model of the racer."""
    card = about.get("card")
    if not isinstance(card, Mapping):
        raise ModelError(f"{path}: has no model card. Is it another program's file?")
    try:
        found = build(ModelCard, card, "card", snake_case)
        return replace(found, environment=RACER_ID) if found.environment == REMOTE_RACER_ID else found
    except (ConfigError, TypeError) as error:
        raise ModelError(f"{path}: cannot read its card ({error}). Was it made by another version of hotlap?") from None


def refuse_foreign(card: ModelCard, path: Path) -> None:
    """Refuse a model of the racer that was trained with other physics or another observation layout."""
    if not card.is_racer:
        return
    if card.physics != PHYSICS_VERSION:
        raise ModelError(
            f"{path}: was trained with physics {card.physics}; this version has {PHYSICS_VERSION}. Train it again, or "
            "use the version of hotlap it was made with."
        )
    if card.observation_layout not in OBSERVATION_LAYOUTS.values():
        raise ModelError(
            f"{path}: was trained with observation layout {card.observation_layout}; this version has "
            f"{' and '.join(OBSERVATION_LAYOUTS.values())}. Train it again, or use the version of hotlap it was made "
            "with."
        )


def refuse_other_spaces(
    model: ModelFile,
    observations: Space[Any],
    actions: Space[Any],
    remedy: str,
    *,
    seen_as: Callable[[Space[Any]], Space[Any]] = lambda space: space,
) -> None:
    """Refuse an environment whose actions differ from the model's, or whose observations differ in more than bounds.

    `seen_as` gives the observations that the network sees; those of the racer are seen as they are.
    """
    saved_observations, saved_actions = model.card.spaces
    is_seen_alike = same_to_policy(seen_as(observations), seen_as(saved_observations))
    for what, saved, given, is_same in (
        ("observations", saved_observations, observations, is_seen_alike),
        ("actions", saved_actions, actions, space_data(actions) == space_data(saved_actions)),
    ):
        if not is_same:
            raise ModelError(
                f"{model.path}: its {what} are {describe_space(saved)}; this environment's are "
                f"{describe_space(given)}. {remedy}"
            )


def refuse_bad_numbers(model: ModelFile) -> None:
    """Refuse weights or statistics with which the policy would give no action."""
    card = model.card
    refuse_other_types(model.path, model.weights, model.normalizer)
    refuse_not_finite(model.path, {**model.weights, **model.normalizer})
    refuse_bad_statistics(model.path, model.normalizer)
    refuse_overflow(
        model.path,
        model.weights,
        card.algorithm,
        activation=card.policy.activation,
        observations=card.spaces[0],
        clip_obs=card.clip_obs,
        statistics=model.normalizer,
    )
