"""Find and make environments by their Gymnasium id; every failure becomes a one-line error."""

import difflib
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec

from hotlap.errors import ConfigError, HotlapError, TrainingError, one_line

_SIMPLE_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def make_env(env_id: str, env_args: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """`gymnasium.make`, with spaces checked and every failure as a one-line error."""
    try:
        env: gym.Env[Any, Any] = gym.make(env_id, **env_args)
    except HotlapError:
        raise
    except (gym.error.DependencyNotInstalled, ImportError) as error:
        raise TrainingError(f"environment {env_id!r:.80} needs a package to be installed: {one_line(error)}.") from None
    except gym.error.Error as error:
        raise _registry_error(env_id, error) from None
    # The constructor of a third-party environment may raise anything.
    except Exception as error:
        raise ConfigError(
            f"environment {env_id!r:.80} cannot be made with {dict(env_args)!r:.80} "
            f"({type(error).__name__}: {one_line(error)}). Check env_args."
        ) from error
    try:
        check_spaces(env_id, env.observation_space, env.action_space)
    except ConfigError:
        env.close()
        raise
    return env


def find_spec(env_id: str) -> EnvSpec:
    """The registered spec of an environment, without making it; an id without a version means the newest one."""
    env_id = env_id.split(":")[-1]  # 'package:Id-v0': the package has been imported by now
    try:
        namespace, name, version = registration.parse_env_id(env_id)
        if version is None and env_id not in gym.registry:
            version = registration.find_highest_version(namespace, name)
        return gym.spec(registration.get_env_id(namespace, name, version))
    except gym.error.Error as error:
        raise _registry_error(env_id, error) from None


def check_spaces(env_id: str, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
    """Raise ConfigError for spaces that stable-baselines3 cannot learn with."""
    parts = observation_space.spaces.values() if isinstance(observation_space, spaces.Dict) else (observation_space,)
    for space in parts:
        if not isinstance(space, _SIMPLE_SPACES):
            raise ConfigError(
                f"environment {env_id!r:.80}: observations must be Box, Discrete, MultiDiscrete, MultiBinary or a flat "
                f"Dict of these, got {space!s:.60}. Register a wrapped version, e.g. with FlattenObservation."
            )
    rule = None
    if not isinstance(action_space, _SIMPLE_SPACES):
        rule = "must be Box, Discrete, MultiDiscrete or MultiBinary"
    elif isinstance(action_space, spaces.Box) and not action_space.is_bounded("both"):
        rule = "must have finite bounds"
    elif isinstance(action_space, spaces.Discrete) and action_space.start != 0:
        rule = "must count from 0"
    elif isinstance(action_space, spaces.MultiDiscrete) and (action_space.nvec.ndim != 1 or action_space.start.any()):
        rule = "must be one row of choices that count from 0"
    if rule:
        raise ConfigError(
            f"environment {env_id!r:.80}: actions {rule}, got {action_space!s:.60}. Register a wrapped version."
        )


def _registry_error(env_id: str, error: gym.error.Error) -> ConfigError:
    if not isinstance(error, gym.error.UnregisteredEnv):
        return ConfigError(f"environment {env_id!r:.80}: {one_line(error)}.")
    known = {name.lower(): name for name in gym.registry}
    close = sorted((name for name in known if env_id.lower() in name), key=len)
    close = close or difflib.get_close_matches(env_id.lower(), known, n=1)
    hint = f"Did you mean {known[close[0]]!r}?" if close else "If another package registers it, write 'package:Id-v0'."
    return ConfigError(f"environment {env_id!r:.80} is not known to Gymnasium. {hint}")


def reward_threshold(env_id: str) -> float | None:
    """The mean return at which the environment counts as solved; None if its registration has none."""
    threshold = find_spec(env_id).reward_threshold
    return None if threshold is None else float(threshold)
