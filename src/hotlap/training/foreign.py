"""Any Gymnasium environment as stable-baselines3's VecEnv; its worlds saved in mid-episode and rebuilt by replay."""

import difflib
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from hotlap.errors import ConfigError, HotlapError, StateError, TrainingError
from hotlap.training.replay import ReplayableEnv, decode_generator, encode_generator, one_line, plain_options

_SIMPLE_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def make_foreign_vecenv(env_id: str, num_envs: int, seed: int, env_args: Mapping[str, Any]) -> DummyVecEnv:
    """`num_envs` environments one after another in this process; environment i is seeded `seed + i` at its first reset.

    Each is `gymnasium.make(env_id, **env_args)` that can be replayed, inside SB3's `Monitor`.
    """
    if num_envs < 1:
        raise ConfigError(f"num_envs must be 1 or more, got {num_envs}.")
    if seed < 0:
        raise ConfigError(f"seed must be zero or more, got {seed}.")

    def make_one(index: int) -> Monitor[Any, Any]:
        env = make_env(env_id, env_args)
        env.action_space.seed(seed + index)
        return Monitor(ReplayableEnv(env))

    venv = DummyVecEnv([lambda index=index: make_one(index) for index in range(num_envs)])  # type: ignore[misc]
    venv.seed(seed)
    return venv


def make_env(env_id: str, env_args: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """`gymnasium.make`, with everything that can go wrong said in one line."""
    try:
        env: gym.Env[Any, Any] = gym.make(env_id, **env_args)
    except HotlapError:
        raise
    except (gym.error.DependencyNotInstalled, ImportError) as error:
        raise TrainingError(f"environment {env_id!r:.80} needs a package to be installed: {one_line(error)}.") from None
    except gym.error.Error as error:
        raise _refusal(env_id, error) from None
    # Whatever the constructor of an environment that is not ours may raise: assertions, type errors, its own kinds.
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
    """What Gymnasium's registry says of an environment, without making it; without a version it is the newest."""
    env_id = env_id.split(":")[-1]  # the package that registers it, where it had to be named, is imported by now
    try:
        namespace, name, version = registration.parse_env_id(env_id)
        if version is None and env_id not in gym.registry:
            version = registration.find_highest_version(namespace, name)
        return gym.spec(registration.get_env_id(namespace, name, version))
    except gym.error.Error as error:
        raise _refusal(env_id, error) from None


def check_spaces(env_id: str, observation_space: spaces.Space[Any], action_space: spaces.Space[Any]) -> None:
    """Refuse spaces that stable-baselines3 cannot learn with."""
    seen = observation_space.spaces.values() if isinstance(observation_space, spaces.Dict) else (observation_space,)
    for space in seen:
        if not isinstance(space, _SIMPLE_SPACES):
            raise ConfigError(
                f"environment {env_id!r:.80}: observations must be Box, Discrete, MultiDiscrete, MultiBinary or a flat "
                f"Dict of these, got {space!s:.60}. Wrap it, e.g. in FlattenObservation, under an id of its own."
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
        raise ConfigError(f"environment {env_id!r:.80}: actions {rule}, got {action_space!s:.60}. Wrap it to suit.")


def capture_worlds(venv: VecEnv) -> dict[str, Any]:
    """Everything that worlds of `make_foreign_vecenv` need to go on bit for bit: nested arrays and plain JSON.

    `venv` may be wrapped (VecNormalize and the like), but the wrappers' own state is not in here. Of SB3's Monitor the
    running episode is kept, not the list of those that ended.
    """
    worlds = _worlds(venv)
    return {
        "environment": _name(worlds),
        "num_envs": worlds.num_envs,
        "seeds": list(worlds._seeds),  # for the next reset, as are the options
        "options": plain_options(worlds._options),
        "worlds": [_capture_one(monitor) for monitor in worlds.envs],
    }


def restore_worlds(venv: VecEnv, state: Mapping[str, Any]) -> None:
    """Put worlds where `capture_worlds` found others of the same kind, by playing their episodes again up to there.

    An environment that does not come out where it was raises `StateError`; the worlds are then good for nothing but a
    reset.
    """
    worlds = _worlds(venv)
    for key, here in (("environment", _name(worlds)), ("num_envs", worlds.num_envs)):
        if state.get(key) != here:
            raise StateError(f"state: {key} is {state.get(key)!r:.60} there and {here!r:.60} here; they must agree.")
    try:
        for index, monitor in enumerate(worlds.envs):
            _restore_one(worlds, index, monitor, state["worlds"][index])
        # A fresh VecEnv has seeds waiting for its first reset; here that reset may have been.
        worlds._seeds, worlds._options = list(state["seeds"]), list(state["options"])
    except (KeyError, IndexError) as error:
        raise StateError(f"state: {error!s:.60} is missing. Save it again with capture_worlds().") from None


def _capture_one(monitor: Any) -> dict[str, Any]:
    return {
        **_replayable(monitor).get_state(),
        "total_steps": monitor.total_steps,
        "action_chance": encode_generator(monitor.action_space.np_random),
    }


def _restore_one(worlds: DummyVecEnv, index: int, monitor: Any, state: Mapping[str, Any]) -> None:
    env = _replayable(monitor)
    # The Monitor adds up its own list of rewards when the episode ends.
    monitor.rewards = env.set_state(state)
    monitor.needs_reset = not env.has_begun
    monitor.total_steps = state["total_steps"]
    decode_generator(state["action_chance"], monitor.action_space.np_random)
    if env.has_begun:
        worlds.reset_infos[index] = env.reset_info
        # The other buffers are written by a step before anyone reads them.
        worlds._save_obs(index, env.last_observation)


def _worlds(venv: VecEnv) -> DummyVecEnv:
    worlds = venv.unwrapped
    if not isinstance(worlds, DummyVecEnv):
        raise StateError(f"worlds of type {type(worlds).__name__} cannot be saved here; use make_foreign_vecenv.")
    return worlds


def _replayable(monitor: gym.Env[Any, Any]) -> ReplayableEnv:
    env = monitor.env if isinstance(monitor, Monitor) else monitor
    if not isinstance(env, ReplayableEnv):
        raise StateError(f"environment {env!s:.60} keeps no record of its episode; use make_foreign_vecenv.")
    return env


def _name(worlds: DummyVecEnv) -> str | None:
    spec = worlds.envs[0].spec
    return spec.id if spec else None


def _refusal(env_id: str, error: gym.error.Error) -> ConfigError:
    if not isinstance(error, gym.error.UnregisteredEnv):
        return ConfigError(f"environment {env_id!r:.80}: {one_line(error)}.")
    known = {name.lower(): name for name in gym.registry}
    close = sorted((name for name in known if env_id.lower() in name), key=len)
    close = close or difflib.get_close_matches(env_id.lower(), known, n=1)
    hint = f"Did you mean {known[close[0]]!r}?" if close else "If another package registers it, write 'package:Id-v0'."
    return ConfigError(f"environment {env_id!r:.80} is not known to Gymnasium. {hint}")
