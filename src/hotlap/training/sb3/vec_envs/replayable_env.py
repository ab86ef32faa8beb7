"""`ReplayableEnv`: records the running episode, so that another environment can be brought to the same state."""

import copy
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.errors import ActionError, ConfigError, StateError, one_line
from hotlap.learning.generators import decode_generator, encode_generator

INITIAL_CAPACITY = 256  # actions; doubled when full


@dataclass(frozen=True)
class EpisodeStart:
    """Everything that the reset of an episode may depend on."""

    seed: int | None
    options: dict[str, Any] | None
    rng: dict[str, Any] | None  # np_random before the reset; None if the seed replaced it or there is none
    env_state: dict[str, NDArray[Any]]  # of the environment's own get_state() before the reset, if it has one


class ReplayableEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Records the generator before the reset of the running episode, and the actions since then.

    `get_state` returns this record; `set_state` replays it and checks that the environment reached the same state. The
    check cannot see randomness outside `np_random` that has not affected an observation or a reward yet.

    The environment receives actions in the dtype of its action space, in a replay as in the original episode.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        shape, dtype = env.action_space.shape, env.action_space.dtype
        if shape is None or dtype is None:
            raise ConfigError(f"{_name(env)}: actions must be arrays to be recorded, got {env.action_space!s:.60}.")
        self._action_shape, self._action_dtype = shape, np.dtype(dtype)
        self._actions = np.zeros((INITIAL_CAPACITY, *shape), self._action_dtype)
        self._num_actions = 0
        self._start: EpisodeStart | None = None
        self._reward = 0.0  # of the last step
        self._return = 0.0
        self.last_observation: Any = None
        self.reset_info: dict[str, Any] = {}

    @property
    def has_begun(self) -> bool:
        """Whether there has been a reset."""
        return self._start is not None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and a new record."""
        self._begin(self._episode_start(seed, options))
        return self.last_observation, self.reset_info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; an action that does not fit the action space is refused and nothing moves."""
        action = self._as_action(action)
        if self._num_actions == len(self._actions):
            self._actions = np.concatenate([self._actions, np.zeros_like(self._actions)])
        self._actions[self._num_actions] = action  # before the step: the environment may write into its argument
        result = self.env.step(action)
        self._num_actions += 1
        self.last_observation, reward = result[0], float(result[1])
        self._reward = reward
        self._return += reward
        return result

    def get_state(self) -> dict[str, Any]:
        """The record of the episode and the values a replay must reproduce: nested dicts of arrays and plain JSON."""
        start = self._start
        if start is None:
            return {"start": None}
        return {
            "start": {"seed": start.seed, "options": plain_options(start.options), "rng": start.rng},
            "env_state": {name: column.copy() for name, column in start.env_state.items()},
            "actions": self._actions[: self._num_actions].copy(),
            "rewards": np.array([self._reward, self._return]),  # of the last step, and the sum
            "observation": _as_arrays(self.observation_space, self.last_observation),
            "fingerprint": self._fingerprint(),
        }

    def set_state(self, state: Mapping[str, Any]) -> list[float]:
        """Replay the episode of `state` up to where it was saved; returns its rewards so far.

        The environment must have been made with the same arguments. If the replay does not reproduce the saved state,
        `StateError` is raised and the environment must be reset.
        """
        try:
            if state["start"] is None:
                self._start = None
                return []
            rewards = self._replay(state)
            different = self._difference(state)
        except KeyError as error:
            raise StateError(f"state: {error} is missing. Save it again with get_state().") from None
        if different:
            raise StateError(
                f"{_name(self)} cannot be restored exactly: the replay of its episode gave another {different}. "
                f"Was it made with other arguments? If not, it uses randomness outside np_random and cannot be saved."
            )
        return rewards

    def _begin(self, start: EpisodeStart) -> None:
        options = copy.deepcopy(start.options)
        self.last_observation, self.reset_info = self.env.reset(seed=start.seed, options=options)
        self._start, self._num_actions = start, 0
        self._reward = self._return = 0.0

    def _replay(self, state: Mapping[str, Any]) -> list[float]:
        actions = np.asarray(state["actions"])
        if actions.dtype != self._action_dtype or actions.shape[1:] != self._action_shape:
            raise StateError(
                f"state: actions must be {self._action_dtype} of shape {('n', *self._action_shape)}, "
                f"got {actions.dtype} of shape {actions.shape}."
            )
        saved = state["start"]
        start = EpisodeStart(saved["seed"], saved["options"], saved["rng"], state["env_state"])
        if start.rng is not None:
            decode_generator(start.rng, self.unwrapped.np_random)
        rewards: list[float] = []
        try:
            if start.env_state:
                self.unwrapped.set_state(start.env_state)  # type: ignore[attr-defined]
            self._begin(start)
            for action in actions:
                rewards.append(float(self.step(np.array(action))[1]))
        # A third-party environment may raise anything.
        except Exception as error:
            raise StateError(
                f"{_name(self)} cannot be restored: step {len(rewards)} of the replay of its episode "
                f"failed ({type(error).__name__}: {one_line(error)})."
            ) from error
        return rewards

    def _difference(self, state: Mapping[str, Any]) -> str | None:
        """What is not bit-identical to the saved state; None if everything is."""
        here = self.get_state()
        saved = state["observation"]
        if not all(_same_bits(part, saved[name]) for name, part in here["observation"].items()):
            return "observation"
        if not _same_bits(here["rewards"], state["rewards"]):
            return "reward"
        if here["fingerprint"] != state["fingerprint"]:
            return "generator or internal state"
        return None

    def _episode_start(self, seed: int | None, options: dict[str, Any] | None) -> EpisodeStart:
        options = copy.deepcopy(options)
        if seed is not None:
            return EpisodeStart(seed, options, None, {})
        if not self.has_begun:
            # Accessing np_random creates the generator. Before the first reset there is no state to save.
            return EpisodeStart(None, options, encode_generator(self.unwrapped.np_random), {})
        return EpisodeStart(None, options, encode_generator(_generator(self.unwrapped)), _env_state(self.unwrapped))

    def _as_action(self, action: Any) -> Any:
        """`action` in the dtype and shape of the action space: a NumPy scalar or an array."""
        given = np.asarray(action)
        cast = given
        if given.dtype != self._action_dtype and given.dtype.kind in "biuf":
            with np.errstate(invalid="ignore"):  # NaN as an integer: found by the comparison below
                cast = given.astype(self._action_dtype)
            if cast.dtype.kind != "f" and not np.array_equal(cast, given):
                cast = given
        if cast.shape != self._action_shape or cast.dtype != self._action_dtype:
            raise ActionError(
                f"action must be {self._action_dtype} of shape {self._action_shape}, got {action!r:.60}; nothing moved."
            )
        return cast[()]

    def _fingerprint(self) -> str:
        """Digest of the generator's state and of the environment's own state, if it has one."""
        digest = hashlib.sha256(json.dumps(encode_generator(_generator(self.unwrapped))).encode())
        for name, column in sorted(_env_state(self.unwrapped).items()):
            digest.update(f"{name} {column.dtype.str} {column.shape} ".encode() + column.tobytes())
        return digest.hexdigest()


