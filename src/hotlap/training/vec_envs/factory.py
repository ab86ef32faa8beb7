"""Makes the environments of a run: our cars, cars behind a bridge, any Gymnasium environment, or EnvPool's."""

import logging
from dataclasses import replace

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from hotlap.envs.registration import RACER_ID, REMOTE_RACER_ID
from hotlap.errors import StateError, TrainingError
from hotlap.sim.batch_cpu import default_threads
from hotlap.training.processes import ALONE, Processes
from hotlap.training.run_config import RacerOptions, RunConfig
from hotlap.training.state.state_tree import Tree
from hotlap.training.vec_envs.envpool import EnvPoolVecEnv
from hotlap.training.vec_envs.gymnasium_envs import capture_envs, make_gymnasium_envs, restore_envs
from hotlap.training.vec_envs.racer import RacerVecEnv
from hotlap.training.vec_envs.vector_env import GymVectorVecEnv

_log = logging.getLogger(__name__)

_RESTART = "Their episodes restart: the resumed run will not be bit-identical."


class TrainingEnvs:
    """A run's environments, or the part of one process; `env` is what the learner uses, including the normalizer."""

    def __init__(self, config: RunConfig, processes: Processes = ALONE) -> None:
        self._base_env = _make_base_env(config, processes)
        self.env: VecEnv = self._base_env
        try:
            _check_spaces(config, self._base_env)
            if config.normalize.is_on:
                self.env = _normalized(config, self._base_env)
        except BaseException:
            self._base_env.close()
            raise

    def capture(self) -> Tree:
        """The state of the environments; None if they cannot be saved."""
        if isinstance(self._base_env, RacerVecEnv):
            return self._base_env.get_state()
        if isinstance(self._base_env, EnvPoolVecEnv | GymVectorVecEnv):
            return None
        return capture_envs(self._base_env)

    def restore(self, saved: Tree) -> bool:
        """Restore the environments; False, with a warning, if their episodes have to restart."""
        if saved is None:
            _log.warning("These environments cannot be saved. %s", _RESTART)
            return False
        try:
            if isinstance(self._base_env, RacerVecEnv):
                self._base_env.set_state(saved)
            else:
                restore_envs(self._base_env, saved)
        except StateError as error:
            _log.warning("%s %s", error, _RESTART)
            return False
        return True

    def close(self) -> None:
        """Close the environments."""
        self.env.close()


def make_cars(racer: RacerOptions, num_cars: int, num_threads: int | None = None) -> RacerVecEnv:
    """Our cars in this process, with the track, observations and action repeat of a run."""
    return RacerVecEnv(
        num_cars,
        racer.track_ids,
        racer.config,
        action_repeat=racer.action_repeat,
        stack=racer.stack,
        lap_fourier=racer.lap_fourier,
        observation=racer.observation,
        num_threads=num_threads,
    )


def in_process(config: RunConfig) -> RunConfig:
    """The configuration with cars behind a bridge replaced by cars in this process; any other stays the same.

    Both kinds of cars are bit-identical, so models are evaluated here and drive either.
    """
    if config.env != REMOTE_RACER_ID:
        return config
    given = {"track": config.env_args.get("track_id"), "config": config.env_args.get("config")}
    racer = RacerOptions(**{name: value for name, value in given.items() if value is not None})
    return replace(config, env=RACER_ID, env_args={}, racer=racer)


def _make_base_env(config: RunConfig, processes: Processes) -> VecEnv:
    if config.is_racer and not processes.is_alone:
        num_threads = processes.num_threads(default_threads())
        return make_cars(config.racer, processes.share(config.num_envs, "num_envs"), num_threads)
    if config.is_racer:
        return make_cars(config.racer, config.num_envs)
    if config.env == REMOTE_RACER_ID:
        return _make_remote_cars(config)
    if config.backend == "envpool":
        return EnvPoolVecEnv(config.env, config.num_envs, config.seed, default_threads(), config.env_args)
    return make_gymnasium_envs(config.env, config.num_envs, config.seed, config.env_args)


def _make_remote_cars(config: RunConfig) -> GymVectorVecEnv:
    try:
        cars = gym.make_vec(
            config.env,
            num_envs=config.num_envs,
            vectorization_mode=gym.VectorizeMode.VECTOR_ENTRY_POINT,
            **config.env_args,
        )
    except TypeError as error:
        raise TrainingError(
            f"{config.env}: cannot be made with {dict(config.env_args)!r:.80} ({error}). Check env_args."
        ) from None
    return GymVectorVecEnv(cars)


def _normalized(config: RunConfig, env: VecEnv) -> VecNormalize:
    return VecNormalize(
        env,
        norm_obs=config.normalize.obs,
        norm_reward=config.normalize.reward,
        clip_obs=config.normalize.clip_obs,
        clip_reward=config.normalize.clip_reward,
        gamma=config.hyperparameters.gamma,
    )


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
