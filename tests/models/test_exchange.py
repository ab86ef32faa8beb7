"""What all exchange needs: a model's spaces, and files that are there whole or not at all."""

import gymnasium as gym
import pytest

from hotlap.envs.registration import RACER_ID
from hotlap.errors import ConfigError
from hotlap.models.exchange import spaces_of
from hotlap.models.model_file import ModelCard, PolicySettings


def card(environment, **more):
    return ModelCard("ppo", environment, 0, 0, "", "", PolicySettings(), "", "", **more)


def test_the_racer_shows_what_stack_and_waves_say():
    observations, actions = spaces_of(card(RACER_ID, stack=3, lap_fourier=4))
    assert (observations.shape, actions.shape) == ((3 * 14 + 2 * 4,), (3,))


def test_other_environments_are_asked_with_their_arguments():
    observations, actions = spaces_of(card("FrozenLake-v1", env_args={"map_name": "8x8"}))
    assert (observations, actions) == (gym.spaces.Discrete(64), gym.spaces.Discrete(4))


def test_an_unknown_environment_is_refused():
    with pytest.raises(ConfigError, match="'Nowhere-v0' is not known to Gymnasium"):
        spaces_of(card("Nowhere-v0"))
