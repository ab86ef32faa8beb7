"""Base class of our VecEnvs: what `DummyVecEnv` and `Monitor` of stable-baselines3 do for environments in a batch."""

import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from hotlap.envs.infos import Info
from hotlap.errors import ActionError, ConfigError
from hotlap.training.sb3.vec_envs.finite_check import check_final_observations, check_observations, check_rewards

Mask = NDArray[np.bool_]


class BatchStep(NamedTuple):
    """The results of one step of a batch with same-step autoreset."""

    obs: NDArray[Any]  # (num_envs, …); where an episode ended, the first observation of the next one
    rewards: NDArray[Any]  # (num_envs,)
    terminated: Mask  # (num_envs,)
    truncated: Mask  # (num_envs,)
    infos: Mapping[int, Info]  # by environment; those without one get an empty info
    final_obs: Sequence[NDArray[Any]]  # the last observation of each episode that ended, in order of environments


class BatchVecEnv(VecEnv):
    """A VecEnv whose environments are stepped in one call and share all attributes.

    It keeps the running returns and lengths, and fills in `episode`, `terminal_observation` and `TimeLimit.truncated`
    where an episode ended, with the values of a `DummyVecEnv` of `Monitor`s. Subclasses implement `reset` (which calls
    `_begin_episodes`) and `_step_batch`.
    """

    render_mode: str | None = None

    def __init__(self, num_envs: int, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)
        self._actions: NDArray[Any] | None = None
        self._is_reset = False
        self.start_s = time.time()  # since 1970; episodes are dated from here
        super().__init__(num_envs, observation_space, action_space)

    @abstractmethod
    def _step_batch(self, actions: NDArray[Any]) -> BatchStep:
        """Step every environment; where an episode ends, begin the next one and update `reset_infos`."""

    def _check_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The actions in the form `_step_batch` takes; subclasses raise ActionError for bad ones."""
        return actions

    @property
    def _attribute_owner(self) -> Any:
        """The object whose attributes and methods all environments share."""
        return self

    def _begin_episodes(self) -> None:
        """Restart the counts of every environment and clear the pending seeds and options."""
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        self._actions = None
        self._is_reset = True

    def step_async(self, actions: NDArray[Any]) -> None:
        """Check the actions and keep them for `step_wait`."""
        self._actions = self._check_actions(actions)

    def step_wait(self) -> tuple[NDArray[Any], NDArray[np.float32], Mask, list[Info]]:
        """One step in every environment; where an episode ended, the next one has begun."""
        if not self._is_reset:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        actions, self._actions = self._actions, None
        if actions is None:
            raise ActionError("step_wait() without actions: call step_async(actions) first.")
        step = self._step_batch(actions)
        check_rewards(step.rewards)
        check_observations(step.obs)
        self._returns += step.rewards
        self._lengths += 1
        infos: list[Info] = [{} for _ in range(self.num_envs)]
        for index, info in step.infos.items():
            infos[index] = info
        ended = step.terminated | step.truncated
        if ended.any():
            check_final_observations(np.flatnonzero(ended).tolist(), step.final_obs)
            self._end_episodes(step, ended, infos)
        return step.obs, np.asarray(step.rewards, np.float32), ended, infos

    def _end_episodes(self, step: BatchStep, ended: Mask, infos: list[Info]) -> None:
        """Add what `DummyVecEnv` and `Monitor` add at the end of an episode, and restart the counts."""
        elapsed_s = round(time.time() - self.start_s, 6)
        for index, final_obs in zip(np.flatnonzero(ended).tolist(), step.final_obs, strict=True):
            infos[index] |= {
                "terminal_observation": final_obs,
                "TimeLimit.truncated": bool(step.truncated[index] and not step.terminated[index]),
                "episode": {
                    "r": round(float(self._returns[index]), 6),
                    "l": int(self._lengths[index]),
                    "t": elapsed_s,
                },
            }
        self._returns[ended], self._lengths[ended] = 0.0, 0

    def close(self) -> None:
        """Nothing to release; subclasses that hold something override this."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """The shared attribute, once for each environment asked for."""
        value = getattr(self._attribute_owner, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set the shared attribute; it cannot be set for some of the environments only."""
        self._check_all_indices(indices)
        setattr(self._attribute_owner, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call the shared method once; its result is repeated for each environment."""
        self._check_all_indices(indices)
        result = getattr(self._attribute_owner, method_name)(*method_args, **kwargs)
        return [result] * self.num_envs

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """True for `Monitor`, since the infos contain what it would add; False for any other wrapper."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def _check_all_indices(self, indices: VecEnvIndices) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ConfigError(
                f"indices: the environments of a batch share attributes and methods, got {indices!r:.40}; "
                f"leave `indices` out."
            )
