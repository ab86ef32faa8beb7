"""`RacerVecEnv`: our cars as stable-baselines3's VecEnv, in one compiled call, infos only where something ended."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices

from hotlap.envs.fleet import FleetState, check_repeat
from hotlap.envs.observations import ObservationStack, stacked_observation_space
from hotlap.envs.racer import DEFAULT_TRACK, RESET_COLUMNS, Info, start_option, step_info
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.envs.settings import SettingsSource
from hotlap.envs.spaces import NUM_ACTIONS, action_space, as_actions
from hotlap.errors import ActionError, ConfigError, StateError
from hotlap.sim.world import NUM_OBSERVATIONS

StepReturn = tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[Info]]

# The first columns of the simulator's infos.
REWARD_TERMS = ("progress", "speed", "wall", "offTrack", "backward", "stillness")

# In a saved state, the fleet's columns have this before their names, so that they meet no other.
_WORLD = "world."
# Starts asked for at the next reset, by their numbers in a saved state; _NO_START leaves it to the settings.
_STARTS = ("line", "random")
_NO_START = -1


class RacerVecEnv(VecEnv):
    """Cars on one track, or on several in turn, each as `DummyVecEnv` would run a `RacerEnv` in a `Monitor`.

    A step is one decision: `action_repeat` ticks with one action, and then the last `stack` observations, oldest first,
    and `lap_fourier` waves over the lap.
    The info of a car that finished neither a lap nor an episode is empty. Car i of a batch seeded s is `RacerEnv`
    seeded s + i, bit for bit.
    """

    render_mode: str | None = None

    def __init__(
        self,
        num_envs: int,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        *,
        action_repeat: int = 1,
        stack: int = 1,
        lap_fourier: int = 0,
        num_threads: int | None = None,
    ) -> None:
        check_repeat(action_repeat)
        observations = stacked_observation_space(stack, lap_fourier)
        self.fleet = RacerVectorEnv(num_envs, track_id, config, num_threads=num_threads).fleet
        self.action_repeat, self.stack, self.lap_fourier = action_repeat, stack, lap_fourier
        self._stack = ObservationStack(num_envs, stack, NUM_OBSERVATIONS, lap_fourier)
        self._returns = np.zeros(num_envs, np.float64)
        self._lengths = np.zeros(num_envs, np.int64)
        self._is_seeded = False
        self._actions: NDArray[np.float32] | None = None
        self._ended: NDArray[np.bool_] | None = None  # on the last step; None where there was none
        self._made_s = time.time()
        super().__init__(num_envs, observations, action_space())

    # --- seeds, options, reset ---

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Seed car i with `seed` + i at the next reset."""
        if seed is not None and (not isinstance(seed, int | np.integer) or seed < 0):
            raise ConfigError(f"seed must be a whole number from 0, got {seed!r:.40}.")
        return super().seed(None if seed is None else int(seed))

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Options of the next reset (`{"start": "random"}`), for all cars or in a list for each."""
        each = options if isinstance(options, list) else [options]
        for one in each:
            start_option(one)
        if isinstance(options, list) and len(options) != self.num_envs:
            raise ConfigError(f"options: a list needs one dict for each of the {self.num_envs} cars, got {len(each)}.")
        super().set_options(options)

    def reset(self) -> NDArray[np.float32]:
        """Begin an episode for every car; seeds and options that were set are used up."""
        if self._seeds[0] is not None:
            self.fleet.seed(self._pending_seeds())
        elif not self._is_seeded:
            # Not from numpy's global generator: that one is the learner's, and resuming a run counts on its draws.
            first = np.random.default_rng().integers(2**62, dtype=np.uint64)
            self.fleet.seed(first + np.arange(self.num_envs, dtype=np.uint64))
        else:
            self.fleet.next_episode()
        starts = self._pending_starts()
        for code in np.unique(starts).tolist():
            self.fleet.reset(start=None if code == _NO_START else _STARTS[code], mask=starts == code)
        self._is_seeded = True
        self._reset_seeds()
        self._reset_options()
        self._actions = self._ended = None
        self._returns[:] = 0.0
        self._lengths[:] = 0
        self._stack.begin(self.fleet.batch.obs)
        self.reset_infos = _reset_infos(self.fleet.batch.infos)
        return self._stack.value

    def _pending_seeds(self) -> NDArray[np.uint64]:
        return np.array([0 if seed is None else seed % 2**64 for seed in self._seeds], np.uint64)

    def _pending_starts(self) -> NDArray[np.int8]:
        starts = (options.get("start") for options in self._options)
        return np.array([_NO_START if start is None else _STARTS.index(start) for start in starts], np.int8)

    # --- steps ---

    def step_async(self, actions: NDArray[np.float32]) -> None:
        """Take the actions (num_envs, 3) for `step_wait`."""
        self._actions = as_actions(actions, (self.num_envs, NUM_ACTIONS))

    def step_wait(self) -> StepReturn:
        """One decision for every car; one that ended begins its next episode at once.

        An action that is not finite is an error, and nothing moves.
        """
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        actions, self._actions = self._actions, None
        if actions is None:
            raise ActionError("step_wait() without actions: call step_async(actions) first.")
        self.fleet.step(actions, autoreset=True, repeat=self.action_repeat)
        batch = self.fleet.batch
        rewards = batch.rewards.copy()
        self._ended = batch.terminated | batch.truncated
        self._returns += rewards
        self._lengths += 1
        infos: list[Info] = [{} for _ in range(self.num_envs)]
        for car in np.flatnonzero(~np.isnan(batch.infos["lapTime"])).tolist():
            infos[car] = step_info(batch.infos[car].item())
        if self._ended.any():
            self._end_episodes(self._ended, infos)
        else:
            self._stack.push(batch.obs)
        return self._stack.value, rewards, self._ended.copy(), infos

    def _end_episodes(self, ended: NDArray[np.bool_], infos: list[Info]) -> None:
        """Fill the infos of the cars that ended, and begin their next episodes in all that is counted here."""
        batch, cars = self.fleet.batch, np.flatnonzero(ended)
        obs = batch.obs.copy()
        obs[cars] = batch.final_obs[cars]
        self._stack.push(obs)
        seen_last = self._stack.value[cars]
        self._stack.begin(batch.obs, ended)
        seconds = round(time.time() - self._made_s, 6)
        for row, car in enumerate(cars.tolist()):
            infos[car] = step_info(batch.final_infos[car].item()) | {
                "terminal_observation": seen_last[row],
                "TimeLimit.truncated": bool(batch.truncated[car] and not batch.terminated[car]),
                "episode": {"r": round(float(self._returns[car]), 6), "l": int(self._lengths[car]), "t": seconds},
            }
        self._returns[cars] = 0.0
        self._lengths[cars] = 0
        for car, info in zip(cars.tolist(), _reset_infos(batch.infos[cars]), strict=True):
            self.reset_infos[car] = info

    @property
    def reward_term_means(self) -> Mapping[str, float]:
        """The last step's six reward terms, each the mean over all cars; empty where there was no step."""
        if self._ended is None:
            return {}
        batch = self.fleet.batch
        terms = _reward_terms(batch.infos).copy()
        if self._ended.any():
            terms[:, self._ended] = _reward_terms(batch.final_infos)[:, self._ended]
        return dict(zip(REWARD_TERMS, terms.mean(axis=1, dtype=np.float64).tolist(), strict=True))

    # --- saving ---

    def get_state(self) -> FleetState:
        """All it takes to go on bit for bit, as arrays: world, running episodes, stack, seeds and starts to come."""
        return {
            **{_WORLD + name: column for name, column in self.fleet.get_state().items()},
            **self._stack.get_state(),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
            "is_seeded": np.array(self._is_seeded),
            "has_seeds": np.array(self._seeds[0] is not None),
            "seeds": self._pending_seeds(),
            "starts": self._pending_starts(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that `get_state` gave; refused, with nothing changed, if it does not fit."""
        if not isinstance(state, Mapping) or set(state) != set(own := self.get_state()):
            raise StateError("state: its columns are not this version's. Save it again with get_state().")
        new = {name: np.asarray(column) for name, column in state.items()}
        for name in ("returns", "lengths", "is_seeded", "has_seeds", "seeds", "starts"):
            if new[name].shape != own[name].shape or new[name].dtype != own[name].dtype:
                raise StateError(
                    f"state: column {name!r} must be {own[name].dtype} of shape {own[name].shape}, "
                    f"got {new[name].dtype} of shape {new[name].shape}."
                )
        if not np.isfinite(new["returns"]).all() or (new["lengths"] < 0).any():
            raise StateError("state: returns must be finite and lengths not negative.")
        if (new["starts"] < _NO_START).any() or (new["starts"] >= len(_STARTS)).any():
            raise StateError(f"state: column 'starts' must be from {_NO_START} to {len(_STARTS) - 1}.")
        stack = ObservationStack(self.num_envs, self.stack, NUM_OBSERVATIONS, self.lap_fourier)
        stack.set_state({name: new[name] for name in stack.get_state()})
        self.fleet.set_state({name.removeprefix(_WORLD): new[name] for name in new if name.startswith(_WORLD)})
        self._stack = stack
        self._returns, self._lengths = new["returns"].copy(), new["lengths"].copy()
        self._is_seeded = bool(new["is_seeded"])
        self._seeds = new["seeds"].tolist() if new["has_seeds"] else [None] * self.num_envs
        self._options = [{} if code == _NO_START else {"start": _STARTS[code]} for code in new["starts"].tolist()]
        self._actions = self._ended = None

    # --- what else stable-baselines3 asks of a VecEnv; the cars share every attribute ---

    def close(self) -> None:
        """Nothing to let go of."""

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute, once for each car asked for."""
        value = getattr(self, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of all cars; of some it cannot be set."""
        self._check_all_meant(indices)
        setattr(self, attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of this batch, for all cars in one go; its result stands once for each car."""
        self._check_all_meant(indices)
        result = getattr(self, method_name)(*method_args, **kwargs)
        return [result] * self.num_envs

    def env_is_wrapped(
        self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: VecEnvIndices = None
    ) -> list[bool]:
        """True for `Monitor`, since infos say what it would say; false for any other wrapper."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def _check_all_meant(self, indices: VecEnvIndices) -> None:
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise ConfigError("indices: the cars of a batch share attributes and methods; leave `indices` out.")


def _reset_infos(infos: NDArray[np.void]) -> list[Info]:
    """What `RacerEnv.reset` would tell of each car."""
    columns = (infos[column].tolist() for column in RESET_COLUMNS.values())
    return [dict(zip(RESET_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]


def _reward_terms(infos: NDArray[np.void]) -> NDArray[np.float32]:
    """The six reward terms of each car, (6, num_cars), as a view: six columns looked up one by one take far longer."""
    return infos.view(np.float32).reshape(len(infos), -1)[:, : len(REWARD_TERMS)].T