def _generator(env: Any) -> Any:
    """The environment's generator, or None; accessing `np_random` would create one with a random seed."""
    return getattr(env, "_np_random", None)


def _env_state(env: Any) -> dict[str, NDArray[Any]]:
    """The arrays of the environment's own `get_state`, as our racer has one; empty if there is no such method."""
    if not (hasattr(env, "get_state") and hasattr(env, "set_state")):
        return {}
    try:
        state = env.get_state()
    except (TypeError, NotImplementedError):  # an unrelated method of the same name
        return {}
    if isinstance(state, dict) and all(isinstance(column, np.ndarray) for column in state.values()):
        return state
    return {}


def _as_arrays(space: spaces.Space[Any], observation: Any) -> dict[str, NDArray[Any]]:
    """A copy of an observation: one array, or one for each key of a Dict."""
    if isinstance(space, spaces.Dict):
        return {key: np.array(observation[key]) for key in space.spaces}
    return {"all": np.array(observation)}


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    other = np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def plain_options(options: Any) -> Any:
    """Reset options as plain JSON; StateError if that would change them."""
    try:
        plain = json.loads(json.dumps(options, allow_nan=False))
        is_unchanged = bool(plain == options)
    except (TypeError, ValueError):
        is_unchanged = False
    if not is_unchanged:
        raise StateError(f"options of a reset must be plain JSON to be saved, got {options!r:.60}.")
    return plain


def _name(env: gym.Env[Any, Any]) -> str:
    return f"environment {env.spec.id!r:.80}" if env.spec else f"environment {env.unwrapped!s:.60}"
