"""Everything a run is at a rollout's boundary, taken from the live learner and put back into a new one, bit for bit."""

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from stable_baselines3 import SAC
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.running_mean_std import RunningMeanStd
from stable_baselines3.common.vec_env import VecNormalize

from hotlap.drivers.model_files import NORMALIZER_GROUP, POLICY_GROUP
from hotlap.errors import StateError
from hotlap.training.trees import Tree, join_tree, split_tree

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

    def without_replay(self) -> "Snapshot":
        """The same, less the replay buffer."""
        return Snapshot(self.plain, {name: group for name, group in self.groups.items() if name != REPLAY_GROUP})


def capture(model: BaseAlgorithm, worlds: Tree, books: Tree) -> Snapshot:
    """The state of a learner at a rollout's boundary; `worlds` and `books` are the environments' and callbacks' own."""
    parts: dict[str, Tree] = {
        "learner": _learner(model),
        "optimizer": {name: optimizer.state_dict() for name, optimizer in _optimizers(model).items()},
        "generators": _generators(model),
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
        groups[NORMALIZER_GROUP] = split_tree(_normalizer(normalizer))[1]
    if isinstance(model, SAC):
        plain[REPLAY_GROUP], groups[REPLAY_GROUP] = _replay(model)
    return Snapshot(plain, groups)


def restore(model: BaseAlgorithm, snapshot: Snapshot) -> tuple[Tree, Tree]:
    """Put a learner into the state of `snapshot`; gives back the worlds' and the books' part for their owners."""
    groups = snapshot.groups

    def part(name: str) -> Tree:
        return join_tree(snapshot.plain[name], groups.get(name, {}))

    try:
        _restore_tensors(model, groups)
        for name, optimizer in _optimizers(model).items():
            optimizer.load_state_dict(_optimizer_state(part("optimizer")[name]))
        _restore_learner(model, part("learner"))
        if isinstance(model, SAC):
            _restore_replay(model, snapshot)
        # Last: nothing above may draw from the generators afterwards.
        _restore_generators(model, part("generators"))
        return part("worlds"), part("books")
    except (KeyError, ValueError, TypeError, RuntimeError) as error:
        raise StateError(f"state: it does not fit this run's learner ({' '.join(str(error).split())[:160]}).") from None


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
        "memories": {name: getattr(model, name, None) for name in _MEMORIES},
        "episodes": [[info["r"], info["l"], info["t"]] for info in model.ep_info_buffer or ()],
        "successes": [bool(success) for success in model.ep_success_buffer or ()],
        "pending_log": pending,
        # SAC learns this beside its policy.
        "log_ent_coef": getattr(model, "log_ent_coef", None),
    }


def _restore_learner(model: BaseAlgorithm, learner: Tree) -> None:
    for name, value in learner["counters"].items():
        setattr(model, name, value)
    for name, value in learner["memories"].items():
        if value is not None:
            setattr(model, name, value)
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


def _normalizer(env: VecNormalize) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {"returns": env.returns}
    for name, statistics in _statistics(env).items():
        found |= {f"{name}_mean": np.asarray(statistics.mean), f"{name}_var": np.asarray(statistics.var)}
        found[f"{name}_count"] = np.asarray(statistics.count, np.float64)
    return found


def _statistics(env: VecNormalize) -> dict[str, RunningMeanStd]:
    found = {"return": env.ret_rms}
    if env.norm_obs and isinstance(env.obs_rms, dict):
        found |= {f"obs:{key}": statistics for key, statistics in env.obs_rms.items()}
    elif env.norm_obs:
        found["obs"] = env.obs_rms
    return found


def _restore_normalizer(env: VecNormalize, saved: Mapping[str, NDArray[Any]]) -> None:
    env.returns = saved["returns"].copy()
    for name, statistics in _statistics(env).items():
        mean, var = saved[f"{name}_mean"], saved[f"{name}_var"]
        if mean.shape != np.shape(statistics.mean):
            raise StateError(f"state: the normalizer's {name} has shape {mean.shape}; this run's is another.")
        statistics.mean, statistics.var = mean.copy(), var.copy()
        statistics.count = float(saved[f"{name}_count"])


# --- generators ---


def _generators(model: BaseAlgorithm) -> Tree:
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002 (the library draws from it)
    version, numbers, gauss = random.getstate()
    found = {
        "numpy": [kind, np.asarray(keys), position, has_gauss, cached],
        "python": [version, np.array(numbers, np.uint64), gauss],
        "torch": torch.get_rng_state(),
        "actions": _bit_generator(model.action_space.np_random.bit_generator.state),
    }
    if model.device.type == "cuda":
        found["cuda"] = torch.cuda.get_rng_state(model.device)
    return found


def _restore_generators(model: BaseAlgorithm, saved: Tree) -> None:
    kind, keys, position, has_gauss, cached = saved["numpy"]
    np.random.set_state((kind, keys, int(position), int(has_gauss), float(cached)))  # noqa: NPY002
    version, numbers, gauss = saved["python"]
    random.setstate((version, tuple(int(number) for number in numbers), gauss))
    torch.set_rng_state(torch.from_numpy(saved["torch"]))
    model.action_space.np_random.bit_generator.state = _from_text(saved["actions"])
    if "cuda" in saved:
        torch.cuda.set_rng_state(torch.from_numpy(saved["cuda"]), model.device)


def _bit_generator(state: Mapping[str, Any]) -> dict[str, Any]:
    """A bit generator's state with its 128-bit numbers as text, which JSON readers everywhere can hold."""
    return {
        key: _bit_generator(value) if isinstance(value, Mapping) else str(value) if isinstance(value, int) else value
        for key, value in state.items()
    }


def _from_text(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _from_text(value) if isinstance(value, Mapping) else int(value) if str(value).isdecimal() else value
        for key, value in state.items()
    }


# --- SAC's replay buffer ---


def _replay(model: SAC) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    buffer = model.replay_buffer
    assert buffer is not None  # SAC makes one when it is built
    rows = buffer.buffer_size if buffer.full else buffer.pos
    arrays = {name: np.ascontiguousarray(getattr(buffer, name)[:rows]) for name in _REPLAY_ROWS}
    return {"position": buffer.pos, "is_full": buffer.full}, {name: array.copy() for name, array in arrays.items()}


def _restore_replay(model: SAC, snapshot: Snapshot) -> None:
    if REPLAY_GROUP not in snapshot.groups:
        raise StateError("state: its replay buffer was dropped when newer checkpoints were written; take one of those.")
    saved, state, buffer = snapshot.groups[REPLAY_GROUP], snapshot.plain[REPLAY_GROUP], model.replay_buffer
    assert buffer is not None  # SAC makes one when it is built
    for name in _REPLAY_ROWS:
        getattr(buffer, name)[: len(saved[name])] = saved[name]
    buffer.pos, buffer.full = int(state["position"]), bool(state["is_full"])
