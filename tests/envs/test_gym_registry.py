"""Environments by their Gymnasium id: found, made, and refused in one line."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from hotlap.envs.gym_registry import find_spec, make_env, reward_threshold
from hotlap.errors import ConfigError, TrainingError, UnknownTrackError


@pytest.mark.parametrize(
    ("env_id", "env_args", "words"),
    [
        ("LunarLandr-v3", {}, "'LunarLandr-v3' is not known.*Did you mean 'LunarLander-v3'"),
        ("LunarLander-v99", {}, "Did you mean 'LunarLander-v3'"),
        ("cartpole-v1", {}, "Did you mean 'CartPole-v1'"),
        ("racer", {}, "Did you mean 'hotlap/Racer-v0'"),
        ("other/Racer-v0", {}, "Did you mean 'hotlap/Racer-v0'"),
        ("xyzzy-v0", {}, "'package:Id-v0'"),
        ("", {}, "[Mm]alformed"),
        ("a b", {}, "[Mm]alformed"),
        ("CartPole-v1", {"wheels": 3}, r"cannot be made with \{'wheels': 3\}.*'wheels'.*Check env_args"),
        ("hotlap/Racer-v0", {"config": {"episode": {"maxstep": 3}}}, "maxstep"),
        ("Blackjack-v1", {}, "observations must be Box.*got Tuple"),
    ],
)
def test_environments_that_cannot_be_made_give_a_one_line_error(env_id, env_args, words):
    with pytest.raises(ConfigError, match=words) as caught:
        make_env(env_id, env_args)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_an_outdated_version_suggests_the_new_one():
    with pytest.warns(DeprecationWarning, match="out of date"), pytest.raises(ConfigError, match="LunarLander-v3"):
        make_env("LunarLander-v2", {})


def test_errors_of_hotlap_pass_unchanged():
    with pytest.raises(UnknownTrackError, match="'nowhere' is not known"):
        make_env("hotlap/Racer-v0", {"track_id": "nowhere"})


def test_a_missing_dependency_is_named_with_the_install_command(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("gymnasium.envs.box2d", "Box2D"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(TrainingError, match=r"'LunarLander-v3' needs a package.*pip install.*box2d") as caught:
        make_env("LunarLander-v3", {})
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_named():
    with pytest.raises(TrainingError, match="No module named 'nopackage'"):
        make_env("nopackage:Car-v0", {})


@pytest.mark.parametrize(
    ("observations", "actions", "words"),
    [
        (spaces.Dict({"a": spaces.Dict({"b": spaces.Discrete(2)})}), spaces.Discrete(2), "flat Dict"),
        (spaces.Text(3), spaces.Discrete(2), "observations must be"),
        (spaces.Discrete(2), spaces.Dict({"a": spaces.Discrete(2)}), "actions must be Box"),
        (spaces.Discrete(2), spaces.Discrete(2, start=1), "actions must count from 0"),
        (spaces.Discrete(2), spaces.MultiDiscrete([[2, 3]]), "actions must be one row"),
        (spaces.Discrete(2), spaces.MultiDiscrete([2, 3], start=[0, 1]), "actions must be one row"),
        (spaces.Discrete(2), spaces.Box(-np.inf, np.inf, (2,)), "actions must have finite bounds"),
    ],
)
def test_unsupported_spaces_are_refused(observations, actions, words, monkeypatch):
    class Odd(gym.Env):
        observation_space = observations
        action_space = actions

        def close(self) -> None:
            closed.append(self)

    closed: list[Odd] = []
    monkeypatch.setitem(gym.registry, "Odd-v0", EnvSpec("Odd-v0", entry_point=Odd))
    with pytest.raises(ConfigError, match=words):
        make_env("Odd-v0", {})
    assert len(closed) == 1


def test_find_spec_accepts_ids_with_and_without_version_and_package():
    assert find_spec("LunarLander-v3").id == "LunarLander-v3"
    assert find_spec("CartPole").id == "CartPole-v1"
    assert find_spec("gymnasium:CartPole-v1").id == "CartPole-v1"
    with pytest.raises(ConfigError, match="Did you mean 'CartPole-v1'"):
        find_spec("CartPool-v1")


@pytest.mark.parametrize(
    ("env_id", "threshold"),
    [
        ("LunarLander-v3", 200.0),
        ("CartPole-v1", 475.0),
        ("CartPole", 475.0),
        ("hotlap/Racer-v0", None),
        ("Pendulum-v1", None),
    ],
)
def test_the_reward_threshold_is_the_registered_one(env_id, threshold):
    assert reward_threshold(env_id) == threshold
    assert threshold is None or type(reward_threshold(env_id)) is float


def test_the_threshold_of_an_unknown_environment_is_an_error():
    with pytest.raises(ConfigError, match="not known"):
        reward_threshold("xyzzy-v0")
