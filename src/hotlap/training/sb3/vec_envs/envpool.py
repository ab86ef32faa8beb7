"""EnvPool's compiled environments as a VecEnv of stable-baselines3.

Its LunarLander-v3 steps several times as fast as Gymnasium's. Its environments cannot be saved, because neither their
physics nor their generators can be read or set: a run over them does not resume bit-identically.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from hotlap.errors import ActionError, ConfigError, TrainingError, closest, did_you_mean, one_line
from hotlap.training.sb3.vec_envs.base import BatchStep, BatchVecEnv

NO_LIMIT = 2**31 - 1  # EnvPool's max_episode_steps for episodes without a time limit

# Arguments of EnvPool that the run's configuration decides, or that would make environments answer out of order.
RESERVED = {"num_envs", "num_threads", "seed", "env_seed", "batch_size"}


class EnvPoolVecEnv(BatchVecEnv):
    """`num_envs` environments stepped by EnvPool's `num_threads` threads; environment i is seeded `seed + i`.

    Infos are empty except where an episode ended.

    EnvPool itself begins the next episode one step late, with a step that ignores its action; here the first
    observation is fetched at once. EnvPool also reports a truncation if an episode terminates on the last allowed step;
    here the pool is given one step more, and this class applies the time limit.
    """

    def __init__(
        self, env_id: str, num_envs: int, seed: int, num_threads: int, env_args: Mapping[str, Any] | None = None
    ) -> None:
        env_args = env_args or {}
        for key in RESERVED & set(env_args):
            raise ConfigError(f"env_args: {key} is set by the run's configuration. Leave it out.")
        self.env_id = env_id
        self._arguments = {**env_args, "num_envs": num_envs, "num_threads": num_threads}
        spec = _make_spec(env_id, self._arguments)
        limit = spec.config.max_episode_steps
        self.max_episode_steps: int | None = limit if 0 < limit < NO_LIMIT else None
        if self.max_episode_steps is not None:
            self._arguments["max_episode_steps"] = self.max_episode_steps + 1
        super().__init__(num_envs, *_checked_spaces(env_id, spec))
        self.action_space.seed(seed)
        self._pool: Any = None
        self.seed(seed)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed environment i with `seed + i` at the next reset, which makes a new pool; None draws a random seed."""
        return super().seed(int(np.random.default_rng().integers(2**31)) if seed is None else seed)

    def reset(self) -> NDArray[Any]:
        """Begin an episode in every environment, with the pending seeds if there are any."""
        if any(self._options):
            raise ConfigError(
                f"{self.env_id}: EnvPool's environments take no reset options, got {self._options!r:.60}."
            )
        if self._seeds[0] is not None:
            self._pool = _make_pool(self.env_id, [seed for seed in self._seeds if seed is not None], self._arguments)
        elif self._pool is None:
            raise TrainingError("reset() of a closed environment: call seed() first, or make a new one.")
        self._begin_episodes()
        obs, _ = self._pool.reset()
        return np.array(obs)

    def _step_batch(self, actions: NDArray[Any]) -> BatchStep:
        obs, rewards, terminated, truncated, about = self._pool.step(actions)
        obs = np.array(obs)
        if self.max_episode_steps is not None:
            truncated = truncated | (about["elapsed_step"] >= self.max_episode_steps)
        ended = np.flatnonzero(terminated | truncated)
        final_obs = list(obs[ended])
        if ended.size:
            first_obs, about = self._pool.reset(ended)
            obs[about["env_id"]] = first_obs
        return BatchStep(obs, rewards.astype(np.float32), terminated, truncated, {}, final_obs)

    def close(self) -> None:
        """Release the pool and its threads."""
        self._pool, self._is_reset = None, False

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Raises ConfigError: EnvPool's environments have no attributes."""
        raise ConfigError(f"{self.env_id}: EnvPool's environments have no attributes to set, got {attr_name!r}.")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Raises ConfigError: EnvPool's environments have no methods."""
        raise ConfigError(f"{self.env_id}: EnvPool's environments have no methods to call, got {method_name!r}.")

    def _check_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        # Compiled code would read past the end of an array that is too short.
        space = self.action_space
        actions = np.asarray(actions)
        shape = (self.num_envs, *(space.shape or ()))
        if actions.shape != shape:
            raise ActionError(f"actions must have shape {shape}, got {actions.shape}; nothing moved.")
        if isinstance(space, spaces.Discrete):
            if actions.dtype.kind not in "iu" or actions.min() < 0 or actions.max() >= space.n:
                raise ActionError(f"actions must be whole numbers from 0 to {space.n - 1}; nothing moved.")
        elif not np.isfinite(actions).all():
            raise ActionError("actions must be finite; nothing moved.")
        return actions


