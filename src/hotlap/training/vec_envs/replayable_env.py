"""`ReplayableEnv`: an environment that records its episode, so that another can be put where it stands by replay."""

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
from hotlap.training.state.rng_state import decode_generator, encode_generator

FIRST_CAPACITY = 256  # actions; doubled when full


@dataclass(frozen=True)
class Origin:
    """Where an episode began: all that its reset may have depended on."""

    seed: int | None
    options: dict[str, Any] | None
    chance: dict[str, Any] | None  # the generator before the reset; None where the seed replaced it or there is none
    own: dict[str, NDArray[Any]]  # the environment's own state before the reset, where it can tell


class ReplayableEnv(gym.Wrapper[Any, Any, Any, Any]):
    """Records what its episode was made of: the generator before the reset, and the actions since.

    `get_state` is that record, `set_state` plays it and checks that the world came out where it was. It cannot see what
    an environment hides from `np_random` and has not shown in an observation or a reward yet.

    The environment gets its actions in the dtype of its action space, live as in a replay.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        shape, dtype = env.action_space.shape, env.action_space.dtype
        if shape is None or dtype is None:
            raise ConfigError(f"{_name(env)}: actions must be arrays to be recorded, got {env.action_space!s:.60}.")
        self._action_shape, self._action_dtype = shape, np.dtype(dtype)
        self._actions = np.zeros((FIRST_CAPACITY, *shape), self._action_dtype)
        self._num_actions = 0
        self._origin: Origin | None = None
        self._reward = 0.0  # of the last step
        self._return = 0.0
        self.last_observation: Any = None
        self.reset_info: dict[str, Any] = {}

    @property
    def has_begun(self) -> bool:
        """Whether there has been a reset."""
        return self._origin is not None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode and its record."""
        self._begin(self._look_at_origin(seed, options))
        return self.last_observation, self.reset_info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step; an action that is not of the action space's kind is refused and nothing moves."""
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
        """The episode's record and what to check a replay against: nested dicts of arrays and plain JSON."""
        origin = self._origin
        if origin is None:
            return {"origin": None}
        return {
            "origin": {"seed": origin.seed, "options": plain_options(origin.options), "chance": origin.chance},
            "own": {name: column.copy() for name, column in origin.own.items()},
            "actions": self._actions[: self._num_actions].copy(),
            "rewards": np.array([self._reward, self._return]),  # of the last step, and the sum
            "observation": _as_arrays(self.observation_space, self.last_observation),
            "fingerprint": self._fingerprint(),
        }

    def set_state(self, state: Mapping[str, Any]) -> list[float]:
        """Play the episode of `state` again up to where it was saved; its rewards so far.

        The environment must have been made with the same arguments. If it comes out elsewhere, `StateError` is raised
        and the environment is good for nothing but a reset.
        """
        try:
            if state["origin"] is None:
                self._origin = None
                return []
            rewards = self._replay(state)
            different = self._difference(state)
        except KeyError as error:
            raise StateError(f"state: {error} is missing. Save it again with get_state().") from None
        if different:
            raise StateError(
                f"{_name(self)} cannot be rebuilt exactly: its episode, played again, came to another {different}. "
                f"Unless it was made with other arguments, it draws chance from elsewhere than np_random: start anew."
            )
        return rewards

    def _begin(self, origin: Origin) -> None:
        options = copy.deepcopy(origin.options)
        self.last_observation, self.reset_info = self.env.reset(seed=origin.seed, options=options)
        self._origin, self._num_actions = origin, 0
        self._reward = self._return = 0.0

    def _replay(self, state: Mapping[str, Any]) -> list[float]:
        actions = np.asarray(state["actions"])
        if actions.dtype != self._action_dtype or actions.shape[1:] != self._action_shape:
            raise StateError(
                f"state: actions must be {self._action_dtype} of shape {('n', *self._action_shape)}, "
                f"got {actions.dtype} of shape {actions.shape}."
            )
        saved = state["origin"]
        origin = Origin(saved["seed"], saved["options"], saved["chance"], state["own"])
        if origin.chance is not None:
            decode_generator(origin.chance, self.unwrapped.np_random)
        rewards: list[float] = []
        try:
            if origin.own:
                self.unwrapped.set_state(origin.own)  # type: ignore[attr-defined]
            self._begin(origin)
            for action in actions:
                rewards.append(float(self.step(np.array(action))[1]))
        # Whatever an environment that is not ours may raise when it is led astray.
        except Exception as error:
            raise StateError(
                f"{_name(self)} cannot be rebuilt: step {len(rewards)} of its episode, played again, "
                f"failed ({type(error).__name__}: {one_line(error)})."
            ) from error
        return rewards

    def _difference(self, state: Mapping[str, Any]) -> str | None:
        """In what the world now and the saved one are not the same bits."""
        here = self.get_state()
        saved = state["observation"]
        if not all(_same_bits(part, saved[name]) for name, part in here["observation"].items()):
            return "observation"
        if not _same_bits(here["rewards"], state["rewards"]):
            return "reward"
        if here["fingerprint"] != state["fingerprint"]:
            return "generator or inner state"
        return None

    def _look_at_origin(self, seed: int | None, options: dict[str, Any] | None) -> Origin:
        options = copy.deepcopy(options)
        if seed is not None:
            return Origin(seed, options, None, {})
        if not self.has_begun:
            # Asked for, the generator comes into being; the environment's own state before a first reset says nothing.
            return Origin(None, options, encode_generator(self.unwrapped.np_random), {})
        return Origin(None, options, encode_generator(_generator(self.unwrapped)), _own_state(self.unwrapped))

    def _as_action(self, action: Any) -> Any:
        """`action` as the action space would have it: a NumPy scalar or a contiguous array."""
        given = np.asarray(action)
        cast = given
        if given.dtype != self._action_dtype and given.dtype.kind in "biuf":
            with np.errstate(invalid="ignore"):  # NaN as an integer: told apart below
                cast = given.astype(self._action_dtype)
            if cast.dtype.kind != "f" and not np.array_equal(cast, given):
                cast = given
        if cast.shape != self._action_shape or cast.dtype != self._action_dtype:
            raise ActionError(
                f"action must be {self._action_dtype} of shape {self._action_shape}, got {action!r:.60}; nothing moved."
            )
        return cast[()]

    def _fingerprint(self) -> str:
        """Names the state of the generator and, where the environment can tell, its own."""
        digest = hashlib.sha256(json.dumps(encode_generator(_generator(self.unwrapped))).encode())
        for name, column in sorted(_own_state(self.unwrapped).items()):
            digest.update(f"{name} {column.dtype.str} {column.shape} ".encode() + column.tobytes())
        return digest.hexdigest()


