"""Exchange with plain stable-baselines3, whose files are pickles: written for its `load`, read without running them."""

import io
import json
import logging
import pickle
import sys
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import A2C, PPO, SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from hotlap.atomic_files import write_atomically
from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.envs.spaces import OBSERVATION_LAYOUT
from hotlap.errors import ConfigError, InputFileError, ModelError, one_line
from hotlap.models.archive import Archive, tensors_digest, write_archive
from hotlap.models.exchange import spaces_of
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP, Arrays, ModelCard, ModelFile
from hotlap.models.policy import VARIANCE_FLOOR, LearnedPolicy, policy_arguments, policy_kind
from hotlap.models.sb3_text import check_space, find_algorithm, find_count, find_policy
from hotlap.sim.version import PHYSICS_VERSION

MAX_MEMBER_BYTES = 1 << 30  # of a file inside a model, and of a normalizer: what is larger is neither

_PLAIN: dict[str, type[BaseAlgorithm]] = {"ppo": PPO, "a2c": A2C, "sac": SAC}
_log = logging.getLogger(__name__)


# --- for stable-baselines3 to load ---


def export_sb3(model: ModelFile, path: Path) -> list[Path]:
    """Write a model for `PPO.load`, `A2C.load` or `SAC.load`, and its normalizer for `VecNormalize.load`.

    `path` may end in `.zip` or not; the normalizer goes to `…_vecnormalize.pkl` beside it. Both hold the library's own
    classes only and are set for playing: the hyperparameters are the library's defaults, the optimizer is new, and the
    normalizer neither learns nor touches rewards. Gives back what was written.
    """
    observations, actions = spaces_of(model.card)
    LearnedPolicy.from_file(model, observations, actions)  # refuses weights and spaces that do not go together
    env = DummyVecEnv([lambda: _Still(observations, actions)])
    zipped, pickled = sb3_names(path)
    written = io.BytesIO()
    _plain_learner(model, env).save(written)
    write_atomically(zipped, written.getvalue())
    if model.card.clip_obs is None:
        if pickled.exists():
            _log.warning("%s: belongs to another model; this one sees observations as they are.", pickled)
        return [zipped]
    write_atomically(pickled, pickle.dumps(_plain_normalizer(model, env, model.card.clip_obs)))
    return [zipped, pickled]


def sb3_names(path: Path) -> tuple[Path, Path]:
    """Where the model and its normalizer go."""
    stem = path.name.removesuffix(".zip")
    return path.with_name(f"{stem}.zip"), path.with_name(f"{stem}_vecnormalize.pkl")


class _Still(gym.Env[Any, Any]):
    """An environment that has spaces and nothing else, which is all that building a learner takes."""

    def __init__(self, observations: spaces.Space[Any], actions: spaces.Space[Any]) -> None:
        self.observation_space, self.action_space = observations, actions


def _plain_learner(model: ModelFile, env: DummyVecEnv) -> BaseAlgorithm:
    card = model.card
    settings: dict[str, Any] = {
        "policy": policy_kind(card.policy, env.observation_space),
        "env": env,
        "policy_kwargs": policy_arguments(card.policy, card.algorithm),
        "device": "cpu",
        "_init_setup_model": False,
    }
    learner = _PLAIN[card.algorithm](**settings)
    # A replay buffer of the default size is never filled here, but it is made, and may not fit into memory.
    buffer_size = getattr(learner, "buffer_size", None)
    if buffer_size is not None:
        learner.buffer_size = 1  # type: ignore[attr-defined]
    with torch.random.fork_rng(devices=[]):  # building a network draws first weights; nobody's generator may notice
        learner._setup_model()
    if buffer_size is not None:
        learner.buffer_size = buffer_size  # type: ignore[attr-defined]
    learner.policy.load_state_dict({name: torch.from_numpy(array) for name, array in model.weights.items()})
    learner.num_timesteps = card.step
    return learner


def _plain_normalizer(model: ModelFile, env: DummyVecEnv, clip_obs: float) -> VecNormalize:
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


# --- from stable-baselines3 ---


def read_sb3(
    path: Path, environment: str, *, vecnormalize: Path | None = None, seen: Mapping[str, Any] | None = None
) -> ModelFile:
    """A model that plain stable-baselines3 saved, as one of ours; `write_model` makes a file of it.

    It says neither which environment it was trained in nor, for the racer, how that was shown to it: `seen` may have
    `track`, `action_repeat`, `stack` and `lap_fourier`. Nothing in the file is run: the weights are read by torch's
    restricted reader, the rest from the text that the library keeps beside its pickles.
    """
    members = _read_zip(path)
    data, weights = _parse_data(path, members["data"]), _parse_weights(path, members["policy.pth"])
    clip_obs, normalizer = (None, {}) if vecnormalize is None else _read_normalizer(vecnormalize)
    if vecnormalize is None and data.get("_last_original_obs") is not None:
        _log.warning("%s was trained behind a VecNormalize. If that changed observations, give --vecnormalize.", path)
    card = ModelCard(
        algorithm=find_algorithm(path, data),
        environment=RACER_ID if environment == REMOTE_RACER_ID else environment,
        seed=find_count(data, "seed"),
        step=find_count(data, "num_timesteps"),
        config_digest="",  # there is no configuration of ours
        weights_digest=tensors_digest(weights),
        policy=find_policy(path, data),
        observation_space="",  # these two are known when there is a card
        action_space="",
        clip_obs=clip_obs,
        trained_on=f"stable-baselines3 {members['_stable_baselines3_version'].decode('ascii', 'replace').strip():.40}",
        **_racer_fields(environment, seen or {}),
    )
    return _fitted(ModelFile(path, card, weights, normalizer), data)


