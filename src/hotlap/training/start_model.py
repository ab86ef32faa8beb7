"""Starts a run from the weights of a trained model instead of random ones."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from hotlap.drivers.driver import BUILT_IN
from hotlap.envs.registration import REMOTE_RACER_ID
from hotlap.envs.spaces import ObservationName
from hotlap.errors import ConfigError, StateError, one_line
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import ModelCard, PolicyArrays, read_model
from hotlap.runs.find_driver import find_driver_file
from hotlap.runs.run_config import RunConfig, in_process
from hotlap.sim.opponent_view import (
    COLUMNS_PER_OPPONENT,
    NUM_OPPONENT_VIEW,
    NUM_OPPONENTS,
    OPPONENT_ALONGSIDE,
    OPPONENT_PRESENCE,
)
from hotlap.tracks.registry import DEFAULT_TRACK
from hotlap.training.learners import Learner

_SHAPE = ("net_arch", "activation", "critic_arch", "action_head")
# Of the columns of other cars, for a model that has never seen any. The statistics of such a model are of hundreds of
# millions of observations, so they hardly change any more.
OPPONENT_VARIANCE, FLAG_VARIANCE = 0.04, 0.25
_ADDS_OPPONENTS: Mapping[ObservationName, ObservationName] = {"road": "race", "road-2": "race-2"}
_REMEDY = "`hotlap train --start-model` takes the settings that fit from the model."


def start_options(driver: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, with the settings that make a learner fit the model of a driver, run or file.

    They are the algorithm, the environment, what the policy sees, how often it decides, and the shape of its networks.
    """
    if driver in BUILT_IN:
        raise ConfigError(f"--start-model {driver}: this driver has no weights. Give a run, a model file or champion.")
    path = find_driver_file(driver, asked.get("racer.track") or DEFAULT_TRACK)
    model = read_model(path)
    options = _options_of(model.card)
    if model.card.is_racer and asked.get("env") == REMOTE_RACER_ID:
        options["env"] = REMOTE_RACER_ID
    for name in ("algo", "env"):
        if asked.get(name) not in (None, options[name]):
            raise ConfigError(f"--{name} {asked[name]!s:.80}: the model {path} is of {options[name]}. Leave one out.")
    return {**asked, **options, "start_model": driver, "start_weights": tensors_digest(model.weights)}


def _options_of(card: ModelCard) -> dict[str, Any]:
    options: dict[str, Any] = {
        "algo": card.algorithm,
        "env": card.environment,
        "policy": {name: value for name, value in asdict(card.policy).items() if value is not None},
        "normalize.obs": card.clip_obs is not None,
        "normalize.clip_obs": card.clip_obs,
    }
    if card.env_args:
        options["env_args"] = dict(card.env_args)
    if card.is_racer:
        options |= {f"racer.{name}": getattr(card, name) for name in ("action_repeat", "stack", "lap_fourier")}
        options["racer.observation"] = card.observation
    return options


def load_start_model(config: RunConfig, learner: Learner) -> None:
    """Give the learner the weights and the normalizer of the run's start model, if it has one."""
    if not config.start_model:
        return
    model = read_model(find_driver_file(config.start_model, config.racer.track))
    _refuse_other_settings(config, model.card)
    digest = tensors_digest(model.weights)
    if config.start_weights not in ("", digest):
        raise ConfigError(
            f"start_model {config.start_model}: its weights are not those that start_weights names "
            f"({digest[:12]}…, not {config.start_weights[:12]}…). Give the right file."
        )
    policy = PolicyArrays(model.weights, model.normalizer)
    if _ADDS_OPPONENTS.get(model.card.observation) == config.racer.observation:
        policy = _with_opponents(policy)
    try:
        learner.load_policy(policy)
    except (StateError, KeyError, RuntimeError) as error:
        raise ConfigError(
            f"start_model {config.start_model}: does not fit this run ({one_line(error)}). {_REMEDY}"
        ) from None


def _with_opponents(policy: PolicyArrays) -> PolicyArrays:
    """A policy that sees the road as one that also has the columns of other cars, and pays no attention to them yet.

    It must have no Fourier features, which would come after these columns.
    """
    weights, normalizer = dict(policy.weights), dict(policy.normalizer)
    for net in ("policy_net", "value_net"):
        name = f"mlp_extractor.{net}.0.weight"
        weights[name] = np.pad(weights[name], ((0, 0), (0, NUM_OPPONENT_VIEW)))
    if "obs_mean" in normalizer:
        variances = np.full((NUM_OPPONENTS, COLUMNS_PER_OPPONENT), OPPONENT_VARIANCE)
        variances[:, [OPPONENT_PRESENCE, OPPONENT_ALONGSIDE]] = FLAG_VARIANCE
        normalizer["obs_mean"] = np.pad(normalizer["obs_mean"], (0, NUM_OPPONENT_VIEW))
        normalizer["obs_var"] = np.concatenate([normalizer["obs_var"], variances.flatten()])
    return PolicyArrays(weights, normalizer)


def _refuse_other_settings(config: RunConfig, card: ModelCard) -> None:
    """Name the first setting in which a run differs from the model it starts from."""
    options = {name: value for name, value in _options_of(card).items() if name not in ("policy", "env_args")}
    config = in_process(config)
    if _ADDS_OPPONENTS.get(card.observation) == config.racer.observation and not card.lap_fourier:
        options["racer.observation"] = config.racer.observation
    options |= {f"policy.{name}": getattr(card.policy, name) for name in _SHAPE}
    for name, its in options.items():
        own: Any = config
        for part in name.split("."):
            own = getattr(own, part)
        if its not in (None, own):
            raise ConfigError(f"start_model {config.start_model}: its {name} is {its}, this run's {own}. {_REMEDY}")
