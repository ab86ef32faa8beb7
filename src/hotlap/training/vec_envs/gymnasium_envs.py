"""Any Gymnasium environment as stable-baselines3's VecEnv; its worlds saved in mid-episode and rebuilt by replay."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from hotlap.envs.gym_registry import make_env
from hotlap.errors import ConfigError, StateError
from hotlap.training.state.rng_state import decode_generator, encode_generator
from hotlap.training.vec_envs.replayable_env import ReplayableEnv, plain_options


def make_gymnasium_envs(env_id: str, num_envs: int, seed: int, env_args: Mapping[str, Any]) -> DummyVecEnv:
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


def capture_envs(venv: VecEnv) -> dict[str, Any]:
    """Everything that worlds of `make_gymnasium_envs` need to go on bit for bit: nested arrays and plain JSON.

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


def restore_envs(venv: VecEnv, state: Mapping[str, Any]) -> None:
    """Put worlds where `capture_envs` found others of the same kind, by playing their episodes again up to there.

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
        raise StateError(f"state: {error!s:.60} is missing. Save it again with capture_envs().") from None


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
        raise StateError(f"worlds of type {type(worlds).__name__} cannot be saved here; use make_gymnasium_envs.")
    return worlds


def _replayable(monitor: gym.Env[Any, Any]) -> ReplayableEnv:
    env = monitor.env if isinstance(monitor, Monitor) else monitor
    if not isinstance(env, ReplayableEnv):
        raise StateError(f"environment {env!s:.60} keeps no record of its episode; use make_gymnasium_envs.")
    return env


def _name(worlds: DummyVecEnv) -> str | None:
    spec = worlds.envs[0].spec
    return spec.id if spec else None
