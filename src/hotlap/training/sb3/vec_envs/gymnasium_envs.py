"""Any Gymnasium environment as a VecEnv of stable-baselines3, whose running episodes can be saved and replayed."""

from collections.abc import Mapping
from typing import Any

from stable_baselines3.common.monitor import Monitor

from hotlap.envs.gym_registry import make_env
from hotlap.errors import StateError
from hotlap.learning.generators import decode_generator, encode_generator
from hotlap.training.sb3.vec_envs.finite_check import CheckedDummyVecEnv
from hotlap.training.sb3.vec_envs.replayable_env import ReplayableEnv, plain_options


class GymnasiumVecEnv(CheckedDummyVecEnv):
    """`num_envs` environments stepped in turn in this process; environment i is seeded `seed + i` at its first reset.

    Each is `gymnasium.make(env_id, **env_args)` in a `ReplayableEnv` in a `Monitor`.
    """

    def __init__(self, env_id: str, num_envs: int, seed: int, env_args: Mapping[str, Any]) -> None:
        def make_one(index: int) -> Monitor[Any, Any]:
            env = make_env(env_id, env_args)
            env.action_space.seed(seed + index)
            return Monitor(ReplayableEnv(env))

        super().__init__([lambda index=index: make_one(index) for index in range(num_envs)])  # type: ignore[misc]
        self.seed(seed)

    def get_state(self) -> dict[str, Any]:
        """All that a bit-identical continuation needs: arrays and plain JSON.

        Of the Monitor only the running episode is included, not the list of finished ones.
        """
        return {
            **self._kind(),
            "seeds": list(self._seeds),  # pending for the next reset, like the options
            "options": plain_options(self._options),
            "envs": [_capture_one(monitor) for monitor in self.envs],
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `get_state` by replaying the episodes up to where they were saved.

        If a replay does not reproduce the saved state, `StateError` is raised and the environments must be reset.
        """
        for key, here in self._kind().items():
            if state.get(key) != here:
                raise StateError(
                    f"state: {key} must be {here!r:.60}, got {state.get(key)!r:.60}. It was saved by another run."
                )
        try:
            for index in range(self.num_envs):
                self._restore_one(index, state["envs"][index])
            # A new VecEnv has seeds pending for its first reset; the saved one may have used them.
            self._seeds, self._options = list(state["seeds"]), list(state["options"])
        except (KeyError, IndexError) as error:
            raise StateError(f"state: {error!s:.60} is missing. Save it again with get_state().") from None

    def _kind(self) -> dict[str, Any]:
        """What the environments of a state must have in common with these."""
        spec = self.envs[0].spec
        return {"environment": spec.id if spec else None, "num_envs": self.num_envs}

    def _restore_one(self, index: int, state: Mapping[str, Any]) -> None:
        monitor: Any = self.envs[index]
        env: ReplayableEnv = monitor.env
        # Monitor sums its own list of rewards when the episode ends.
        monitor.rewards = env.set_state(state)
        monitor.needs_reset = not env.has_begun
        monitor.total_steps = state["total_steps"]
        decode_generator(state["action_rng"], monitor.action_space.np_random)
        if env.has_begun:
            self.reset_infos[index] = env.reset_info
            # The other buffers are written by the next step before they are read.
            self._save_obs(index, env.last_observation)


def _capture_one(monitor: Any) -> dict[str, Any]:
    return {
        **monitor.env.get_state(),
        "total_steps": monitor.total_steps,
        "action_rng": encode_generator(monitor.action_space.np_random),
    }
