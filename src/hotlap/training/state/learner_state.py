"""Captures a learner's state between two rollouts and restores it bit for bit.

Hand-made: stable-baselines3's own `save` pickles, and leaves out generators, environments and pending log values.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.errors import StateError, one_line
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP, Arrays
from hotlap.runs.snapshot import REPLAY_GROUP, Snapshot
from hotlap.training.algorithms.step_budget import Learner
from hotlap.training.state.rng_state import capture_rng, restore_rng
from hotlap.training.state.state_tree import Tree, join_tree, split_tree

# Attributes that a learner keeps from one rollout to the next; not every algorithm has all of them.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining", "lr_scale")
_LAST_STEP = ("_last_obs", "_last_episode_starts", "_last_original_obs")
_REPLAY_ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def capture(learner: Learner, envs: Tree, bookkeeping: Tree, *, with_replay: bool = True) -> Snapshot:
    """The state of a learner between two rollouts, with that of its environments and of the run's bookkeeping.

    A run can resume only from a state with the replay buffer, if the algorithm has one. Models are saved without.
    """
    parts: dict[str, Tree] = {
        "learner": _learner_state(learner),
        "optimizers": {name: optimizer.state_dict() for name, optimizer in learner.named_optimizers().items()},
        "rng": capture_rng(learner),
        "envs": envs,
        "bookkeeping": bookkeeping,
    }
    plain: dict[str, Any] = {}
    groups: dict[str, Mapping[str, NDArray[Any]]] = {POLICY_GROUP: split_tree(dict(learner.policy.state_dict()))[1]}
    for name, tree in parts.items():
        plain[name], arrays = split_tree(tree)
        if arrays:
            groups[name] = arrays
    normalizer = learner.get_vec_normalize_env()
    if normalizer is not None:
        groups[NORMALIZER_GROUP] = split_tree(normalizer_arrays(normalizer))[1]
    if with_replay and learner.has_replay_buffer:
        plain[REPLAY_GROUP], groups[REPLAY_GROUP] = split_tree(_replay_state(_replay_buffer(learner)))
    return Snapshot(plain, groups)


def restore(learner: Learner, snapshot: Snapshot) -> tuple[Tree, Tree]:
    """Put a learner into the state of `snapshot`; returns the environments' and the bookkeeping's part of it.

    `restore_generators` must follow once those two are restored.
    """
    with _refuse_mismatch():
        _restore_weights(learner, snapshot.groups)
        for name, optimizer in learner.named_optimizers().items():
            optimizer.load_state_dict(_optimizer_state(_part(snapshot, "optimizers")[name]))
        _restore_learner(learner, _part(snapshot, "learner"))
        if learner.has_replay_buffer:
            _restore_replay(_replay_buffer(learner), snapshot)
        return _part(snapshot, "envs"), _part(snapshot, "bookkeeping")


def load_weights(learner: Learner, weights: Arrays, normalizer: Arrays) -> None:
    """Give a new learner the weights of a model, and its statistics of observations where it normalizes them."""
    with _refuse_mismatch():
        learner.policy.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in weights.items()})
        env = learner.get_vec_normalize_env()
        observations = env.obs_rms if env is not None and env.norm_obs else None
        if (observations is None) != ("obs_mean" not in normalizer):
            raise StateError("either the model or this run normalizes observations, and the other does not.")
        if observations is not None:
            _restore_statistics(observations, "obs", normalizer)  # type: ignore[arg-type]


def restore_generators(learner: Learner, snapshot: Snapshot) -> None:
    """Restore every random generator. Do it last: environments may draw from them while they are rebuilt."""
    with _refuse_mismatch():
        restore_rng(learner, _part(snapshot, "rng"))


@contextmanager
def preserve_rng(learner: Learner) -> Iterator[None]:
    """Restore the learner's generators at the end, whatever was drawn from them in between."""
    saved = capture_rng(learner)
    try:
        yield
    finally:
        restore_rng(learner, saved)


def _part(snapshot: Snapshot, name: str) -> Tree:
    return join_tree(snapshot.plain[name], snapshot.groups.get(name, {}))


@contextmanager
def _refuse_mismatch() -> Iterator[None]:
    try:
        yield
    except StateError:
        raise
    except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise StateError(f"state: does not fit this run's learner ({one_line(error)}).") from None


