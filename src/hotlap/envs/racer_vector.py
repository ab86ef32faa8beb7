"""`RacerVectorEnv`: N cars in one compiled call, with same-step autoreset."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotlap.envs.fleet import MAX_CARS, Fleet, FleetState, suited_engine
from hotlap.envs.racer import DEFAULT_TRACK, RESET_COLUMNS, start_option
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import NUM_ACTIONS, action_space, as_actions, observation_space
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.sim.world import INFO_DTYPE

Arrays = NDArray[Any]
VectorInfo = dict[str, Any]

_BOTH_NAMES = ("lap", "checkpoint", "stepCount", "tick")  # mean the same in both infos; `speed` does not
_STEP_NAMES = tuple(name for name in INFO_DTYPE.names or () if name not in ("lapTime", "lapClean"))


def _copy(infos: NDArray[np.void]) -> NDArray[np.void]:
    """A copy of records, as bytes: numpy copies records field by field, which took a twentieth of a step."""
    copied: NDArray[np.void] = infos.view(np.uint8).copy().view(infos.dtype)
    return copied


class RacerVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Arrays]):
    """Cars on one track, or on several in turn. Car i of a batch seeded s is `RacerEnv` seeded s + i, bit for bit."""

    metadata = {  # noqa: RUF012 (Gymnasium declares it so)
        "render_modes": [],
        "render_fps": TICKS_PER_SECOND,
        # Gymnasium 1.0 has no such enum yet.
        "autoreset_mode": getattr(getattr(gym.vector, "AutoresetMode", None), "SAME_STEP", "SameStep"),
    }

    def __init__(
        self,
        num_envs: int = 1,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        num_threads: int | None = None,
    ) -> None:
        if not isinstance(num_envs, int) or not 1 <= num_envs <= MAX_CARS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_CARS}, got {num_envs!r:.40}.")
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
            raise ConfigError(f"num_threads must be a whole number from 1, got {num_threads!r:.40}.")
        if render_mode is not None:
            raise ConfigError(f"render_mode: the batched environment draws nothing, got {render_mode!r:.40}.")
        self.num_envs = num_envs
        self.single_action_space = action_space()
        self.single_observation_space = observation_space()
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        engine = CpuEngine(num_threads) if num_threads else suited_engine(num_envs)
        self.fleet = Fleet(track_ids, RacerSettings.load(config), num_envs, engine)
        self._batch = self.fleet.batch
        self._everyone = np.ones(num_envs, np.bool_)
        self._everyone.flags.writeable = False
        self._is_seeded = False

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], VectorInfo]:
        """Begin an episode for every car; an integer seed s gives car i the seed s + i."""
        start = start_option(options)
        if isinstance(seed, int):
            super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            self.fleet.seed(self._car_seeds(seed))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self.fleet.reset(start=start)
        infos = self._batch.infos.copy()
        info: VectorInfo = {}
        for name, column in RESET_COLUMNS.items():
            info[name], info[f"_{name}"] = infos[column], self._everyone
        return self._batch.obs.copy(), info

    def _car_seeds(self, seed: int | list[int | None] | None) -> NDArray[np.uint64]:
        if isinstance(seed, list | tuple):
            if len(seed) != self.num_envs:
                raise ConfigError(f"seed: a list needs one seed for each of the {self.num_envs} cars, got {len(seed)}.")
            if not all(one is None or isinstance(one, int) for one in seed):
                raise ConfigError(f"seed: a list must hold whole numbers or None, got {seed!r:.60}.")
            drawn = [int(self.np_random.integers(2**63)) if one is None else one for one in seed]
            return np.array([one % 2**64 for one in drawn], np.uint64)
        if seed is not None and not isinstance(seed, int):
            raise ConfigError(f"seed must be a whole number or a list of them, got {seed!r:.40}.")
        first = int(self.np_random.integers(2**62)) if seed is None else seed
        return np.array([(first + car) % 2**64 for car in range(self.num_envs)], np.uint64)

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], VectorInfo]:
        """One tick for every car; a car that ended begins its next episode at once (`final_obs`, `final_info`)."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        batch = self._batch
        self.fleet.step(as_actions(actions, (self.num_envs, NUM_ACTIONS)), autoreset=True)
        terminated, truncated = batch.terminated.copy(), batch.truncated.copy()
        ended = terminated | truncated
        # A car that began anew has no step behind it: its last one is in `final_info`.
        info = self._info(_copy(batch.infos), ~ended)
        if ended.any():
            for name in _BOTH_NAMES:
                info[f"_{name}"] = self._everyone
            info["final_obs"], info["_final_obs"] = batch.final_obs.copy(), ended
            info["final_info"], info["_final_info"] = self._info(_copy(batch.final_infos), ended), ended
        return batch.obs.copy(), batch.rewards.copy(), terminated, truncated, info

    def _info(self, infos: NDArray[np.void], mask: NDArray[np.bool_]) -> VectorInfo:
        """The info columns with Gymnasium's masks of the cars they hold for."""
        info: VectorInfo = {}
        for name in _STEP_NAMES:
            info[name], info[f"_{name}"] = infos[name], mask
        finished = mask & ~np.isnan(infos["lapTime"])
        if finished.any():
            for name in ("lapTime", "lapClean"):
                info[name], info[f"_{name}"] = infos[name], finished
        return info

    def get_state(self) -> FleetState:
        """Everything the world needs to go on bit for bit, for every car."""
        return self.fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Go on from a state that `get_state` gave."""
        self.fleet.set_state(state)
        self._is_seeded = True
