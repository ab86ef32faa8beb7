"""Any Gymnasium environment as a VecEnv of stable-baselines3, whose running episodes can be saved and replayed."""

from collections.abc import Mapping
from typing import Any

from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from hotlap.envs.gym_registry import make_env
from hotlap.errors import StateError
from hotlap.learning.generators import decode_generator, encode_generator
from hotlap.training.sb3.vec_envs.finite_check import CheckedDummyVecEnv
from hotlap.training.sb3.vec_envs.replayable_env import ReplayableEnv, plain_options


def make_gymnasium_envs(env_id: str, num_envs: int, seed: int, env_args: Mapping[str, Any]) -> DummyVecEnv:
    """`num_envs` environments stepped in turn in this process; environment i is seeded `seed + i` at its first reset.

    Each is `gymnasium.make(env_id, **env_args)` in a `ReplayableEnv` in a `Monitor`.
    """

    def make_one(index: int) -> Monitor[Any, Any]:
        env = make_env(env_id, env_args)
        env.action_space.seed(seed + index)
        return Monitor(ReplayableEnv(env))

    venv = CheckedDummyVecEnv([lambda index=index: make_one(index) for index in range(num_envs)])  # type: ignore[misc]
    venv.seed(seed)
    return venv


def capture_envs(venv: VecEnv) -> dict[str, Any]:
    """The state of environments of `make_gymnasium_envs`, for a bit-identical continuation: arrays and plain JSON.

    `venv` may be wrapped (in VecNormalize, for example); the state of the wrappers is not included. Of the Monitor only
    the running episode is included, not the list of finished ones.
    """
    envs: Any = venv.unwrapped
    return {
        "environment": _name(envs),
        "num_envs": envs.num_envs,
        "seeds": list(envs._seeds),  # pending for the next reset, like the options
        "options": plain_options(envs._options),
        "envs": [_capture_one(monitor) for monitor in envs.envs],
    }


def restore_envs(venv: VecEnv, state: Mapping[str, Any]) -> None:
    """Restore a state of `capture_envs` by replaying the episodes up to where they were saved.

    If a replay does not reproduce the saved state, `StateError` is raised and the environments must be reset.
    """
    envs: Any = venv.unwrapped
    for key, here in (("environment", _name(envs)), ("num_envs", envs.num_envs)):
        if state.get(key) != here:
            raise StateError(
                f"state: {key} must be {here!r:.60}, got {state.get(key)!r:.60}. It was saved by another run."
            )
    try:
        for index, monitor in enumerate(envs.envs):
            _restore_one(envs, index, monitor, state["envs"][index])
        # A new VecEnv has seeds pending for its first reset; the saved one may have used them.
        envs._seeds, envs._options = list(state["seeds"]), list(state["options"])
    except (KeyError, IndexError) as error:
        raise StateError(f"state: {error!s:.60} is missing. Save it again with capture_envs().") from None


def _capture_one(monitor: Any) -> dict[str, Any]:
    return {
        **monitor.env.get_state(),
        "total_steps": monitor.total_steps,
        "action_rng": encode_generator(monitor.action_space.np_random),
    }


def _restore_one(envs: Any, index: int, monitor: Any, state: Mapping[str, Any]) -> None:
    env: ReplayableEnv = monitor.env
    # Monitor sums its own list of rewards when the episode ends.
    monitor.rewards = env.set_state(state)
    monitor.needs_reset = not env.has_begun
    monitor.total_steps = state["total_steps"]
    decode_generator(state["action_rng"], monitor.action_space.np_random)
    if env.has_begun:
        envs.reset_infos[index] = env.reset_info
        # The other buffers are written by the next step before they are read.
        envs._save_obs(index, env.last_observation)


def _name(envs: Any) -> str | None:
    spec = envs.envs[0].spec
    return spec.id if spec else None
