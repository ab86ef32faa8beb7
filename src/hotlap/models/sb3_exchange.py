"""Exchange with plain stable-baselines3, whose files are pickles: the only module that writes or loads them."""

import io
import json
import logging
import pickle
import sys
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle  # type: ignore[import-untyped]
import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.atomic_files import write_atomically
from hotlap.config import build, snake_case
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.spaces import DEFAULT_OBSERVATION, OBSERVATION_LAYOUTS, action_space
from hotlap.errors import ConfigError, HotlapError, InputFileError, ModelError, one_line
from hotlap.models import sb3_features
from hotlap.models.action_check import refuse_bad_actions, sample_observations
from hotlap.models.actor_layers import VARIANCE_FLOOR
from hotlap.models.algorithms import ALGORITHMS, Algorithm
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import (
    Arrays,
    ModelCard,
    ModelFile,
    PolicySettings,
    refuse_bad_numbers,
    refuse_foreign,
    refuse_other_spaces,
)
from hotlap.models.policy import (
    ACTIVATIONS,
    LearnedPolicy,
    policy_arguments,
    policy_kind,
)
from hotlap.models.sb3_racer import (
    ARGUMENTS,
    CLASS,
    FoundFeatures,
    card_fields,
    feature_arguments,
    find_features,
)
from hotlap.models.space_data import space_data
from hotlap.sim.version import PHYSICS_VERSION

# Arguments of stable-baselines3's policies that do not change which action a trained policy takes.
_IRRELEVANT_ARGUMENTS = {
    *("ortho_init", "optimizer_class", "optimizer_kwargs"),
    *("use_sde", "full_std", "use_expln", "clip_mean"),  # all belong to gSDE, which is refused
}
_log = logging.getLogger(__name__)
_Loaded = TypeVar("_Loaded")


# --- export ---


def export_sb3(model: ModelFile, path: Path) -> list[Path]:
    """Write a model for `PPO.load`, `A2C.load` or `SAC.load`.

    A model of the racer takes the environment's observations: features and normalizer are inside. That of another
    environment has its normalizer in a second file, for `VecNormalize.load`. `path` may end in `.zip` or not; the
    normalizer goes to `…_vecnormalize.pkl` beside it. Neither file needs Hotlap to be loaded. They are made for
    evaluation: hyperparameters are stable-baselines3's defaults, the optimizer is new, and the normalizer neither
    updates its statistics nor changes rewards. Returns the files written.
    """
    LearnedPolicy.from_file(model)  # refuses weights that do not fit the card
    env = _placeholder_env(model.card.raw_observations, model.card.spaces[1])
    zip_path, pickle_path = sb3_names(path)
    learner = _make_learner(model, env)
    _check_actions(model, learner)
    content = io.BytesIO()
    cloudpickle.register_pickle_by_value(sb3_features)  # the file holds the code of the class, not its name
    try:
        learner.save(content)
    finally:
        cloudpickle.unregister_pickle_by_value(sb3_features)
    write_atomically(zip_path, content.getvalue())
    if model.card.clip_obs is None or model.card.is_racer:
        if pickle_path.exists():
            _log.warning("%s: belongs to another model; this one needs no such file.", pickle_path)
        return [zip_path]
    write_atomically(pickle_path, pickle.dumps(_make_normalizer(model, env, model.card.clip_obs)))
    return [zip_path, pickle_path]


def _check_actions(model: ModelFile, learner: Any) -> None:
    """Refuse a model that gives no action, or one out of bounds, with its own normalizer before it or inside."""
    if model.card.is_racer:
        actions, _ = learner.predict(sample_observations(model), deterministic=True)
    else:
        actions = LearnedPolicy.from_file(model).act(sample_observations(model))
    refuse_bad_actions(model, actions)


def sb3_names(path: Path) -> tuple[Path, Path]:
    """The files of the model and of its normalizer."""
    stem = path.name.removesuffix(".zip")
    return path.with_name(f"{stem}.zip"), path.with_name(f"{stem}_vecnormalize.pkl")


