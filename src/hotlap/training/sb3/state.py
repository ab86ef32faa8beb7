"""The state of stable-baselines3's algorithms between two rollouts, captured and restored bit for bit.

Hand-made: the library's own `save` pickles, and leaves out generators and environments.
"""

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.errors import StateError
from hotlap.learning.generators import decode_generator, encode_generator
from hotlap.models.model_file import PolicyArrays
from hotlap.runs.snapshot import REPLAY_GROUP
from hotlap.runs.state_tree import Tree
from hotlap.training.sb3.algorithms import BudgetedAlgorithm, is_off_policy

# Attributes that an algorithm keeps from one rollout to the next; not every one has all of them.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining", "lr_scale")
_LAST_STEP = ("_last_obs", "_last_episode_starts", "_last_original_obs")
_REPLAY_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def capture(model: BudgetedAlgorithm, *, with_replay: bool = True) -> dict[str, Any]:
    """The state of an algorithm between two rollouts, but for its environments."""
    policy = policy_arrays(model)
    found: dict[str, Any] = {
        "learner": {
            "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
            "last_step": {name: _with_layout(getattr(model, name, None)) for name in _LAST_STEP},
            # A learned entropy coefficient is not part of the policy's weights.
            "log_ent_coef": getattr(model, "log_ent_coef", None),
        },
        "policy": policy.weights,
        "optimizers": {name: optimizer.state_dict() for name, optimizer in model.named_optimizers().items()},
        "normalizer": policy.normalizer,
        "rng": capture_generators(model),
    }
    if with_replay and is_off_policy(model):
        found[REPLAY_GROUP] = _replay_state(model)
    return found


def restore(model: BudgetedAlgorithm, saved: Mapping[str, Any]) -> None:
    """Put an algorithm into the state that `capture` returned. `restore_generators` must follow."""
    model.policy.load_state_dict(_tensors(saved["policy"]))
    normalizer = model.get_vec_normalize_env()
    if (normalizer is None) != (not saved["normalizer"]):
        raise StateError("state: either it or this run has a normalizer, and the other has none.")
    if normalizer is not None:
        _restore_normalizer(normalizer, saved["normalizer"])
    for name, optimizer in model.named_optimizers().items():
        optimizer.load_state_dict(_optimizer_state(saved["optimizers"][name]))
    for name, value in saved["learner"]["counters"].items():
        setattr(model, name, value)
    for name, value in saved["learner"]["last_step"].items():
        if value is not None:
            setattr(model, name, _from_layout(value))
    if saved["learner"]["log_ent_coef"] is not None:
        model.log_ent_coef.data.copy_(torch.as_tensor(saved["learner"]["log_ent_coef"]))  # type: ignore[attr-defined]
    if is_off_policy(model):
        _restore_replay(model, saved)


def policy_arrays(model: BudgetedAlgorithm) -> PolicyArrays:
    """The weights and the normalizer's statistics. Copies."""
    weights = {name: weight.cpu().numpy().copy() for name, weight in model.policy.state_dict().items()}
    normalizer = model.get_vec_normalize_env()
    return PolicyArrays(weights, {} if normalizer is None else normalizer_arrays(normalizer))


def load_policy(model: BudgetedAlgorithm, policy: PolicyArrays) -> None:
    """Give a new algorithm the weights of a model, and its statistics of observations where it normalizes them."""
    model.policy.load_state_dict(_tensors(policy.weights))
    env = model.get_vec_normalize_env()
    if env is not None and env.norm_obs:
        _restore_statistics(_statistics(env)["obs"], "obs", policy.normalizer)


def _tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


# --- generators ---


def capture_generators(model: BudgetedAlgorithm) -> Tree:
    """The state of the process's generators and of the one that samples actions."""
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 (stable-baselines3 uses it)
    version, numbers, gauss = random.getstate()
    found = {
        "numpy": [kind, np.asarray(keys), position, has_gauss, cached],
        "python": [version, np.array(numbers, np.uint64), gauss],
        "torch": torch.get_rng_state(),
        "actions": encode_generator(model.action_space.np_random),
    }
    if model.device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(model.device)
    return found


def restore_generators(model: BudgetedAlgorithm, saved: Tree) -> None:
    """Restore what `capture_generators` returned."""
    kind, keys, position, has_gauss, cached = saved["numpy"]
    np.random.set_state((kind, keys, int(position), int(has_gauss), float(cached)))  # noqa: NPY002
    version, numbers, gauss = saved["python"]
    random.setstate((version, tuple(int(number) for number in numbers), gauss))
    torch.set_rng_state(torch.as_tensor(saved["torch"]))
    decode_generator(saved["actions"], model.action_space.np_random)
    if "cuda" in saved and model.device.type == "cuda":  # a run may resume on another device
        torch.cuda.set_rng_state(torch.as_tensor(saved["cuda"]), model.device)


