"""Everything a run is at a rollout's boundary, taken from the live learner and put back into a new one, bit for bit."""

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.errors import StateError, one_line
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP
from hotlap.training.state.rng_state import capture_rng, restore_rng
from hotlap.training.state.state_tree import Tree, join_tree, split_tree

REPLAY_GROUP = "replay"
# What the learner itself counts and remembers between rollouts; those it has, it keeps.
_COUNTERS = ("num_timesteps", "_n_updates", "_episode_num", "_current_progress_remaining", "rate_scale")
_MEMORIES = ("_last_obs", "_last_episode_starts", "_last_original_obs")
_REPLAY_ROWS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@dataclass(frozen=True)
class Snapshot:
    """A run's whole state: plain data, and groups of arrays."""

    plain: Mapping[str, Any]
    groups: Mapping[str, Mapping[str, NDArray[Any]]]

    @property
    def step(self) -> int:
        """Where on the step axis it was taken."""
        return int(self.plain["learner"]["counters"]["num_timesteps"])


def capture(model: BaseAlgorithm, worlds: Tree, books: Tree, *, with_replay: bool = True) -> Snapshot:
    """The state of a learner at a rollout's boundary; `worlds` and `books` are the environments' and callbacks' own.

    Only with its replay buffer, where it has one, can a learner go on from there; models do without.
    """
    parts: dict[str, Tree] = {
        "learner": _learner(model),
        "optimizer": {name: optimizer.state_dict() for name, optimizer in _optimizers(model).items()},
        "generators": capture_rng(model),
        "worlds": worlds,
        "books": books,
    }
    plain: dict[str, Any] = {}
    groups: dict[str, Mapping[str, NDArray[Any]]] = {POLICY_GROUP: split_tree(dict(model.policy.state_dict()))[1]}
    for name, tree in parts.items():
        plain[name], arrays = split_tree(tree)
        if arrays:
            groups[name] = arrays
    normalizer = model.get_vec_normalize_env()
    if normalizer is not None:
        groups[NORMALIZER_GROUP] = split_tree(normalizer_arrays(normalizer))[1]
    if with_replay and isinstance(model, SAC):
        plain[REPLAY_GROUP], groups[REPLAY_GROUP] = split_tree(_replay(model))
    return Snapshot(plain, groups)


def restore(model: BaseAlgorithm, snapshot: Snapshot) -> tuple[Tree, Tree]:
    """Put a learner into the state of `snapshot`; gives back the worlds' and the books' part for their owners.

    When those are done, `restore_generators` must follow.
    """
    with _refusing_misfits():
        _restore_tensors(model, snapshot.groups)
        for name, optimizer in _optimizers(model).items():
            optimizer.load_state_dict(_optimizer_state(_part(snapshot, "optimizer")[name]))
        _restore_learner(model, _part(snapshot, "learner"))
        if isinstance(model, SAC):
            _restore_replay(model, snapshot)
        return _part(snapshot, "worlds"), _part(snapshot, "books")


def restore_generators(model: BaseAlgorithm, snapshot: Snapshot) -> None:
    """Put every generator back: the last thing to do, since environments may draw from them while they are rebuilt."""
    with _refusing_misfits():
        restore_rng(model, _part(snapshot, "generators"))


@contextmanager
def undisturbed(model: BaseAlgorithm) -> Iterator[None]:
    """Whatever is drawn within, the learner's generators come out as they went in."""
    saved = capture_rng(model)
    try:
        yield
    finally:
        restore_rng(model, saved)


def _part(snapshot: Snapshot, name: str) -> Tree:
    return join_tree(snapshot.plain[name], snapshot.groups.get(name, {}))


@contextmanager
def _refusing_misfits() -> Iterator[None]:
    try:
        yield
    except StateError:
        raise
    except (KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        raise StateError(f"state: it does not fit this run's learner ({one_line(error)}).") from None


# --- the learner ---


def _learner(model: BaseAlgorithm) -> Tree:
    logger = model.logger
    pending = {
        name: [value, logger.name_to_count.get(name, 0), list(logger.name_to_excluded.get(name) or ())]
        for name, value in logger.name_to_value.items()
        if isinstance(value, int | float | np.number)
    }
    return {
        "counters": {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)},
        "memories": {name: _laid_out(getattr(model, name, None)) for name in _MEMORIES},
        "episodes": [[info["r"], info["l"], info["t"]] for info in model.ep_info_buffer or ()],
        "successes": [bool(success) for success in model.ep_success_buffer or ()],
        "pending_log": pending,
        # SAC learns this beside its policy.
        "log_ent_coef": getattr(model, "log_ent_coef", None),
    }


def _laid_out(memory: Any) -> Tree:
    """An array, or a dict of such, with the order in which its axes lie in memory.

    A picture's channels come first to a network and last in memory. A convolution over the same numbers in another
    order of memory comes to other last bits.
    """
    if memory is None:
        return None
    if isinstance(memory, dict):
        return {"parts": {name: _laid_out(part) for name, part in memory.items()}}
    axes = np.argsort([-stride for stride in memory.strides], kind="stable").tolist()
    return {"axes": axes, "array": memory.transpose(axes)}


