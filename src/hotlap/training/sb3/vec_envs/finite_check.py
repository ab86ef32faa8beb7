"""Refuses rewards and observations that are not finite, before the learner or the normalizer sees them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from hotlap.errors import EnvironmentDivergedError


def check_rewards(rewards: NDArray[Any]) -> None:
    """Raise DivergedError for a reward that is not finite; `rewards` is (num_envs,)."""
    if not np.isfinite(rewards).all():
        index = int(np.flatnonzero(~np.isfinite(rewards))[0])
        raise EnvironmentDivergedError(f"the reward of environment {index} is {rewards[index]}")


def check_observations(obs: Any) -> None:
    """Raise DivergedError for an observation that is not finite: (num_envs, …), or a dict of these."""
    for key, part in obs.items() if isinstance(obs, dict) else ((None, obs),):
        if np.issubdtype(part.dtype, np.floating) and not np.isfinite(part).all():
            index, *place = (int(axis[0]) for axis in np.nonzero(~np.isfinite(part)))
            name = "observation" if key is None else f"observation {key!r}"
            raise EnvironmentDivergedError(
                f"the {name} of environment {index} is {part[(index, *place)]} at index {place}"
            )


def check_final_observations(indices: Iterable[int], finals: Iterable[Any]) -> None:
    """Raise DivergedError where the last observation of an episode is not finite: returns are bootstrapped from it."""
    for index, obs in zip(indices, finals, strict=True):
        for part in obs.values() if isinstance(obs, dict) else (obs,):
            if not np.isfinite(part).all():
                raise EnvironmentDivergedError(
                    f"the last observation of an episode of environment {index} is not finite"
                )


class CheckedDummyVecEnv(DummyVecEnv):
    """`DummyVecEnv` whose rewards and observations are checked."""

    def reset(self) -> VecEnvObs:
        """Reset every environment."""
        obs = super().reset()
        check_observations(obs)
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        """One step in every environment."""
        obs, rewards, dones, infos = super().step_wait()
        check_rewards(rewards)
        check_observations(obs)
        if dones.any():
            ended = np.flatnonzero(dones).tolist()
            check_final_observations(ended, [infos[index]["terminal_observation"] for index in ended])
        return obs, rewards, dones, infos
