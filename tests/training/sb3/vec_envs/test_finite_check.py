"""Rewards and observations that are not finite are refused, and where they are is said."""

import gymnasium as gym
import numpy as np
import pytest

from hotlap.errors import EnvironmentDivergedError
from hotlap.training.sb3.vec_envs.finite_check import (
    CheckedDummyVecEnv,
    check_final_observations,
    check_observations,
    check_rewards,
)


def test_finite_values_and_whole_numbers_pass():
    check_rewards(np.array([1.0, -1e30]))
    check_observations(np.zeros((2, 3), np.float32))
    check_observations({"picture": np.full((2, 4, 4), 255, np.uint8), "row": np.zeros((2, 3))})
    check_final_observations([0, 1], [np.zeros(3), {"a": np.zeros(2)}])


def test_the_place_of_a_bad_value_is_said():
    with pytest.raises(EnvironmentDivergedError, match="the reward of environment 1 is inf"):
        check_rewards(np.array([0.0, np.inf]))
    obs = np.zeros((2, 2, 3))
    obs[1, 0, 2] = np.nan
    with pytest.raises(EnvironmentDivergedError, match=r"the observation of environment 1 is nan at index \[0, 2\]"):
        check_observations(obs)
    with pytest.raises(EnvironmentDivergedError, match="the observation 'row' of environment 0 is -inf"):
        check_observations({"row": np.array([[-np.inf]])})
    with pytest.raises(EnvironmentDivergedError, match="last observation of an episode of environment 4 is not finite"):
        check_final_observations([2, 4], [np.zeros(1), {"a": np.array([np.nan])}])


class Failing(gym.Env):
    """Gives NaN as the last observation of an episode."""

    observation_space = action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.full(1, np.nan, np.float32), 0.0, True, False, {}


def test_a_bad_last_observation_is_seen_although_the_next_episode_begins_well():
    env = CheckedDummyVecEnv([Failing])
    env.reset()
    with pytest.raises(EnvironmentDivergedError, match="the last observation of an episode of environment 0"):
        env.step(np.zeros((1, 1)))