def _import_envpool() -> Any:
    try:
        import envpool
    except ImportError as error:
        raise TrainingError(
            f"EnvPool is not installed ({one_line(error)}): pip install 'hotlap[lunar]' (Linux, Python 3.11 or newer), "
            f"or use the gymnasium backend."
        ) from None
    return envpool


def _make_spec(env_id: str, arguments: Mapping[str, Any]) -> Any:
    """EnvPool's specification of an environment: its configuration and spaces."""
    envpool = _import_envpool()
    known = envpool.list_all_envs()
    if env_id not in known:
        hint = did_you_mean(closest(env_id, known), "Use the gymnasium backend.")
        raise ConfigError(f"environment {env_id!r:.80} is not among EnvPool's. {hint}")
    try:
        return envpool.make_spec(env_id, **arguments)
    # EnvPool checks arguments with assertions and in compiled code, so any exception may come.
    except Exception as error:
        raise ConfigError(
            f"environment {env_id!r:.80}: EnvPool refuses {dict(arguments)!r:.80} ({one_line(error)}). Check env_args."
        ) from error


def _make_pool(env_id: str, seeds: Sequence[int], arguments: Mapping[str, Any]) -> Any:
    # EnvPool's seeds are signed 32-bit integers.
    folded = [(seed + 2**31) % 2**32 - 2**31 for seed in seeds]
    pool = _import_envpool().make_gymnasium(env_id, seed=folded, **arguments)
    _spaces_of(pool, "")  # makes the pool's spaces while their warning is suppressed
    return pool


def _spaces_of(source: Any, prefix: str) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Observation and action space of a pool or a spec; they are made on first access."""
    with warnings.catch_warnings():
        # EnvPool writes the bounds as float64; the user cannot do anything about it.
        warnings.filterwarnings("ignore", ".*precision lowered by casting", UserWarning)
        return getattr(source, f"{prefix}observation_space"), getattr(source, f"{prefix}action_space")


def _checked_spaces(env_id: str, spec: Any) -> tuple[spaces.Box, spaces.Box | spaces.Discrete]:
    """Observation and action space; ConfigError if this adapter does not support them."""
    observations, actions = _spaces_of(spec, "gymnasium_")
    if not isinstance(observations, spaces.Box) or spec.config.max_num_players != 1:
        raise ConfigError(
            f"environment {env_id!r:.80}: with EnvPool observations must be one player's Box, got {observations!s:.60}."
        )
    if not isinstance(actions, spaces.Box | spaces.Discrete):
        raise ConfigError(
            f"environment {env_id!r:.80}: with EnvPool actions must be Box or Discrete, got {actions!s:.60}."
        )
    return _with_true_bounds(observations), actions


def _with_true_bounds(space: spaces.Box) -> spaces.Box:
    """The space with infinite bounds where EnvPool writes the smallest positive and the largest number."""
    low, high = space.low.copy(), space.high.copy()
    if low.dtype.kind != "f":
        return space
    limits = np.finfo(low.dtype.name)
    low[(low == limits.tiny) | (low == limits.min)] = -np.inf
    high[high == limits.max] = np.inf
    return spaces.Box(low, high, dtype=low.dtype.type)
