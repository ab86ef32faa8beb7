"""Environments by their Gymnasium id: found, made, and refused in one line."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from hotlap.envs.gym_registry import (
    check_env_args,
    check_env_id,
    find_spec,
    import_allowed,
    make_env,
    reward_threshold,
)
from hotlap.errors import ConfigError, TrainingError, UnknownTrackError


@pytest.mark.parametrize(
    ("env_id", "env_args", "words"),
    [
        ("LunarLandr-v3", {}, "'LunarLandr-v3' is not known.*Did you mean 'LunarLander-v3'"),
        ("LunarLander-v99", {}, "Did you mean 'LunarLander-v3'"),
        ("cartpole-v1", {}, "Did you mean 'CartPole-v1'"),
        ("racer", {}, "Did you mean 'hotlap/Racer-v0'"),
        ("other/Racer-v0", {}, "Did you mean 'hotlap/Racer-v0'"),
        ("xyzzy-v0", {}, "add --allow-import PACKAGE"),
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


# --- modules and arguments named in a file ---


@pytest.fixture
def canary(tmp_path, monkeypatch):
    """A module that registers an environment when it is imported."""
    (tmp_path / "canary.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('Canary-v0', entry_point='gymnasium.envs.classic_control.cartpole:CartPoleEnv')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "canary"
    sys.modules.pop("canary", None)
    gym.registry.pop("Canary-v0", None)


@pytest.mark.parametrize("read", [find_spec, reward_threshold, check_env_id, lambda env_id: make_env(env_id, {})])
@pytest.mark.parametrize("env_id", ["canary:CartPole-v1", "canary:Canary-v0", "a:canary:CartPole-v1", ":CartPole-v1"])
def test_an_id_with_a_module_is_refused_and_not_imported(canary, read, env_id):
    with pytest.raises(ConfigError, match=r"would import a module.*If you trust it, add --allow-import"):
        read(env_id)
    assert canary not in sys.modules


def test_a_module_that_the_user_allows_is_imported_and_no_other_is(canary):
    import_allowed([canary])
    assert check_env_id("canary:Canary-v0", [canary]) == check_env_id("Canary-v0", [canary]) == "Canary-v0"
    make_env("Canary-v0", {}).close()
    for env_id in ("canary.more:Canary-v0", "can:Canary-v0", "os:canary:Canary-v0"):
        with pytest.raises(ConfigError, match="would import a module"):
            check_env_id(env_id, [canary])


def test_a_module_that_cannot_be_imported_gives_a_one_line_error(tmp_path, monkeypatch):
    (tmp_path / "broken_canary.py").write_text("raise RuntimeError('two\\nlines')")
    monkeypatch.syspath_prepend(tmp_path)
    for name, words in (("nopackage", "No module named 'nopackage'"), ("broken_canary", "RuntimeError: two lines")):
        with pytest.raises(TrainingError, match=rf"--allow-import {name}: cannot be imported.*{words}") as caught:
            import_allowed([name])
        assert "\n" not in str(caught.value)
    for name in ("", ".relative", "a/b", "a b", "a:b"):
        with pytest.raises(ConfigError, match="is not the name of a module"):
            import_allowed([name])


@pytest.mark.parametrize(
    ("env_id", "env_args"),
    [
        ("CartPole-v1", {}),
        ("CartPole-v1", {"sutton_barto_reward": True, "max_episode_steps": 7}),
        ("LunarLanderContinuous-v3", {"continuous": True, "gravity": -9.5}),
        ("FrozenLake-v1", {"desc": ["SF", "FG"], "map_name": "4x4", "render_mode": None}),
    ],
)
def test_arguments_that_the_environment_takes_are_accepted(env_id, env_args):
    assert check_env_args(env_id, env_args) == env_args


def test_arguments_of_a_base_class_are_known(monkeypatch):
    class Base(gym.Env):
        def __init__(self, *, size=3):
            self.size = size

    class Derived(Base):
        def __init__(self, speed=1, **others):
            super().__init__(**others)

    monkeypatch.setitem(gym.registry, "Derived-v0", EnvSpec("Derived-v0", entry_point=Derived))
    assert check_env_args("Derived-v0", {"size": 4, "speed": 2}) == {"size": 4, "speed": 2}
    for name in ("others", "self", "more"):
        with pytest.raises(ConfigError, match=f"not known to take the argument '{name}'. Known are .*size, speed"):
            check_env_args("Derived-v0", {name: 1})


@pytest.mark.parametrize(
    ("env_id", "env_args", "words"),
    [
        ("CartPole-v1", {"wheels": 3}, "not known to take the argument 'wheels'"),
        ("CartPole-v1", {"id": "CartPole-v0"}, "argument 'id'"),
        ("FrozenLake-v1", {"map_name": "../../secret"}, "must be a plain word"),
        ("FrozenLake-v1", {"map_name": "secret.xml"}, "must be a plain word"),
        ("FrozenLake-v1", {"desc": [["ws://a"]]}, "must be a plain word"),
        ("FrozenLake-v1", {"desc": {"a:b": 1}}, "must be a plain word"),
        ("FrozenLake-v1", {"desc": [0] * 20_000}, "more than 10000 values"),
        ("FrozenLake-v1", {"desc": {1, 2}}, "must be plain data, got set"),
        ("FrozenLake-v1", {"render_mode": "human"}, "cannot open a window"),
        ("hotlap/RemoteRacer-v0", {"bridge_url": "ws://127.0.0.1:1"}, "must be a plain word"),
        ("hotlap/RemoteRacer-v0", {"bridge_url": "//127.0.0.1"}, "must be a plain word"),
        ("Nowhere-v0", {"a": 1}, "not known to Gymnasium"),
    ],
)
def test_other_arguments_from_a_file_are_refused(env_id, env_args, words):
    with pytest.raises(ConfigError, match=words) as caught:
        check_env_args(env_id, env_args)
    assert "\n" not in str(caught.value)


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


def test_find_spec_accepts_ids_with_and_without_version():
    assert find_spec("LunarLander-v3").id == "LunarLander-v3"
    assert find_spec("CartPole").id == "CartPole-v1"
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