def _as_laid_out(saved: Tree) -> Any:
    if "parts" in saved:
        return {name: _as_laid_out(part) for name, part in saved["parts"].items()}
    return saved["array"].transpose(np.argsort(saved["axes"]))


def _restore_learner(model: BaseAlgorithm, learner: Tree) -> None:
    for name, value in learner["counters"].items():
        setattr(model, name, value)
    for name, value in learner["memories"].items():
        if value is not None:
            setattr(model, name, _as_laid_out(value))
    if learner["log_ent_coef"] is not None:
        model.log_ent_coef.data.copy_(torch.from_numpy(learner["log_ent_coef"]))  # type: ignore[attr-defined]
    window = model._stats_window_size
    model.ep_info_buffer = deque(
        ({"r": reward, "l": length, "t": seconds} for reward, length, seconds in learner["episodes"]), maxlen=window
    )
    model.ep_success_buffer = deque(learner["successes"], maxlen=window)
    for name, (value, count, excluded) in learner["pending_log"].items():
        model.logger.name_to_value[name] = value
        model.logger.name_to_excluded[name] = tuple(excluded)
        if count:
            model.logger.name_to_count[name] = count


def _optimizers(model: BaseAlgorithm) -> dict[str, torch.optim.Optimizer]:
    if not isinstance(model, SAC):
        return {"policy": model.policy.optimizer}
    found = {"actor": model.actor.optimizer, "critic": model.critic.optimizer}
    if model.ent_coef_optimizer is not None:
        found["entropy"] = model.ent_coef_optimizer
    return found


def _optimizer_state(saved: Tree) -> dict[str, Any]:
    """As torch wants it: parameters by number, arrays as tensors."""
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


def _restore_tensors(model: BaseAlgorithm, groups: Mapping[str, Mapping[str, NDArray[Any]]]) -> None:
    model.policy.load_state_dict({name: torch.from_numpy(array) for name, array in groups[POLICY_GROUP].items()})
    normalizer = model.get_vec_normalize_env()
    if (normalizer is None) != (NORMALIZER_GROUP not in groups):
        raise StateError("state: it has a normalizer where this run has none, or the other way round.")
    if normalizer is not None:
        _restore_normalizer(normalizer, groups[NORMALIZER_GROUP])


# --- the normalizer ---


def normalizer_arrays(env: VecNormalize) -> dict[str, NDArray[Any]]:
    """What it has gathered, by the names that model files have for it."""
    found: dict[str, NDArray[Any]] = {"returns": env.returns}
    for name, statistics in _statistics(env).items():
        found |= {f"{name}_mean": np.asarray(statistics.mean), f"{name}_var": np.asarray(statistics.var)}
        found[f"{name}_count"] = np.asarray(statistics.count, np.float64)
    return found


def _statistics(env: VecNormalize) -> dict[str, RunningMeanStd]:
    """By name; those of the observations only where they are normalized, which takes observations without keys."""
    observations: Any = env.obs_rms if env.norm_obs else None
    return {"return": env.ret_rms} if observations is None else {"return": env.ret_rms, "obs": observations}


def _restore_normalizer(env: VecNormalize, saved: Mapping[str, NDArray[Any]]) -> None:
    env.returns = saved["returns"].copy()
    for name, statistics in _statistics(env).items():
        mean, var = saved[f"{name}_mean"], saved[f"{name}_var"]
        if mean.shape != np.shape(statistics.mean):
            raise StateError(f"state: the normalizer's {name} has shape {mean.shape}; this run's is another.")
        statistics.mean, statistics.var = mean.copy(), var.copy()
        statistics.count = float(saved[f"{name}_count"])


# --- SAC's replay buffer ---


def _replay(model: SAC) -> Tree:
    """The rows that are filled; observations may be a dict of such."""
    buffer = _buffer(model)
    filled = buffer.buffer_size if buffer.full else buffer.pos
    rows = {name: array[:filled] for name, array in _replay_rows(buffer).items()}
    return {"position": buffer.pos, "is_full": buffer.full, "rows": rows}


def _restore_replay(model: SAC, snapshot: Snapshot) -> None:
    if REPLAY_GROUP not in snapshot.groups:
        raise StateError("state: its replay buffer was dropped when newer checkpoints were written; take one of those.")
    saved, buffer = _part(snapshot, REPLAY_GROUP), _buffer(model)
    for name, array in _replay_rows(buffer).items():
        rows = saved["rows"][name]
        if rows.shape[1:] != array.shape[1:] or len(rows) > len(array):
            raise StateError(f"state: its replay buffer has {name} of shape {rows.shape}; here it is {array.shape}.")
        array[: len(rows)] = rows
    buffer.pos, buffer.full = int(saved["position"]), bool(saved["is_full"])


def _buffer(model: SAC) -> ReplayBuffer:
    buffer = model.replay_buffer
    if buffer is None:
        raise StateError("state: this learner has no replay buffer.")
    return buffer


def _replay_rows(buffer: ReplayBuffer) -> dict[str, NDArray[Any]]:
    """The arrays of a replay buffer by name, those of a dict of observations with their keys."""
    found: dict[str, NDArray[Any]] = {}
    for name in _REPLAY_ROWS:
        value = getattr(buffer, name)
        found |= {f"{name}:{key}": array for key, array in value.items()} if isinstance(value, dict) else {name: value}
    return found
