"""The environments of a run: our cars, any Gymnasium environment, or EnvPool's, with what a checkpoint keeps of them."""

import logging
from typing import Any, Protocol

from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from hotlap.errors import StateError, TrainingError
from hotlap.training.envpool_worlds import EnvPoolVecEnv
from hotlap.training.foreign import capture_worlds, make_foreign_vecenv, restore_worlds
from hotlap.training.run_config import RunConfig
from hotlap.training.trees import Tree
from hotlap.training.vecenv import RacerVecEnv

_log = logging.getLogger(__name__)


class _Keeps(Protocol):
    def get_state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...


class Worlds:
    """A run's environments; `env` is what the learner sees, normalizer included."""

    def __init__(self, config: RunConfig) -> None:
        self._bare = _make_bare(config)
        _check_spaces(config, self._bare)
        self.env: VecEnv = self._bare
        if config.normalize.is_on:
            self.env = VecNormalize(
                self._bare,
                norm_obs=config.normalize.obs,
                norm_reward=config.normalize.reward,
                clip_obs=config.normalize.clip_obs,
                clip_reward=config.normalize.clip_reward,
                gamma=config.hyperparameters.gamma,
            )

    def capture(self) -> Tree:
        """What the environments need to go on; None where they cannot be captured."""
        if isinstance(self._bare, RacerVecEnv):
            return self._bare.get_state()
        if isinstance(self._bare, EnvPoolVecEnv):
            return None
        return capture_worlds(self._bare)

    def restore(self, saved: Tree) -> bool:
        """Put the environments back; False where their episodes had to start anew, which is then said aloud."""
        if saved is None:
            _log.warning(
                "these worlds cannot be saved: their episodes start anew, so the run will not be bit-identical."
            )
            return False
        try:
            if isinstance(self._bare, RacerVecEnv):
                self._bare.set_state(saved)
            else:
                restore_worlds(self._bare, saved)
        except StateError as error:
            _log.warning("%s The episodes start anew, so the run will not be bit-identical.", error)
            return False
        return True

    def close(self) -> None:
        """Let the environments go."""
        self.env.close()


def _make_bare(config: RunConfig) -> VecEnv:
    if config.is_racer:
        world = config.world
        return RacerVecEnv(
            config.num_envs, world.track, world.config, action_repeat=world.action_repeat, stack=world.stack
        )
    if config.backend == "envpool":
        return EnvPoolVecEnv(config.env, config.num_envs, config.seed)
    return make_foreign_vecenv(config.env, config.num_envs, config.seed, config.env_args)


def _check_spaces(config: RunConfig, env: VecEnv) -> None:
    """Before the learning library asserts on them."""
    actions = env.action_space
    if config.algo == "sac" and not isinstance(actions, spaces.Box):
        raise TrainingError(f"SAC needs continuous actions; those of {config.env} are {actions}. Use PPO or A2C.")
    if config.algo != "sac" and not isinstance(
        actions, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
    ):
        raise TrainingError(f"{config.env}: its actions, {actions}, are of a kind that {config.algo} cannot learn.")
    if config.normalize.obs and not isinstance(env.observation_space, spaces.Box):
        raise TrainingError(f"{config.env}: its observations, {env.observation_space}, cannot be normalized.")
