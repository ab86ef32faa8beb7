"""A racer's features and normalizer as arguments of stable-baselines3's policies, and back."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

from hotlap.config import build, snake_case
from hotlap.envs.spaces import num_observations
from hotlap.errors import ConfigError
from hotlap.models.actor_layers import VARIANCE_FLOOR
from hotlap.models.model_file import Arrays, ModelFile
from hotlap.models.sb3_features import RacerFeatures
from hotlap.sim.world import OBS_PROGRESS

CLASS, ARGUMENTS = "features_extractor_class", "features_extractor_kwargs"


@dataclass(frozen=True)
class RacerAbout:
    """What a file of stable-baselines3 does not say about a racer, by the names of the card."""

    physics: str
    observation_layout: str
    track: str | None
    track_digest: str | None
    action_repeat: int
    stack: int
    lap_fourier: int
    action_head: Literal["linear", "pedal_axis"]


@dataclass(frozen=True)
class FoundFeatures:
    """What an import reads from the features of an exported racer."""

    about: RacerAbout
    clip_obs: float | None
    normalizer: Arrays


def feature_arguments(model: ModelFile) -> dict[str, Any]:
    """The racer's features and normalizer as policy arguments; plain numbers and text but for the class."""
    card = model.card
    known = {**card.as_plain(), "action_head": card.policy.action_head}
    normalizer = None
    if card.clip_obs is not None:
        normalizer = {name: model.normalizer[f"obs_{name}"].tolist() for name in ("mean", "var")}
        normalizer |= {"floor": VARIANCE_FLOOR, "clip": card.clip_obs}
    arguments = {
        "lap_fourier": card.lap_fourier,
        "progress": (card.stack - 1) * num_observations(card.observation) + OBS_PROGRESS,
        "normalizer": normalizer,
        "about": {field.name: known[field.name] for field in fields(RacerAbout)},
    }
    return {CLASS: RacerFeatures, ARGUMENTS: arguments}


def find_features(policy_arguments: Mapping[str, Any]) -> FoundFeatures | None:
    """What `feature_arguments` wrote, None if there is nothing of the kind; ConfigError if it was changed."""
    # The class came with the file, so it is another one of the same name.
    if getattr(policy_arguments.get(CLASS), "__qualname__", "") != RacerFeatures.__qualname__:
        return None
    try:
        arguments = dict(policy_arguments[ARGUMENTS])
        about = build(RacerAbout, arguments["about"], "about", snake_case)
        given = arguments["normalizer"]
        if given is None:
            return FoundFeatures(about, None, {})
        if given["floor"] != VARIANCE_FLOOR:
            raise ConfigError(f"normalizer: its floor must be {VARIANCE_FLOOR:g}, got {given['floor']!r:.40}.")
        arrays = {f"obs_{name}": np.array(given[name], np.float64) for name in ("mean", "var")}
        return FoundFeatures(about, float(given["clip"]), arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(f"{ARGUMENTS}: are not those that an export writes ({error!s:.80}).") from None


def card_fields(about: RacerAbout) -> dict[str, Any]:
    """The fields of the card that an export remembers."""
    return {name: value for name, value in asdict(about).items() if name != "action_head"}