# --- parts ---


def _with_layout(value: Any) -> Tree:
    """An array, or a dict of arrays, with the order of its axes in memory.

    Image observations are channels-first for the network and channels-last in memory. A convolution over the same
    numbers in another memory layout is not bit-identical.
    """
    if value is None:
        return None
    if isinstance(value, dict):
        return {"parts": {name: _with_layout(part) for name, part in value.items()}}
    axes = np.argsort([-stride for stride in value.strides], kind="stable").tolist()
    return {"axes": axes, "array": value.transpose(axes)}


def _from_layout(saved: Tree) -> Any:
    if "parts" in saved:
        return {name: _from_layout(part) for name, part in saved["parts"].items()}
    return saved["array"].transpose(np.argsort(saved["axes"]))


def _optimizer_state(saved: Tree) -> dict[str, Any]:
    """The form torch expects: parameters by number, arrays as tensors."""
    state = {
        int(number): {
            name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value for name, value in one.items()
        }
        for number, one in saved["state"].items()
    }
    groups = [
        {name: tuple(value) if name == "betas" else value for name, value in group.items()}
        for group in saved["param_groups"]
    ]
    return {"state": state, "param_groups": groups}


# --- the normalizer ---


def normalizer_arrays(env: VecNormalize) -> dict[str, NDArray[Any]]:
    """The normalizer's statistics, by the names used in model files."""
    found: dict[str, NDArray[Any]] = {"returns": env.returns}
    for name, statistics in _statistics(env).items():
        found |= {f"{name}_mean": np.asarray(statistics.mean), f"{name}_var": np.asarray(statistics.var)}
        found[f"{name}_count"] = np.asarray(statistics.count, np.float64)
    return found


def _statistics(env: VecNormalize) -> dict[str, RunningMeanStd]:
    """Those of the returns and, where they are normalized, of the observations (never a dict of them)."""
    observations: Any = env.obs_rms if env.norm_obs else None  # without, there is no such attribute
    return {"return": env.ret_rms} | ({"obs": observations} if env.norm_obs else {})


def _restore_normalizer(env: VecNormalize, saved: Mapping[str, NDArray[Any]]) -> None:
    env.returns = saved["returns"].copy()
    for name, statistics in _statistics(env).items():
        _restore_statistics(statistics, name, saved)


def _restore_statistics(statistics: RunningMeanStd, name: str, saved: Mapping[str, NDArray[Any]]) -> None:
    mean, var = saved[f"{name}_mean"], saved[f"{name}_var"]
    expected = np.shape(statistics.mean)
    if mean.shape != expected:
        raise StateError(f"state: the normalizer's {name} has shape {mean.shape}; this run's has {expected}.")
    statistics.mean, statistics.var = mean.copy(), var.copy()
    statistics.count = float(saved[f"{name}_count"])


# --- the replay buffer ---


def replay_arrays(model: BudgetedAlgorithm) -> dict[str, NDArray[Any]]:
    """The arrays of a replay buffer by name, one per key of a dict of observations; none without a buffer."""
    found: dict[str, NDArray[Any]] = {}
    for name in _REPLAY_ARRAYS if is_off_policy(model) else ():
        value = getattr(model.replay_buffer, name)  # type: ignore[attr-defined]
        found |= {f"{name}:{key}": array for key, array in value.items()} if isinstance(value, dict) else {name: value}
    return found


def _replay_state(model: Any) -> Tree:
    """The filled rows of every array."""
    buffer: ReplayBuffer = model.replay_buffer
    rows = {name: array[: buffer.size()] for name, array in replay_arrays(model).items()}
    return {"position": buffer.pos, "is_full": buffer.full, "rows": rows}


def _restore_replay(model: Any, state: Mapping[str, Any]) -> None:
    if REPLAY_GROUP not in state:
        raise StateError(
            "state: its replay buffer was removed when newer checkpoints were written. Resume from one of those."
        )
    saved, buffer = state[REPLAY_GROUP], model.replay_buffer
    for name, array in replay_arrays(model).items():
        rows = saved["rows"][name]
        if rows.shape[1:] != array.shape[1:] or len(rows) > len(array):
            raise StateError(f"state: its replay buffer has {name} of shape {rows.shape}; this run's {array.shape}.")
        array[: len(rows)] = rows
    buffer.pos, buffer.full = int(saved["position"]), bool(saved["is_full"])
