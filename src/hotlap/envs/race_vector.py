"""`RaceVectorEnv`: N races of C cars in one compiled call, with same-step autoreset of each race."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotlap.config import Range, check_count
from hotlap.envs.fleet import FleetState
from hotlap.envs.fleet_vector import Arrays, FleetVectorEnv
from hotlap.envs.infos import RESET_COLUMNS, SHARED_KEYS, VectorInfo, masked_info
from hotlap.envs.race_defaults import DEFAULT_CARS, DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.race_infos import RACE_TIME, race_columns
from hotlap.envs.seeds import NUM_SEEDS, resolve_seed
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import action_space, as_actions, observation_space
from hotlap.errors import ConfigError
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK


class RaceVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Arrays]):
    """Races on one track, or on several in turn. Car c of race r is row r * num_cars + c.

    All cars of a race end together. Race r of a batch seeded s is bit-identical to `hotlap.parallel_env` seeded s + r.
    """

    metadata = FleetVectorEnv.metadata

    def __init__(
        self,
        num_races: int = 1,
        num_cars: int = DEFAULT_CARS,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        laps: int = DEFAULT_LAPS,
        start: RaceStart = DEFAULT_START,
        config: SettingsSource = None,
        num_threads: int | None = None,
    ) -> None:
        if num_threads is not None:
            check_count("num_threads", num_threads, Range(1))
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        settings = RacerSettings.load(config)
        self.fleet = RaceFleet(track_ids, settings, num_races, num_cars, laps, start, num_threads)
        self.num_races, self.num_cars, self.num_envs = num_races, num_cars, self.fleet.num_cars
        self.single_action_space, self.single_observation_space = action_space(), observation_space("race")
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._all_cars = np.ones(self.num_envs, np.bool_)
        self._all_cars.flags.writeable = False
        self._is_seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], VectorInfo]:
        """Begin every race; an integer seed s gives race r the seed s + r, `options={"grid": [3, 0, …]}` the order."""
        grid = grid_option(options)
        if isinstance(seed, int):
            super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            found = resolve_seed(seed, self.num_races, self.np_random)
            seeds = found if isinstance(found, list) else [(found + race) % NUM_SEEDS for race in range(self.num_races)]
            self.fleet.seed(np.array(seeds, np.uint64))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self.fleet.reset(grid)
        infos, info = self.fleet.batch.infos.copy(), VectorInfo()
        columns = {name: infos[column] for name, column in RESET_COLUMNS.items()}
        for name, values in (columns | race_columns(self.fleet.entrants, self.fleet.lap_lengths_m)).items():
            info[name], info[f"_{name}"] = values, self._all_cars
        return self.fleet.batch.obs.copy(), info

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], VectorInfo]:
        """One tick of every car; where a race ends the next one begins at once (`final_obs`, `final_info`)."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        fleet, batch = self.fleet, self.fleet.batch
        has_finished = fleet.step(as_actions(actions, (self.num_envs, NUM_ACTIONS)), autoreset=True)
        terminated, truncated = batch.terminated.copy(), batch.truncated.copy()
        ended = terminated | truncated
        info = self._info(batch.infos, fleet.entrants, ~ended, has_finished)
        if ended.any():
            for name in SHARED_KEYS:
                info[f"_{name}"] = self._all_cars
            last = self._info(batch.final_infos, fleet.field.final_entrants, ended, has_finished)
            info["final_obs"], info["_final_obs"] = batch.final_obs.copy(), ended
            info["final_info"], info["_final_info"] = last, ended
        return batch.obs.copy(), batch.rewards.copy(), terminated, truncated, info

    def _info(
        self,
        infos: NDArray[np.void],
        entrants: NDArray[np.void],
        mask: NDArray[np.bool_],
        has_finished: NDArray[np.bool_],
    ) -> VectorInfo:
        """The info of the cars in `mask`."""
        info = masked_info(infos.copy(), mask)
        for name, values in race_columns(entrants, self.fleet.lap_lengths_m).items():
            info[name], info[f"_{name}"] = values, mask
        if (mask & has_finished).any():
            info[RACE_TIME], info[f"_{RACE_TIME}"] = entrants["race_time_s"].copy(), mask & has_finished
        return info

    def get_state(self) -> FleetState:
        """The complete state of every race; `set_state` continues from it bit-identically."""
        return self.fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of `get_state`."""
        self.fleet.set_state(state)
        self._is_seeded = True


def grid_option(options: dict[str, Any] | None) -> Any:
    """The order of the grid in the options of `reset`, or None; ConfigError for other options."""
    if options is not None and not isinstance(options, dict):
        raise ConfigError(f"options must be a dict, got {options!r:.40}.")
    for key in options or {}:
        if key != "grid":
            raise ConfigError(f"options: unknown key {key!r:.40}. Known keys: grid.")
    return (options or {}).get("grid")
