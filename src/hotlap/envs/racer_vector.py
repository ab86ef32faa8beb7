"""`RacerVectorEnv`: N cars in one compiled call, with same-step autoreset."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotlap.envs.fleet import MAX_CARS, Fleet, FleetState, make_engine
from hotlap.envs.infos import RESET_COLUMNS, SHARED_KEYS, VectorInfo, masked_info
from hotlap.envs.racer import DEFAULT_TRACK, start_option
from hotlap.envs.seeds import NUM_SEEDS, resolve_seed
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import (
    DEFAULT_OBSERVATION,
    NUM_ACTIONS,
    ObservationName,
    action_space,
    as_actions,
    observation_space,
)
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import TICKS_PER_SECOND

Arrays = NDArray[Any]


def _copy(infos: NDArray[np.void]) -> NDArray[np.void]:
    """A copy of records, made as bytes: NumPy copies records field by field, which took 5 % of a step."""
    copied: NDArray[np.void] = infos.view(np.uint8).copy().view(infos.dtype)
    return copied


class RacerVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Arrays]):
    """Cars on one track, or on several in turn.

    Car i of a batch seeded s is bit-identical to `RacerEnv` seeded s + i.
    """

    metadata = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": [],
        "render_fps": TICKS_PER_SECOND,
        # Gymnasium 1.0 does not have this enum.
        "autoreset_mode": getattr(getattr(gym.vector, "AutoresetMode", None), "SAME_STEP", "SameStep"),
    }

    def __init__(
        self,
        num_envs: int = 1,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        num_threads: int | None = None,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        if not isinstance(num_envs, int) or not 1 <= num_envs <= MAX_CARS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_CARS}, got {num_envs!r:.40}.")
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
            raise ConfigError(f"num_threads must be a whole number of 1 or more, got {num_threads!r:.40}.")
        if render_mode is not None:
            raise ConfigError(
                f"render_mode: the batched environment cannot render, got {render_mode!r:.40}. Use RacerEnv."
            )
        self.num_envs = num_envs
        self.single_action_space = action_space()
        self.single_observation_space = observation_space(observation)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        engine = CpuEngine(num_threads) if num_threads else make_engine(num_envs)
        self.fleet = Fleet(track_ids, RacerSettings.load(config), num_envs, engine, observation)
        self._batch = self.fleet.batch
        self._all_cars = np.ones(num_envs, np.bool_)
        self._all_cars.flags.writeable = False
        self._is_seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], VectorInfo]:
        """Begin an episode for every car; an integer seed s gives car i the seed s + i."""
        start = start_option(options)
        if isinstance(seed, int):
            super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            found = resolve_seed(seed, self.num_envs, self.np_random)
            seeds = found if isinstance(found, list) else [(found + car) % NUM_SEEDS for car in range(self.num_envs)]
            self.fleet.seed(np.array(seeds, np.uint64))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self.fleet.reset(start=start)
        infos = self._batch.infos.copy()
        info: VectorInfo = {}
        for name, column in RESET_COLUMNS.items():
            info[name], info[f"_{name}"] = infos[column], self._all_cars
        return self._batch.obs.copy(), info

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], VectorInfo]:
        """One tick for every car; where an episode ends the next one begins at once (`final_obs`, `final_info`)."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        batch = self._batch
        self.fleet.step(as_actions(actions, (self.num_envs, NUM_ACTIONS)), autoreset=True)
        terminated, truncated = batch.terminated.copy(), batch.truncated.copy()
        ended = terminated | truncated
        # A car that was just reset has no step info: that of its last step is in `final_info`.
        info = masked_info(_copy(batch.infos), ~ended)
        if ended.any():
            for name in SHARED_KEYS:
                info[f"_{name}"] = self._all_cars
            info["final_obs"], info["_final_obs"] = batch.final_obs.copy(), ended
            info["final_info"], info["_final_info"] = masked_info(_copy(batch.final_infos), ended), ended
        return batch.obs.copy(), batch.rewards.copy(), terminated, truncated, info

    def get_state(self) -> FleetState:
        """The complete state of every car; `set_state` continues from it bit-identically."""
        return self.fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of `get_state`."""
        self.fleet.set_state(state)
        self._is_seeded = True
