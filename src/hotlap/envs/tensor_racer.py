"""`TensorRacer`: cars, alone or in races, as torch tensors on one device, for learners of your own."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from hotlap.config import check_count, convert
from hotlap.envs.fleet import NUM_CARS, Fleet, check_repeat, make_engine
from hotlap.envs.race_defaults import DEFAULT_CARS, DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.seeds import NUM_SEEDS
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import SEE_OPPONENTS, ObservationName
from hotlap.envs.tensor_engines import columns_of, open_engine
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.engine import DeviceName
from hotlap.sim.world import INFO_DTYPE, NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK

Infos = dict[str, Tensor]
Step = tuple[Tensor, Tensor, Tensor, Tensor, Infos]

# The names of an entrant's columns in the infos.
_RACE_COLUMNS = {
    "position": "position",
    "contact": "contact_mps",
    "atFault": "at_fault",
    "overtakes": "overtakes",
    "slipstream": "slipstream",
    "raceTime": "race_time_s",
}


class TensorRacer:
    """N cars with same-step autoreset, in the bits of `RacerVectorEnv`; with `num_races`, of `RaceVectorEnv`.

    Tensors that `reset` and `step` return are the simulator's own memory: the next step writes into them. Copy what
    you keep. On a GPU nothing passes through main memory, and a step can be captured in a CUDA graph; there actions
    are not checked, so do not send NaN.
    """

    def __init__(
        self,
        num_envs: int | None = None,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        device: DeviceName = "cpu",
        observation: ObservationName = "road",
        action_repeat: int = 1,
        config: SettingsSource = None,
        *,
        num_races: int | None = None,
        num_cars: int = DEFAULT_CARS,
        laps: int = DEFAULT_LAPS,
        start: RaceStart = DEFAULT_START,
    ) -> None:
        """A fleet of `num_envs` cars, or `num_races` races of `num_cars` cars, whose observation is always `race`."""
        self.device = torch.device(convert(DeviceName, device, "device"))
        check_repeat(action_repeat)
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        settings = RacerSettings.load(config)
        self.fleet: Fleet | RaceFleet
        if num_races is not None:
            if num_envs not in (None, num_races * num_cars):
                raise ConfigError(
                    f"num_envs: {num_races} races of {num_cars} cars are {num_races * num_cars} cars, got {num_envs}."
                )
            self.fleet = RaceFleet(track_ids, settings, num_races, num_cars, laps, start)
        else:
            if observation in SEE_OPPONENTS:
                raise ConfigError(f"observation: {observation!r} needs other cars. Give num_races.")
            check_count("num_envs", num_envs, NUM_CARS)
            count = int(num_envs or 1)
            self.fleet = Fleet(track_ids, settings, count, make_engine(count), observation)
        self.num_envs = self.fleet.num_cars
        self._engine = open_engine(self.fleet, self.device, action_repeat)
        self._infos = columns_of(self._engine.infos, INFO_DTYPE, INFO_DTYPE.names or ())
        self._infos["final_obs"] = self._engine.final_obs
        if isinstance(self.fleet, RaceFleet):
            self._infos |= {name: self._engine.entrants[column] for name, column in _RACE_COLUMNS.items()}
        self._is_seeded = False

    @property
    def num_observations(self) -> int:
        """The number of columns of an observation."""
        return int(self._engine.obs.shape[1])

    @property
    def actions(self) -> Tensor:
        """(num_envs, 3): steer, throttle, brake. `step` without an argument drives with what stands here."""
        return self._engine.actions

    def reset(self, seed: int = 0) -> tuple[Tensor, Infos]:
        """Begin an episode for every car, or every race; number i gets the seed `seed` + i."""
        count = self.fleet.num_races if isinstance(self.fleet, RaceFleet) else self.num_envs
        self.fleet.seed(np.array([(seed + number) % NUM_SEEDS for number in range(count)], np.uint64))
        self.fleet.reset()
        self._engine.load()
        self._is_seeded = True
        return self._engine.obs, self._infos

    def step(self, actions: Tensor | None = None) -> Step:
        """Observations, rewards, terminated, truncated and infos after `action_repeat` ticks with these actions.

        Where an episode or a race ends the next one begins at once; its last observation is in `infos["final_obs"]`.
        """
        if not self._is_seeded:
            raise ConfigError("step() before reset(): call reset() first.")
        engine = self._engine
        if actions is not None:
            if tuple(actions.shape) != (self.num_envs, NUM_ACTIONS):
                raise ActionError(f"action must have shape {(self.num_envs, NUM_ACTIONS)}, got {tuple(actions.shape)}.")
            engine.actions.copy_(actions)
        engine.step()
        return engine.obs, engine.rewards, engine.terminated, engine.truncated, self._infos