# --- the learner ---


def _learner_state(learner: Learner) -> Tree:
    logger = learner.logger
    pending = {
        name: [value, logger.name_to_count.get(name, 0), list(logger.name_to_excluded.get(name) or ())]
        for name, value in logger.name_to_value.items()
        if isinstance(value, int | float | np.number)
    }
    return {
        "counters": {name: getattr(learner, name) for name in _COUNTERS if hasattr(learner, name)},
        "last_step": {name: _with_layout(getattr(learner, name, None)) for name in _LAST_STEP},
        "episodes": [[info["r"], info["l"], info["t"]] for info in learner.ep_info_buffer or ()],
        "successes": [bool(success) for success in learner.ep_success_buffer or ()],
        "pending_log": pending,
        # A learned entropy coefficient is not part of the policy's weights.
        "log_ent_coef": getattr(learner, "log_ent_coef", None),
    }


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


def _restore_learner(learner: Learner, saved: Tree) -> None:
    for name, value in saved["counters"].items():
        setattr(learner, name, value)
    for name, value in saved["last_step"].items():
        if value is not None:
            setattr(learner, name, _from_layout(value))
    if saved["log_ent_coef"] is not None:
        learner.log_ent_coef.data.copy_(torch.from_numpy(saved["log_ent_coef"]))  # type: ignore[attr-defined]
    window = learner._stats_window_size
    learner.ep_info_buffer = deque(
        ({"r": reward, "l": length, "t": time_s} for reward, length, time_s in saved["episodes"]), maxlen=window
    )
    learner.ep_success_buffer = deque(saved["successes"], maxlen=window)
    for name, (value, count, excluded) in saved["pending_log"].items():
        learner.logger.name_to_value[name] = value
        learner.logger.name_to_excluded[name] = tuple(excluded)
        if count:
            learner.logger.name_to_count[name] = count


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


def _restore_weights(learner: Learner, groups: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    learner.policy.load_state_dict({name: torch.from_numpy(array) for name, array in groups[POLICY_GROUP].items()})
    normalizer = learner.get_vec_normalize_env()
    if (normalizer is None) != (NORMALIZER_GROUP not in groups):
        raise StateError("state: either it or this run has a normalizer, and the other has none.")
    if normalizer is not None:
        _restore_normalizer(normalizer, groups[NORMALIZER_GROUP])


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
    observations: Any = env.obs_rms if env.norm_obs else None
    return {"return": env.ret_rms} if observations is None else {"return": env.ret_rms, "obs": observations}


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


def _replay_state(buffer: ReplayBuffer) -> Tree:
    """The filled rows of every array."""
    filled = buffer.buffer_size if buffer.full else buffer.pos
    rows = {name: array[:filled] for name, array in replay_arrays(buffer).items()}
    return {"position": buffer.pos, "is_full": buffer.full, "rows": rows}


def _restore_replay(buffer: ReplayBuffer, snapshot: Snapshot) -> None:
    if REPLAY_GROUP not in snapshot.groups:
        raise StateError(
            "state: its replay buffer was removed when newer checkpoints were written. Resume from one of those."
        )
    saved = _part(snapshot, REPLAY_GROUP)
    for name, array in replay_arrays(buffer).items():
        rows = saved["rows"][name]
        if rows.shape[1:] != array.shape[1:] or len(rows) > len(array):
            raise StateError(f"state: its replay buffer has {name} of shape {rows.shape}; this run's {array.shape}.")
        array[: len(rows)] = rows
    buffer.pos, buffer.full = int(saved["position"]), bool(saved["is_full"])


def _replay_buffer(learner: Learner) -> ReplayBuffer:
    buffer: ReplayBuffer = learner.replay_buffer  # type: ignore[attr-defined]
    return buffer


def replay_arrays(buffer: ReplayBuffer) -> dict[str, NDArray[Any]]:
    """The arrays of a replay buffer by name; a dict of observations gives one array per key."""
    found: dict[str, NDArray[Any]] = {}
    for name in _REPLAY_ARRAYS:
        value = getattr(buffer, name)
        found |= {f"{name}:{key}": array for key, array in value.items()} if isinstance(value, dict) else {name: value}
    return found
