"""`RacerVecEnv`: our cars as a VecEnv of stable-baselines3, stepped in one compiled call."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import FleetState, check_repeat
from hotlap.envs.fleet_vector import AnyFleet
from hotlap.envs.infos import RESET_COLUMNS, REWARD_KEYS, Info, step_info
from hotlap.envs.observations import ObservationStack, stacked_observation_space
from hotlap.envs.racer import start_option
from hotlap.envs.racer_vector import make_fleet_env
from hotlap.envs.settings import SettingsSource, StartName
from hotlap.envs.spaces import (
    DEFAULT_OBSERVATION,
    ObservationName,
    action_space,
    as_actions,
    num_observations,
)
from hotlap.errors import ConfigError, StateError
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK
from hotlap.training.sb3.vec_envs.base import BatchStep, BatchVecEnv, Mask

# Prefix of the fleet's columns in a saved state, so that their names cannot clash with ours.
_WORLD = "world."
# Starts asked for at the next reset, by their index in a saved state; with _NO_START the settings decide.
_STARTS = get_args(StartName)
_NO_START = -1


class RacerVecEnv(BatchVecEnv):
    """Cars on one track, or on several in turn, each as `DummyVecEnv` would run a `RacerEnv` in a `Monitor`.

    A step is one decision: `action_repeat` ticks with one action. The observation is the last `stack` observations,
    oldest first, followed by `lap_fourier` sines and cosines of the lap progress. Infos are sparse: one is filled only
    if the car completed a lap or its episode ended. Car i of a batch seeded s equals `RacerEnv` seeded s + i, bit for
    bit. `bridge` is as in `make_fleet_env`.
    """

    def __init__(
        self,
        num_envs: int,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        *,
        action_repeat: int = 1,
        stack: int = 1,
        lap_fourier: int = 0,
        observation: ObservationName = DEFAULT_OBSERVATION,
        num_threads: int | None = None,
        bridge: Mapping[str, str] | None = None,
    ) -> None:
        check_repeat(action_repeat)
        observations = stacked_observation_space(stack, lap_fourier, observation)
        self._cars = make_fleet_env(
            num_envs,
            track_id,
            config,
            observation=observation,
            action_repeat=action_repeat,
            num_threads=num_threads,
            bridge=bridge,
        )
        self.fleet: AnyFleet = self._cars.fleet
        self.action_repeat, self.stack, self.lap_fourier = action_repeat, stack, lap_fourier
        self._num_observations = num_observations(observation)
        self._stack = ObservationStack(num_envs, stack, self._num_observations, lap_fourier)
        self._ended: Mask | None = None  # which episodes ended on the last step; None before the first step
        super().__init__(num_envs, observations, action_space())

    def close(self) -> None:
        """Disconnect from the bridge, where the cars are behind one."""
        self._cars.close()

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
        """Begin an episode for every car with the pending seeds and options."""
        if self._seeds[0] is not None:
            self.fleet.seed(self._pending_seeds())
        elif not self._is_reset:
            # Not from NumPy's global generator: the learner uses that one, and its draws must not change on resume.
            first = np.random.default_rng().integers(2**62, dtype=np.uint64)
            self.fleet.seed(first + np.arange(self.num_envs, dtype=np.uint64))
        else:
            self.fleet.next_episode()
        starts = self._pending_starts()
        for code in np.unique(starts).tolist():
            self.fleet.reset(start=None if code == _NO_START else _STARTS[code], mask=starts == code)
        self._begin_episodes()
        self._ended = None
        self._stack.begin(self.fleet.batch.obs)
        self.reset_infos = _reset_infos(self.fleet.batch.infos)
        return self._stack.value

    def _pending_seeds(self) -> NDArray[np.uint64]:
        return np.array([0 if seed is None else seed % 2**64 for seed in self._seeds], np.uint64)

    def _pending_starts(self) -> NDArray[np.int8]:
        starts = (options.get("start") for options in self._options)
        return np.array([_NO_START if start is None else _STARTS.index(start) for start in starts], np.int8)

    # --- steps ---

    def _check_actions(self, actions: NDArray[Any]) -> NDArray[np.float32]:
        return as_actions(actions, (self.num_envs, NUM_ACTIONS))

    def _step_batch(self, actions: NDArray[Any]) -> BatchStep:
        self.fleet.step(actions, autoreset=True, repeat=self.action_repeat)
        batch = self.fleet.batch
        self._ended = batch.terminated | batch.truncated
        finished_lap = np.flatnonzero(~np.isnan(batch.infos["lapTime"])).tolist()
        infos = {car: step_info(batch.infos[car].item()) for car in finished_lap}
        final_obs: list[NDArray[np.float32]] = []
        if self._ended.any():
            cars = np.flatnonzero(self._ended)
            infos |= {car: step_info(batch.final_infos[car].item()) for car in cars.tolist()}
            for car, info in zip(cars.tolist(), _reset_infos(batch.infos[cars]), strict=True):
                self.reset_infos[car] = info
            final_obs = list(self._stack_over_ends(self._ended))
        else:
            self._stack.push(batch.obs)
        rewards = batch.rewards.copy()
        return BatchStep(self._stack.value, rewards, batch.terminated, batch.truncated, infos, final_obs)

    def _stack_over_ends(self, ended: Mask) -> NDArray[np.float32]:
        """Push a step on which episodes ended and begin their next ones; returns their last stacked observations."""
        batch, cars = self.fleet.batch, np.flatnonzero(ended)
        obs = batch.obs.copy()
        obs[cars] = batch.final_obs[cars]
        self._stack.push(obs)
        final_obs: NDArray[np.float32] = self._stack.value[cars]
        self._stack.begin(batch.obs, ended)
        return final_obs

    def ended_laps_and_episodes(self, ended: Mask) -> tuple[NDArray[np.int64], NDArray[np.void]]:
        """The cars with a lap or an episode that ended on the last step, and their infos; `ended` are the episodes."""
        batch = self.fleet.batch
        cars = np.flatnonzero(ended | ~np.isnan(batch.infos["lapTime"]))
        return cars, np.where(ended[cars], batch.final_infos[cars], batch.infos[cars])

    @property
    def reward_term_means(self) -> Mapping[str, float]:
        """The last step's six reward terms, each the mean over all cars; empty before the first step."""
        if self._ended is None:
            return {}
        batch = self.fleet.batch
        terms = _reward_terms(batch.infos).copy()
        if self._ended.any():
            terms[:, self._ended] = _reward_terms(batch.final_infos)[:, self._ended]
        return dict(zip(REWARD_KEYS, terms.mean(axis=1, dtype=np.float64).tolist(), strict=True))

    # --- saving ---

    def get_state(self) -> FleetState:
        """All that a bit-identical continuation needs, as arrays: world, running episodes, pending seeds and starts."""
        return {
            **{_WORLD + name: column for name, column in self.fleet.get_state().items()},
            **self._stack.get_state(),
            "returns": self._returns.copy(),
            "lengths": self._lengths.copy(),
            "is_reset": np.array(self._is_reset),
            "has_seeds": np.array(self._seeds[0] is not None),
            "seeds": self._pending_seeds(),
            "starts": self._pending_starts(),
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of `get_state`; a state that does not fit is refused and changes nothing."""
        if not isinstance(state, Mapping) or set(state) != set(own := self.get_state()):
            raise StateError("state: its columns are not those of this version. Save it again with get_state().")
        new = {name: np.asarray(column) for name, column in state.items()}
        for name in ("returns", "lengths", "is_reset", "has_seeds", "seeds", "starts"):
            if new[name].shape != own[name].shape or new[name].dtype != own[name].dtype:
                raise StateError(
                    f"state: column {name!r} must be {own[name].dtype} of shape {own[name].shape}, "
                    f"got {new[name].dtype} of shape {new[name].shape}."
                )
        if not np.isfinite(new["returns"]).all() or (new["lengths"] < 0).any():
            raise StateError("state: returns must be finite and lengths not negative.")
        if (new["starts"] < _NO_START).any() or (new["starts"] >= len(_STARTS)).any():
            raise StateError(f"state: column 'starts' must be from {_NO_START} to {len(_STARTS) - 1}.")
        stack = ObservationStack(self.num_envs, self.stack, self._num_observations, self.lap_fourier)
        stack.set_state({name: new[name] for name in stack.get_state()})
        self.fleet.set_state({name.removeprefix(_WORLD): new[name] for name in new if name.startswith(_WORLD)})
        self._stack = stack
        self._returns, self._lengths = new["returns"].copy(), new["lengths"].copy()
        self._is_reset = bool(new["is_reset"])
        self._seeds = new["seeds"].tolist() if new["has_seeds"] else [None] * self.num_envs
        self._options = [{} if code == _NO_START else {"start": _STARTS[code]} for code in new["starts"].tolist()]
        self._actions = self._ended = None


def _reset_infos(infos: NDArray[np.void]) -> list[Info]:
    """The info of `RacerEnv.reset` for each car."""
    columns = (infos[column].tolist() for column in RESET_COLUMNS.values())
    return [dict(zip(RESET_COLUMNS, values, strict=True)) for values in zip(*columns, strict=True)]


def _reward_terms(infos: NDArray[np.void]) -> NDArray[np.float32]:
    """The reward terms, (6, num_cars), as a view: much faster than looking up six columns."""
    return infos.view(np.float32).reshape(len(infos), -1)[:, : len(REWARD_KEYS)].T