def _generator(env: Any) -> Any:
    """The environment's generator if it has one by now; asking for `np_random` would make one, seeded by the system."""
    return getattr(env, "_np_random", None)


def _own_state(env: Any) -> dict[str, NDArray[Any]]:
    """The arrays that an environment's own `get_state` gives, as our racer's does; nothing where it gives no such."""
    if not (hasattr(env, "get_state") and hasattr(env, "set_state")):
        return {}
    try:
        state = env.get_state()
    except (TypeError, NotImplementedError):  # it wants arguments: another thing by the same name
        return {}
    if isinstance(state, dict) and all(isinstance(column, np.ndarray) for column in state.values()):
        return state
    return {}


def _as_arrays(space: spaces.Space[Any], observation: Any) -> dict[str, NDArray[Any]]:
    """A copy of an observation: one part, or one for each key of a Dict."""
    if isinstance(space, spaces.Dict):
        return {key: np.array(observation[key]) for key in space.spaces}
    return {"all": np.array(observation)}


def _same_bits(one: NDArray[Any], other: NDArray[Any]) -> bool:
    other = np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def plain_options(options: Any) -> Any:
    """Reset options as plain JSON, if that loses nothing."""
    try:
        plain = json.loads(json.dumps(options, allow_nan=False))
        is_whole = bool(plain == options)
    except (TypeError, ValueError):
        is_whole = False
    if not is_whole:
        raise StateError(f"options of a reset must be plain JSON to be saved, got {options!r:.60}.")
    return plain


def _name(env: gym.Env[Any, Any]) -> str:
    return f"environment {env.spec.id!r:.80}" if env.spec else f"environment {env.unwrapped!s:.60}"
