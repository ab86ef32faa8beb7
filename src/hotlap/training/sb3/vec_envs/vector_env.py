"""`GymVectorVecEnv`: a Gymnasium vector environment with same-step autoreset as a VecEnv of stable-baselines3."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from hotlap.envs.infos import REWARD_KEYS, Info
from hotlap.errors import ConfigError
from hotlap.training.sb3.vec_envs.base import BatchStep, BatchVecEnv, Mask

_FINAL_KEYS = ("final_obs", "final_info")


class GymVectorVecEnv(BatchVecEnv):
    """The environments of a Gymnasium vector environment, each as `DummyVecEnv` would run it in a `Monitor`.

    Infos are sparse: one is filled only if the episode ended, or if it has a key that not all have (a completed lap).
    """

    def __init__(self, env: gym.vector.VectorEnv[Any, Any, Any]) -> None:
        mode = env.metadata.get("autoreset_mode")
        if getattr(mode, "value", mode) != "SameStep":
            raise ConfigError(
                f"env: its autoreset mode must be same-step, got {mode!r:.40}. Make it with AutoresetMode.SAME_STEP."
            )
        self.env = env
        self._last_step: tuple[Mapping[str, Any], Mask] | None = None  # its info, and which episodes ended
        super().__init__(env.num_envs, env.single_observation_space, env.single_action_space)

    @property
    def _attribute_owner(self) -> Any:
        return self.env

    def reset(self) -> NDArray[Any]:
        """Begin an episode in every environment with the pending seeds and options."""
        options = self._options[0]
        if any(one != options for one in self._options):
            raise ConfigError("options: a vector environment takes the same for all of its environments.")
        # `seed` gave environment i the first seed + i, which is what Gymnasium does with a single number.
        obs, info = self.env.reset(seed=self._seeds[0], options=options or None)
        self._begin_episodes()
        self._last_step = None
        self.reset_infos = [single_info(info, index) for index in range(self.num_envs)]
        return np.array(obs)

    def _step_batch(self, actions: NDArray[Any]) -> BatchStep:
        obs, rewards, terminated, truncated, info = self.env.step(actions)
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        has_ended = terminated | truncated
        self._last_step = (info, has_ended)
        ended = np.flatnonzero(has_ended).tolist()
        infos = {index: single_info(info, index) for index in np.flatnonzero(_has_rare_key(info, has_ended)).tolist()}
        for index in ended:
            infos[index] = single_info(info["final_info"], index)
            self.reset_infos[index] = single_info(info, index)
        final_obs = [np.array(info["final_obs"][index]) for index in ended]
        return BatchStep(np.array(obs), rewards, terminated, truncated, infos, final_obs)

    @property
    def reward_term_means(self) -> Mapping[str, float]:
        """The racer's reward terms on the last step, each the mean over all cars; empty if there are none."""
        if self._last_step is None:
            return {}
        info, ended = self._last_step
        finals = info.get("final_info", {})
        means = {}
        for key in REWARD_KEYS:
            columns = [(info, ~ended), (finals, ended)] if ended.any() else [(info, ~ended)]
            if all(key in source for source, _ in columns):
                means[key] = sum(float(source[key][mask].sum(dtype=np.float64)) for source, mask in columns)
        return {key: total / self.num_envs for key, total in means.items()}

    def close(self) -> None:
        """Close the vector environment."""
        self.env.close()


def _has_rare_key(info: Mapping[str, Any], ended: Mask) -> Mask:
    """Which environments, among those whose episode continues, have a key that not all of them have."""
    has_rare = np.zeros(len(ended), np.bool_)
    for key in info:
        mask = info.get(f"_{key}")
        if key not in _FINAL_KEYS and mask is not None and not (mask | ended).all():
            has_rare |= mask
    has_rare &= ~ended
    return has_rare


def single_info(info: Mapping[str, Any], index: int) -> Info:
    """One environment's info from a vector environment's: the keys whose mask is set for it, as plain values."""
    single: Info = {}
    for key, value in info.items():
        mask = info.get(f"_{key}")
        if key in _FINAL_KEYS or mask is None or not mask[index]:
            continue
        if isinstance(value, Mapping):
            single[key] = single_info(value, index)
        else:
            one = value[index]
            single[key] = one.item() if isinstance(one, np.generic) else one
    return single