class _PlaceholderEnv(gym.Env[Any, Any]):
    """An environment with spaces and no behaviour, which is all that building a learner needs."""

    def __init__(self, observations: spaces.Space[Any], actions: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observations, actions


def _placeholder_env(observations: spaces.Space[Any], actions: spaces.Space[Any]) -> DummyVecEnv:
    return DummyVecEnv([lambda: _PlaceholderEnv(observations, actions)])


def _make_learner(model: ModelFile, env: DummyVecEnv) -> Any:
    card = model.card
    algorithm = ALGORITHMS[card.algorithm]
    settings: dict[str, Any] = {
        "policy": policy_kind(card.policy, env.observation_space),
        "env": env,
        "policy_kwargs": {
            **policy_arguments(card.policy, card.algorithm),
            **(feature_arguments(model) if card.is_racer else {}),
        },
        "device": "cpu",
        "_init_setup_model": False,
    }
    learner: Any = algorithm.sb3_class(**settings)
    if algorithm.is_off_policy:  # a replay buffer of the default size might not fit into memory
        default_size, learner.buffer_size = learner.buffer_size, 1
    with torch.random.fork_rng(devices=[]):  # initial weights are random; the caller's generator must not change
        learner._setup_model()
    if algorithm.is_off_policy:
        learner.buffer_size = default_size
    learner.policy.load_state_dict({name: torch.from_numpy(array) for name, array in model.weights.items()})
    learner.num_timesteps = card.step
    return learner


def _make_normalizer(model: ModelFile, env: DummyVecEnv, clip_obs: float) -> VecNormalize:
    normalizer = VecNormalize(env, training=False, norm_reward=False, clip_obs=clip_obs, epsilon=VARIANCE_FLOOR)
    found: tuple[tuple[str, Any], ...] = (("obs", normalizer.obs_rms), ("return", normalizer.ret_rms))
    for name, statistics in found:
        _fill(statistics, name, model.normalizer)
    return normalizer


def _fill(statistics: RunningMeanStd, name: str, arrays: Arrays) -> None:
    if f"{name}_mean" in arrays:
        statistics.mean, statistics.var = arrays[f"{name}_mean"], arrays[f"{name}_var"]
    if f"{name}_count" in arrays:
        statistics.count = float(arrays[f"{name}_count"])


# --- import ---


def read_sb3(
    path: Path, environment: str, *, vecnormalize: Path | None = None, racer: Mapping[str, Any] | None = None
) -> ModelFile:
    """A model that plain stable-baselines3 saved, converted to one of ours. It unpickles: use it on trusted files only.

    A racer that `export_sb3` wrote says what it is. Any other file names neither its environment nor, for the racer,
    the track or how observations were prepared: `racer` may hold `track`, `action_repeat`, `stack`, `lap_fourier` and
    `observation_layout`.
    """
    racer_fields = _racer_fields(environment, racer or {})
    algorithm, version = _identify(path)
    learner = _load(path, "a model of stable-baselines3", lambda: _load_learner(path, algorithm))
    observations, actions = learner.observation_space, learner.action_space
    clip_obs, normalizer = None, Arrays()
    features = _find_features(path, learner, environment, vecnormalize)
    if features is not None:
        racer_fields = _merge_fields(card_fields(features.about), racer or {})
        clip_obs, normalizer = features.clip_obs, features.normalizer
    elif vecnormalize is not None:
        env = _placeholder_env(observations, actions)
        clip_obs, normalizer = _load(vecnormalize, "a VecNormalize", lambda: _statistics(vecnormalize, env))
    elif getattr(learner, "_last_original_obs", None) is not None:
        _log.warning("%s: was trained with a VecNormalize. If it normalized observations, pass --vecnormalize.", path)
    weights: Arrays = {name: tensor.detach().numpy().copy() for name, tensor in learner.policy.state_dict().items()}
    card = ModelCard(
        algorithm=algorithm.name,
        environment=RACER_ID if environment == REMOTE_RACER_ID else environment,
        seed=learner.seed or 0,
        step=learner.num_timesteps,
        config_digest="",  # it has no configuration of ours
        weights_digest=tensors_digest(weights),
        policy=_policy_settings(path, algorithm, learner, features),
        observation_space=space_data(observations),
        action_space=space_data(actions),
        clip_obs=clip_obs,
        trained_on=f"stable-baselines3 {version:.40}",
        **racer_fields,
    )
    if features is not None:
        refuse_foreign(card, path)
        remedy = "Leave out --stack and --observation."
        refuse_other_spaces(ModelFile(path, card, weights, normalizer), card.raw_observations, action_space(), remedy)
        card = replace(card, observation_space=space_data(card.racer_observations))
    model = ModelFile(path, card, weights, normalizer)
    refuse_bad_numbers(model)
    if card.is_racer:
        remedy = "Name its environment (--env), or its --observation, --stack and --lap-fourier."
        refuse_other_spaces(model, card.racer_observations, action_space(), remedy)
    LearnedPolicy.from_file(model)  # refuses a normalizer that does not fit
    return model


def _find_features(path: Path, learner: Any, environment: str, vecnormalize: Path | None) -> FoundFeatures | None:
    """What an exported racer says about itself; None for any other model."""
    try:
        found = find_features(learner.policy_kwargs or {})
    except ConfigError as error:
        raise ModelError(f"{path}: {error} Export the model again.") from None
    if found is not None and environment not in (RACER_ID, REMOTE_RACER_ID):
        raise ConfigError(f"{path}: is a model of {RACER_ID}. Leave out --env.")
    if found is not None and vecnormalize is not None:
        raise ConfigError(f"{path}: has its normalizer inside. Leave out --vecnormalize.")
    return found


def _merge_fields(told: dict[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The racer's fields of the card, where what the user gives comes first; another track has another road."""
    is_other_track = "track" in given and given["track"] != told["track"]
    return {**told, **({"track_digest": None} if is_other_track else {}), **given}


def _identify(path: Path) -> tuple[Algorithm, str]:
    """The algorithm of a saved model and the version that saved it, from the JSON in it; nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as zipped:
            if "manifest.json" in zipped.namelist():
                raise ModelError(f"{path}: is a model of Hotlap already. Use it as it is.")
            data = json.loads(zipped.read("data"))
            version = zipped.read("_stable_baselines3_version").decode("ascii", "replace").strip()
        module = data["policy_class"]["__module__"]
    except HotlapError:
        raise
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except Exception as error:  # a damaged file may raise anything
        raise _not_loaded(path, "a model of stable-baselines3", error) from None
    if module == "stable_baselines3.sac.policies":
        return ALGORITHMS["sac"], version
    if module == "stable_baselines3.common.policies":  # used by both PPO and A2C
        return ALGORITHMS["ppo" if "clip_range" in data else "a2c"], version
    raise ModelError(f"{path}: its policy is from {module!s:.80}; only policies of PPO, A2C and SAC can be imported.")


def _load(path: Path, what: str, load: Callable[[], _Loaded]) -> _Loaded:
    """Load a pickle; whatever stable-baselines3 raises becomes one line about this file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about settings that are not used
            return load()
    except HotlapError:
        raise
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except Exception as error:  # unpickling may raise anything
        raise _not_loaded(path, what, error) from None


def _not_loaded(path: Path, what: str, error: Exception) -> ModelError:
    reason = f"{type(error).__name__}: {one_line(error)}"
    return ModelError(f"{path}: cannot be loaded as {what} ({reason}). Check the file.")


def _load_learner(path: Path, algorithm: Algorithm) -> Any:
    # Off-policy algorithms allocate their replay buffer when they are loaded.
    custom_objects = {"buffer_size": 1} if algorithm.is_off_policy else None
    return algorithm.sb3_class.load(path, device="cpu", custom_objects=custom_objects)


def _policy_settings(path: Path, algorithm: Algorithm, learner: Any, features: FoundFeatures | None) -> PolicySettings:
    """The shape of the networks; a policy that Hotlap cannot represent is refused."""
    given: dict[str, Any] = dict(learner.policy_kwargs or {})
    known = {"net_arch", "activation_fn", "log_std_init", *((CLASS, ARGUMENTS) if features else ())}
    unsupported = sorted(set(given) - _IRRELEVANT_ARGUMENTS - known)
    if learner.use_sde:
        unsupported.append("use_sde")
    if unsupported:
        raise ModelError(f"{path}: its policy uses {', '.join(unsupported):.80}, which Hotlap does not support.")
    kinds = {policy_class: kind for kind, policy_class in algorithm.policies.items()}
    if type(learner.policy) not in kinds:
        raise ModelError(f"{path}: its policy is of class {type(learner.policy).__name__}, which cannot be imported.")
    found: dict[str, Any] = {"kind": kinds[type(learner.policy)], "log_std_init": given.get("log_std_init")}
    arch = given.get("net_arch")
    if isinstance(arch, Mapping):
        found["net_arch"], found["critic_arch"] = arch.get("pi", []), arch.get(algorithm.critic_key, [])
        if features and features.about.action_head == "pedal_axis":
            found["action_head"], found["net_arch"] = "pedal_axis", found["net_arch"][:-1]
            if found["critic_arch"] == found["net_arch"]:
                del found["critic_arch"]
    elif arch is not None:
        found["net_arch"] = arch
    if "activation_fn" in given:
        names = {activation: name for name, activation in ACTIVATIONS.items()}
        found["activation"] = names.get(given["activation_fn"], getattr(given["activation_fn"], "__name__", "unknown"))
    try:
        return build(PolicySettings, found, "policy_kwargs", snake_case)
    except ConfigError as error:
        raise ModelError(f"{path}: {error} Hotlap does not support this policy.") from None


def _racer_fields(environment: str, racer: Mapping[str, Any]) -> dict[str, Any]:
    if environment in (RACER_ID, REMOTE_RACER_ID):
        return {"physics": PHYSICS_VERSION, "observation_layout": OBSERVATION_LAYOUTS[DEFAULT_OBSERVATION], **racer}
    if racer:
        raise ConfigError(f"{', '.join(racer)}: only for {RACER_ID}, and the model is of {environment!s:.80}.")
    return {}


def _statistics(path: Path, env: DummyVecEnv) -> tuple[float | None, Arrays]:
    """`clip_obs` of a saved VecNormalize, None where it does not normalize observations, and its statistics."""
    normalizer = VecNormalize.load(str(path), env)
    found: dict[str, Any] = {"return": normalizer.ret_rms}
    if normalizer.norm_obs:
        found["obs"] = normalizer.obs_rms
    arrays: Arrays = {
        f"{name}_{key}": np.array(getattr(statistics, key), np.float64)
        for name, statistics in found.items()
        for key in ("mean", "var", "count")
    }
    if normalizer.epsilon != VARIANCE_FLOOR:
        raise ModelError(f"{path}: its epsilon is {normalizer.epsilon:g}; Hotlap supports {VARIANCE_FLOOR:g} only.")
    # JSON cannot hold infinity; the largest float does not clip either.
    return (min(float(normalizer.clip_obs), sys.float_info.max) if normalizer.norm_obs else None), arrays
