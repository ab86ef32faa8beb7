"""EnvPool's compiled environments as stable-baselines3's VecEnv.

Its LunarLander-v3 steps several times as fast as Gymnasium's. The price: its worlds cannot be saved, since neither
their physics nor their generators can be read or set; a run over them cannot be resumed bit for bit.
"""

import difflib
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvStepReturn

from hotlap.errors import ActionError, ConfigError, TrainingError, one_line

NO_LIMIT = 2**31 - 1  # steps; EnvPool's way to say that an episode may last for ever

# Arguments of EnvPool's that are the run's business, or would let environments answer out of turn.
RESERVED = {"num_envs", "num_threads", "seed", "env_seed", "batch_size"}


class EnvPoolVecEnv(VecEnv):
    """`num_envs` environments stepped by EnvPool's `num_threads` threads; environment i is seeded `seed + i`.

    Infos are empty but where an episode ended: there they hold `terminal_observation`, `TimeLimit.truncated` and
    `episode`, as SB3's DummyVecEnv and Monitor would say them.

    EnvPool by itself goes on to the next episode one step late, with an action that counts for nothing; here the first
    observation is fetched at once. EnvPool also calls an episode truncated that really ended in its last allowed step;
    here the pool is given one step more, and the limit is kept by us.
    """

    def __init__(
        self, env_id: str, num_envs: int, seed: int, num_threads: int, env_args: Mapping[str, Any] | None = None
    ) -> None:
        if num_envs < 1 or num_threads < 1:
            raise ConfigError(f"num_envs and num_threads must be 1 or more, got {num_envs} and {num_threads}.")
        env_args = env_args or {}
        for key in RESERVED & set(env_args):
            raise ConfigError(f"env_args: {key} is not the environment's to set. Leave it out.")
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
        self._actions: NDArray[Any] | None = None
        self._returns = np.zeros(num_envs)
        self._begin_s = time.time()
        self.seed(seed)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Give environment i the seed `seed + i` (none: one from the system) at the next reset, in a pool made anew."""
        return super().seed(int(np.random.default_rng().integers(2**31)) if seed is None else seed)

    def reset(self) -> NDArray[Any]:
        """Begin an episode everywhere; where seeds are pending, with those."""
        if any(self._options):
            raise ConfigError(
                f"{self.env_id}: EnvPool's environments take no reset options, got {self._options!r:.60}."
            )
        if self._seeds[0] is not None:
            self._pool = _make_pool(self.env_id, [seed for seed in self._seeds if seed is not None], self._arguments)
            self._reset_seeds()
        elif self._pool is None:
            raise TrainingError("reset() of a closed environment.")
        self._returns[:] = 0.0
        obs, _ = self._pool.reset()
        return np.array(obs)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions; a wrong shape, a choice that does not exist or a value that is not finite is refused."""
        if self._pool is None:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        self._actions = self._as_actions(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """The step's results; where an episode ended, the observation is the next one's first."""
        obs, rewards, terminated, truncated, about = self._pool.step(self._actions)
        obs, rewards = np.array(obs), rewards.astype(np.float32)
        lengths = about["elapsed_step"]
        dones = terminated | truncated
        if self.max_episode_steps is not None:
            dones |= lengths >= self.max_episode_steps
        self._returns += rewards
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        ended = np.flatnonzero(dones)
        if ended.size:
            seconds = round(time.time() - self._begin_s, 6)
            for i in ended:
                infos[i] = {
                    "TimeLimit.truncated": not terminated[i],
                    "terminal_observation": obs[i].copy(),
                    "episode": {"r": round(float(self._returns[i]), 6), "l": int(lengths[i]), "t": seconds},
                }
            first, about = self._pool.reset(ended)
            obs[about["env_id"]] = first
            self._returns[ended] = 0.0
        return obs, rewards, dones, infos

    def close(self) -> None:
        """Let the pool and its threads go."""
        self._pool = None

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of this object, once for each environment: they have none of their own."""
        if attr_name == "render_mode":
            return [None for _ in self._get_indices(indices)]
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refused: EnvPool's environments have no attributes."""
        raise ConfigError(f"{self.env_id}: EnvPool's environments have no attributes to set, asked for {attr_name!r}.")

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any) -> list[Any]:
        """Refused: EnvPool's environments have no methods."""
        raise ConfigError(f"{self.env_id}: EnvPool's environments have no methods to call, asked for {method_name!r}.")

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """True for SB3's Monitor, since infos say what it would say."""
        return [issubclass(wrapper_class, Monitor) for _ in self._get_indices(indices)]

    def _as_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """Checked: compiled code would read whatever lies beyond an array that is too short."""
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
    """EnvPool's description of an environment: its configuration and spaces."""
    envpool = _import_envpool()
    known = envpool.list_all_envs()
    if env_id not in known:
        close = difflib.get_close_matches(env_id, known, n=1)
        hint = f"Did you mean {close[0]!r}?" if close else "Use the gymnasium backend."
        raise ConfigError(f"environment {env_id!r:.80} is not among EnvPool's. {hint}")
    try:
        return envpool.make_spec(env_id, **arguments)
    # EnvPool checks arguments with assertions and in compiled code; each family of environments in its own way.
    except Exception as error:
        raise ConfigError(
            f"environment {env_id!r:.80}: EnvPool refuses {dict(arguments)!r:.80} ({one_line(error)})."
        ) from error


def _make_pool(env_id: str, seeds: Sequence[int], arguments: Mapping[str, Any]) -> Any:
    # EnvPool's seeds are signed numbers of 32 bits.
    folded = [(seed + 2**31) % 2**32 - 2**31 for seed in seeds]
    pool = _import_envpool().make_gymnasium(env_id, seed=folded, **arguments)
    _spaces_of(pool, "")
    return pool


def _spaces_of(source: Any, prefix: str) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Observation and action space of a pool or a spec, which make them when first asked."""
    with warnings.catch_warnings():
        # About bounds that EnvPool writes as float64 and nobody reads: not the user's business.
        warnings.filterwarnings("ignore", ".*precision lowered by casting", UserWarning)
        return getattr(source, f"{prefix}observation_space"), getattr(source, f"{prefix}action_space")


def _checked_spaces(env_id: str, spec: Any) -> tuple[spaces.Box, spaces.Box | spaces.Discrete]:
    """Observation and action space, if they are of the kinds that this adapter takes."""
    seen, taken = _spaces_of(spec, "gymnasium_")
    if not isinstance(seen, spaces.Box) or spec.config.max_num_players != 1:
        raise ConfigError(
            f"environment {env_id!r:.80}: over EnvPool observations must be one player's Box, got {seen!s:.60}."
        )
    if not isinstance(taken, spaces.Box | spaces.Discrete):
        raise ConfigError(
            f"environment {env_id!r:.80}: over EnvPool actions must be Box or Discrete, got {taken!s:.60}."
        )
    return _with_true_bounds(seen), taken


def _with_true_bounds(space: spaces.Box) -> spaces.Box:
    """EnvPool says "unbounded" with the smallest positive and the largest number."""
    low, high = space.low.copy(), space.high.copy()
    if low.dtype.kind != "f":
        return space
    limits = np.finfo(low.dtype.name)
    low[(low == limits.tiny) | (low == limits.min)] = -np.inf
    high[high == limits.max] = np.inf
    return spaces.Box(low, high, dtype=low.dtype.type)