def _fitted(model: ModelFile, data: Mapping[str, Any]) -> ModelFile:
    """The model with its environment's spaces on the card, if they are those that it was trained with."""
    card = model.card
    observations, actions = spaces_of(card)
    check_space(model.path, card, "observations", data, observations)
    check_space(model.path, card, "actions", data, actions)
    kind = policy_kind(card.policy, observations)
    if kind == "CnnPolicy" and not any(".cnn." in name for name in model.weights):
        kind = "MlpPolicy"  # was asked for, though it sees pictures
    policy = replace(card.policy, kind=kind)
    card = replace(card, policy=policy, observation_space=str(observations), action_space=str(actions))
    model = replace(model, card=card)
    LearnedPolicy.from_file(model, observations, actions)  # refuses what does not go together
    return model


def write_model(path: Path, model: ModelFile) -> None:
    """Write a model file of ours: it can be evaluated, driven with and exported, but no run goes on from it."""
    groups = {POLICY_GROUP: model.weights, NORMALIZER_GROUP: model.normalizer}
    about = {"card": model.card.as_plain(), "step": model.card.step}
    write_archive(path, Archive(about, {}, {name: arrays for name, arrays in groups.items() if arrays}))


def _racer_fields(environment: str, seen: Mapping[str, Any]) -> dict[str, Any]:
    if environment in (RACER_ID, REMOTE_RACER_ID):
        return {"physics": PHYSICS_VERSION, "observation_layout": OBSERVATION_LAYOUT, **seen}
    if seen:
        raise ConfigError(f"{', '.join(seen)}: belongs to {RACER_ID}, and the model is of {environment!s:.80}.")
    return {}


def _read_zip(path: Path) -> dict[str, bytes]:
    """The members of a model that are needed, read whole."""
    found = {}
    try:
        with zipfile.ZipFile(path) as archive:
            if "manifest.json" in archive.namelist():
                raise ModelError(f"{path}: is a model of Hotlap already. Use it as it is.")
            for name in ("data", "policy.pth", "_stable_baselines3_version"):
                if archive.getinfo(name).file_size > MAX_MEMBER_BYTES:
                    raise ModelError(f"{path}: {name} in it is too large for a model.")
                found[name] = archive.read(name)
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as error:
        raise _no_model(path, error) from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror or error}). Check the path.") from None
    return found


def _no_model(path: Path, error: Exception) -> ModelError:
    return ModelError(f"{path}: is no model that stable-baselines3 saved ({one_line(error)}). Take another file.")


def _parse_data(path: Path, text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _no_model(path, error) from None
    if not isinstance(data, dict):
        raise _no_model(path, TypeError("its data are no object"))
    return data


def _parse_weights(path: Path, content: bytes) -> Arrays:
    try:
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        weights: Arrays = {str(name): tensor.detach().numpy().copy() for name, tensor in found.items()}
    except Exception as error:  # a damaged or hostile file may raise anything
        raise _no_model(path, error) from None
    _refuse_unbounded(path, weights)
    return weights


def _refuse_unbounded(path: Path, arrays: Arrays) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise ModelError(f"{path}: {name!r:.80} is not finite; its training went wrong. Take an earlier one.")


# --- the normalizer's pickle, read without running it ---


class _Inert:
    """Stands for whatever a pickle wants made: keeps the state it is given and does nothing."""

    state: Any = None

    def __init__(self, *_: Any, **__: Any) -> None:
        """Take anything."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


# How NumPy has arrays and numbers rebuilt, by the names that any of its versions has for these functions.
_REBUILDERS: dict[str, Any] = {
    "ndarray": np.ndarray,
    "dtype": np.dtype,
    "_reconstruct": np.empty(0).__reduce__()[0],
    "scalar": np.float64(0.0).__reduce__()[0],
    "_frombuffer": np.empty(1).__reduce_ex__(5)[0],
}


class _Reader(pickle.Unpickler):
    """Rebuilds plain data and arrays; of everything else only the state is kept."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name in the pickle means: never what its maker had in mind, unless it is an array."""
        return _REBUILDERS.get(name, _Inert) if module.partition(".")[0] == "numpy" else _Inert


def _read_normalizer(path: Path) -> tuple[float | None, Arrays]:
    """The limit of a saved VecNormalize's observations, None where it leaves them alone, and its statistics."""
    try:
        if path.stat().st_size > MAX_MEMBER_BYTES:
            raise ModelError(f"{path}: is too large for a normalizer.")
        state = _Reader(io.BytesIO(path.read_bytes())).load().state
        arrays: Arrays = {}
        for name, place in (("obs", "obs_rms"), ("return", "ret_rms")):
            if name == "return" or state["norm_obs"]:
                statistics = state[place].state
                arrays |= {f"{name}_{key}": np.array(statistics[key], np.float64) for key in ("mean", "var", "count")}
        # A limit of infinity, which JSON does not have, is none to a number either way.
        clip_obs, epsilon = min(float(state["clip_obs"]), sys.float_info.max), float(state["epsilon"])
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except ModelError:
        raise
    except Exception as error:  # a damaged or hostile file may raise anything
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise ModelError(f"{path}: is no VecNormalize over plain observations ({reason}). Take another file.") from None
    if epsilon != VARIANCE_FLOOR:
        raise ModelError(f"{path}: its epsilon is {epsilon:g}; Hotlap's normalizers have {VARIANCE_FLOOR:g}.")
    _refuse_unbounded(path, arrays)
    return (clip_obs if state["norm_obs"] else None), arrays
