"""Makes the environments of a run: our cars, cars behind a bridge, any Gymnasium environment, or EnvPool's."""

import logging
from collections.abc import Mapping

from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from hotlap.errors import StateError, TrainingError
from hotlap.runs.run_config import RacerOptions, RunConfig
from hotlap.runs.state_tree import Tree
from hotlap.sim.batch_cpu import default_threads
from hotlap.training.sb3.vec_envs.envpool import EnvPoolVecEnv
from hotlap.training.sb3.vec_envs.gymnasium_envs import GymnasiumVecEnv
from hotlap.training.sb3.vec_envs.racer import RacerVecEnv

_log = logging.getLogger(__name__)

_RESTART = "Their episodes restart: the resumed run will not be bit-identical."


class TrainingEnvs:
    """A run's environments; `env` is what the learner uses, including the normalizer."""

    def __init__(self, config: RunConfig) -> None:
        self._is_remote = config.is_remote
        self.base_env = _make_base_env(config)
        self.env: VecEnv = self.base_env
        try:
            _check_spaces(config, self.base_env)
            if config.normalize.is_on:
                self.env = VecNormalize(
                    self.base_env,
                    norm_obs=config.normalize.obs,
                    norm_reward=config.normalize.reward,
                    clip_obs=config.normalize.clip_obs,
                    clip_reward=config.normalize.clip_reward,
                    gamma=config.hyperparameters.gamma,
                )
        except BaseException:
            self.base_env.close()
            raise

    def capture(self) -> Tree:
        """The state of the environments; None if they cannot be saved."""
        return None if isinstance(self.base_env, EnvPoolVecEnv) else self.base_env.get_state()

    def restore(self, saved: Tree) -> bool:
        """Restore the environments; False, with a warning, if their episodes have to restart.

        Cars behind a bridge are restored exactly, or StateError is raised.
        """
        if saved is None or isinstance(self.base_env, EnvPoolVecEnv):
            _log.warning("These environments cannot be saved. %s", _RESTART)
            return False
        try:
            self.base_env.set_state(saved)
        except StateError as error:
            if self._is_remote:
                raise
            _log.warning("%s %s", error, _RESTART)
            return False
        return True

    def close(self) -> None:
        """Close the environments."""
        self.env.close()


def make_cars(racer: RacerOptions, num_cars: int, bridge: Mapping[str, str] | None = None) -> RacerVecEnv:
    """Our cars, in this process or behind a `bridge`, with the track, observations and action repeat of a run."""
    return RacerVecEnv(
        num_cars,
        racer.track_ids,
        racer.settings(),
        action_repeat=racer.action_repeat,
        stack=racer.stack,
        lap_fourier=racer.lap_fourier,
        observation=racer.observation,
        bridge=bridge,
    )


def _make_base_env(config: RunConfig) -> RacerVecEnv | EnvPoolVecEnv | GymnasiumVecEnv:
    if config.is_racer:
        return make_cars(config.racer, config.num_envs, config.env_args if config.is_remote else None)
    if config.backend == "envpool":
        return EnvPoolVecEnv(config.env, config.num_envs, config.seed, default_threads(), config.env_args)
    return GymnasiumVecEnv(config.env, config.num_envs, config.seed, config.env_args)


def _check_spaces(config: RunConfig, env: VecEnv) -> None:
    """Raise TrainingError for spaces that the algorithm or the normalizer cannot use."""
    actions = env.action_space
    if config.hyperparameters.needs_continuous_actions and not isinstance(actions, spaces.Box):
        raise TrainingError(
            f"{config.algo.upper()} needs continuous actions; those of {config.env} are {actions}. Use PPO or A2C."
        )
    if config.normalize.obs and not isinstance(env.observation_space, spaces.Box):
        raise TrainingError(
            f"{config.env}: its observations, {env.observation_space!s:.80}, cannot be normalized. "
            f"Set normalize.obs to false."
        )
