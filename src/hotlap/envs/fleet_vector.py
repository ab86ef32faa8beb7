"""`FleetVectorEnv`: a fleet of cars as a Gymnasium vector environment, wherever the cars are computed."""

from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotlap.envs.fleet import FleetState
from hotlap.envs.infos import RESET_COLUMNS, SHARED_KEYS, VectorInfo, masked_info
from hotlap.envs.racer import start_option
from hotlap.envs.seeds import NUM_SEEDS, resolve_seed
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import ObservationName, action_space, as_actions, observation_space
from hotlap.sim.step import Batch
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.sim.world import NUM_ACTIONS

Arrays = NDArray[Any]


class AnyFleet(Protocol):
    """Cars in this process (`hotlap.envs.fleet.Fleet`) or behind a bridge; both give the same bits."""

    num_cars: int
    settings: RacerSettings
    batch: Batch  # the results of the last reset or step; the states may be kept elsewhere

    def seed(self, seeds: NDArray[np.uint64]) -> None:
        """Set every car's seed and restart its episode count at zero."""

    def next_episode(self) -> None:
        """Advance every car to the random numbers of its next episode."""

    def reset(self, start: str | None = None, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin an episode for the cars in `mask` (default: all); `start` overrides the settings once."""

    def step(self, actions: NDArray[np.float32], autoreset: bool, repeat: int = 1) -> None:
        """One step of up to `repeat` ticks with one action per car."""

    def get_state(self) -> FleetState:
        """The complete state, one array per column."""

    def set_state(self, state: FleetState) -> None:
        """Continue from `state`; a state that does not fit is refused."""


def _copy(infos: NDArray[np.void]) -> NDArray[np.void]:
    """A copy of records, made as bytes: NumPy copies records field by field, which took 5 % of a step."""
    copied: NDArray[np.void] = infos.view(np.uint8).copy().view(infos.dtype)
    return copied


class FleetVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Arrays]):
    """The cars of a fleet, with same-step autoreset; `action_repeat` ticks are one step."""

    metadata = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": [],
        "render_fps": TICKS_PER_SECOND,
        # Gymnasium 1.0 does not have this enum.
        "autoreset_mode": getattr(getattr(gym.vector, "AutoresetMode", None), "SAME_STEP", "SameStep"),
    }

    def __init__(self, fleet: AnyFleet, observation: ObservationName, action_repeat: int = 1) -> None:
        self._fleet, self._batch, self._action_repeat = fleet, fleet.batch, action_repeat
        self.num_envs = num_envs = fleet.num_cars
        self.single_action_space = action_space()
        self.single_observation_space = observation_space(observation)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
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
            self._fleet.seed(np.array(seeds, np.uint64))
            self._is_seeded = True
        else:
            self._fleet.next_episode()
        self._fleet.reset(start=start)
        infos = self._batch.infos.copy()
        info: VectorInfo = {}
        for name, column in RESET_COLUMNS.items():
            info[name], info[f"_{name}"] = infos[column], self._all_cars
        return self._batch.obs.copy(), info

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], VectorInfo]:
        """One step of every car; where an episode ends the next one begins at once (`final_obs`, `final_info`)."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        batch = self._batch
        self._fleet.step(as_actions(actions, (self.num_envs, NUM_ACTIONS)), autoreset=True, repeat=self._action_repeat)
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
        return self._fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of `get_state`."""
        self._fleet.set_state(state)
        self._is_seeded = True
