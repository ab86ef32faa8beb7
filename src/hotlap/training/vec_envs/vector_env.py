"""`GymVectorVecEnv`: any Gymnasium vector environment that resets in the same step, as stable-baselines3's VecEnv.

This is how a batch of cars behind a bridge is trained on: by its Gymnasium id, without knowing what a bridge is.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from hotlap.errors import ActionError, ConfigError
from hotlap.training.callbacks.racer_metrics import REWARD_KEYS

Info = dict[str, Any]
Mask = NDArray[np.bool_]

_FINALS = ("final_obs", "final_info")


class GymVectorVecEnv(VecEnv):
    """Every environment of the batch as `DummyVecEnv` would run it in a `Monitor`.

    Infos are sparse: one is filled where an episode ended, or where it has a key that not all have (a finished lap).
    """

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if getattr(mode, "value", mode) != "SameStep":
            raise ConfigError(f"env: its autoreset mode must be same-step, got {mode!r:.40}; results would be shifted.")
        self.env = env
        self._returns = np.zeros(env.num_envs, np.float64)
        self._lengths = np.zeros(env.num_envs, np.int64)
        self._actions: NDArray[Any] | None = None
        self._last: tuple[Mapping[str, Any], Mask] | None = None  # the last step's info and ended cars
        self._made_s = time.time()
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    def reset(self) -> NDArray[Any]:
        """Begin an episode everywhere; seeds and options that were set are used up."""
        options = self._options[0]
        if any(one != options for one in self._options):
            raise ConfigError("options: a vector environment takes the same for all of its environments.")
        # `seed` has given environment i the first one's seed + i, which is what Gymnasium makes of one number.
        obs, info = self.env.reset(seed=self._seeds[0], options=options or None)
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        self._actions = self._last = None
        self.reset_infos = [row_of(info, number) for number in range(self.num_envs)]
        return np.array(obs)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], Mask, list[Info]]:
        """One step everywhere; where an episode ended the next one has begun."""
        actions, self._actions = self._actions, None
        if actions is None:
            raise ActionError("step_wait() without actions: call step_async(actions) first.")
        obs, rewards, terminated, truncated, info = self.env.step(actions)
        ended = np.asarray(terminated) | np.asarray(truncated)
        self._last = (info, ended)
        self._returns += rewards
        self._lengths += 1
        infos: list[Info] = [{} for _ in range(self.num_envs)]
        for number in np.flatnonzero(_has_news(info, ended)).tolist():
            infos[number] = row_of(info, number)
        seconds = round(time.time() - self._made_s, 6)
        for number in np.flatnonzero(ended).tolist():
            infos[number] = row_of(info["final_info"], number) | {
                "terminal_observation": np.array(info["final_obs"][number]),
                "TimeLimit.truncated": bool(truncated[number] and not terminated[number]),
                "episode": {
                    "r": round(float(self._returns[number]), 6),
                    "l": int(self._lengths[number]),
                    "t": seconds,
                },
            }
            self.reset_infos[number] = row_of(info, number)
        self._returns[ended], self._lengths[ended] = 0.0, 0
        return np.array(obs), np.asarray(rewards, np.float32), ended, infos

    @property
    def reward_term_means(self) -> Mapping[str, float]:
        """The racer's reward terms on the last step, each the mean over all cars; empty where there are none."""
        if self._last is None:
            return {}
        info, ended = self._last
        finals = info.get("final_info", {})
        means = {}
        for key in REWARD_KEYS:
            columns = [(info, ~ended), (finals, ended)] if ended.any() else [(info, ~ended)]
            if all(key in source for source, _ in columns):
                means[key] = sum(float(source[key][mask].sum(dtype=np.float64)) for source, mask in columns)
        return {key: total / self.num_envs for key, total in means.items()}

    def close(self) -> None:
        """Let go of what the vector environment holds."""
        self.env.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of the vector environment, once for each environment asked for."""
        value = getattr(self.env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of the vector environment; of some of its environments it cannot be set."""
        self._check_all_meant(indices)
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of the vector environment once; its result stands once for each environment."""
        self._check_all_meant(indices)
        result = getattr(self.env, method_name)(*method_args, **kwargs)
        return [result] * self.num_envs

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """True for `Monitor`, since infos say what it would say; false for any other wrapper."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def _check_all_meant(self, indices: VecEnvIndices) -> None:
        chosen: Sequence[int] = list(self._get_indices(indices))
        if set(chosen) != set(range(self.num_envs)):
            raise ConfigError("indices: a vector environment is one for all; leave `indices` out.")


def _has_news(info: Mapping[str, Any], ended: Mask) -> Mask:
    """Which environments, among those that go on, have a key that not all of them have."""
    news = np.zeros(len(ended), np.bool_)
    for key in info:
        mask = info.get(f"_{key}")
        if key not in _FINALS and mask is not None and not (mask | ended).all():
            news |= mask
    news &= ~ended
    return news


def row_of(info: Mapping[str, Any], number: int) -> Info:
    """One environment's own info out of the batch's: the keys whose mask holds for it, as plain values."""
    row: Info = {}
    for key, value in info.items():
        mask = info.get(f"_{key}")
        if key in _FINALS or mask is None or not mask[number]:
            continue
        if isinstance(value, Mapping):
            row[key] = row_of(value, number)
        else:
            one = value[number]
            row[key] = one.item() if isinstance(one, np.generic) else one
    return row
