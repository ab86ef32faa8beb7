"""Find and make environments by their Gymnasium id; every failure becomes a one-line error.

An id is looked up in Gymnasium's registry and never imported: `gymnasium.make("module:Id")` would run any module whose
name is in a file. A module that registers environments is imported only if the user names it (`import_allowed`).
"""

import importlib
import inspect
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec

from hotlap.errors import ConfigError, HotlapError, TrainingError, closest, did_you_mean, one_line

_SIMPLE_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# Text in arguments from a file: names of maps or modes. Paths, URLs, file names and module:name need other characters.
_WORD = re.compile(r"[A-Za-z0-9_-]{0,64}")
_MAKE_ARGUMENTS = {"max_episode_steps", "disable_env_checker"}  # of gymnasium.make itself
MAX_ARGUMENT_VALUES = 10_000  # in arguments from a file, lists counted with their items


def import_allowed(modules: Sequence[str]) -> None:
    """Import the modules that the user named on the command line, so that they register their environments.

    The names must come from the user, never from a file.
    """
    for module in modules:
        if not _MODULE.fullmatch(module):
            raise ConfigError(f"--allow-import: {module!r:.80} is not the name of a module. Write it as in Python.")
        try:
            importlib.import_module(module)
        # A module may raise anything when it is imported.
        except Exception as error:
            raise TrainingError(
                f"--allow-import {module:.80}: cannot be imported ({type(error).__name__}: {one_line(error)}). "
                "Install it, or add its folder to PYTHONPATH."
            ) from None


def check_env_id(env_id: str, allowed: Collection[str] = ()) -> str:
    """The id without its module part; refused if that module is not one of those the user allowed."""
    module, colon, name = env_id.rpartition(":")
    if colon and module not in allowed:
        raise ConfigError(
            f"environment {env_id!r:.80} would import a module, which runs its code. "
            f"If you trust it, add --allow-import {module if _MODULE.fullmatch(module) else 'MODULE':.60}."
        )
    return name


def check_env_args(env_id: str, env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments from a file, if the registered environment is known to take them and they are harmless.

    Known are the arguments of its registration and those in the signature of its entry point, `**kwargs` excepted.
    Values are plain data, and text in them cannot be a path, a URL or the name of something to import.
    """
    if not env_args:
        return {}
    known = _known_arguments(find_spec(env_id))
    for name, value in env_args.items():
        if name not in known:
            raise ConfigError(
                f"environment {env_id!r:.80} is not known to take the argument {name!r:.40}. "
                f"Known are {', '.join(sorted(known)):.160}."
            )
        _check_harmless(f"environment {env_id!r:.80}: argument {name}", value)
    if env_args.get("render_mode") == "human":
        raise ConfigError(f"environment {env_id!r:.80}: a file cannot open a window (render_mode 'human').")
    return dict(env_args)


def _known_arguments(spec: EnvSpec) -> set[str]:
    try:
        entry_point: Any = spec.entry_point
        creator: Any = registration.load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    except (gym.error.DependencyNotInstalled, ImportError) as error:
        raise _missing_package(spec.id, error) from None
    # An environment often passes **kwargs on to the classes it derives from.
    functions: list[Any] = [creator]
    if isinstance(creator, type):
        functions = [vars(base)["__init__"] for base in creator.__mro__[:-1] if "__init__" in vars(base)]
    known = _MAKE_ARGUMENTS | set(spec.kwargs)
    for function in filter(callable, functions):
        parameters = inspect.signature(function).parameters.values()
        known |= {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    return known - {"self"}


def _check_harmless(where: str, value: Any) -> None:
    values, count = [value], 0
    while values:
        item = values.pop()
        count += 1
        if count > MAX_ARGUMENT_VALUES:
            raise ConfigError(f"{where} holds more than {MAX_ARGUMENT_VALUES} values.")
        if isinstance(item, Mapping):
            values += [*item, *item.values()]
        elif isinstance(item, list | tuple):
            values += item
        elif isinstance(item, str):
            if not _WORD.fullmatch(item):
                raise ConfigError(
                    f"{where}: text from a file must be a plain word (A-Z, a-z, 0-9, _, -), got {item!a:.60}."
                )
        elif item is not None and not isinstance(item, int | float):
            raise ConfigError(f"{where} must be plain data, got {type(item).__name__}.")


def _missing_package(env_id: str, error: Exception) -> TrainingError:
    return TrainingError(f"environment {env_id!r:.80} needs a package to be installed: {one_line(error)}.")


def make_env(env_id: str, env_args: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """`gymnasium.make` for a registered id, with spaces checked and every failure as a one-line error."""
    env_id = check_env_id(env_id)
    try:
        env: gym.Env[Any, Any] = gym.make(env_id, **env_args)
    except HotlapError:
        raise
    except (gym.error.DependencyNotInstalled, ImportError) as error:
        raise _missing_package(env_id, error) from None
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
    env_id = check_env_id(env_id)
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
    longer = (name for name in known if env_id.lower() in name)
    close = min(longer, key=len, default=None) or closest(env_id.lower(), known)
    hint = did_you_mean(close and known[close], "If another package registers it, add --allow-import PACKAGE.")
    return ConfigError(f"environment {env_id!r:.80} is not known to Gymnasium. {hint}")


def reward_threshold(env_id: str) -> float | None:
    """The mean return at which the environment counts as solved; None if its registration has none."""
    threshold = find_spec(env_id).reward_threshold
    return None if threshold is None else float(threshold)
