"""`TensorRacer`: cars, alone or in races, as torch tensors on one device, for learners of your own."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from hotlap.config import check_count, convert
from hotlap.envs.fleet import NUM_CARS, Fleet, check_repeat, make_engine
from hotlap.envs.race_defaults import DEFAULT_CARS, DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.racer import DEFAULT_TRACK
from hotlap.envs.seeds import NUM_SEEDS
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import ObservationName
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.engine import DeviceName
from hotlap.sim.world import NUM_ACTIONS

Infos = dict[str, Tensor]
Step = tuple[Tensor, Tensor, Tensor, Tensor, Infos]

_TYPES = {"<f4": torch.float32, "<i4": torch.int32, "<u4": torch.int32, "|b1": torch.bool}
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
        observation: ObservationName | Literal["race"] = "road",
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
            if observation == "race":
                raise ConfigError("observation: 'race' needs other cars. Give num_races.")
            check_count("num_envs", num_envs, NUM_CARS)
            count = int(num_envs or 1)
            self.fleet = Fleet(track_ids, settings, count, make_engine(count), observation)
        self.num_envs, self._repeat = self.fleet.num_cars, action_repeat
        self._memory: _HostMemory | _GpuMemory
        self._memory = (_GpuMemory if self.device.type == "cuda" else _HostMemory)(self.fleet)
        self._is_seeded = False

    @property
    def num_observations(self) -> int:
        """The number of columns of an observation."""
        return int(self._memory.obs.shape[1])

    @property
    def actions(self) -> Tensor:
        """(num_envs, 3): steer, throttle, brake. `step` without an argument drives with what stands here."""
        return self._memory.actions

    def reset(self, seed: int = 0) -> tuple[Tensor, Infos]:
        """Begin an episode for every car, or every race; number i gets the seed `seed` + i."""
        count = self.fleet.num_races if isinstance(self.fleet, RaceFleet) else self.num_envs
        self.fleet.seed(np.array([(seed + number) % NUM_SEEDS for number in range(count)], np.uint64))
        self.fleet.reset()
        self._memory.load()
        self._is_seeded = True
        return self._memory.obs, self._memory.infos

    def step(self, actions: Tensor | None = None) -> Step:
        """Observations, rewards, terminated, truncated and infos after `action_repeat` ticks with these actions.

        Where an episode or a race ends the next one begins at once; its last observation is in `infos["final_obs"]`.
        """
        if not self._is_seeded:
            raise ConfigError("step() before reset(): call reset() first.")
        memory = self._memory
        if actions is not None:
            if tuple(actions.shape) != (self.num_envs, NUM_ACTIONS):
                raise ActionError(f"action must have shape {(self.num_envs, NUM_ACTIONS)}, got {tuple(actions.shape)}.")
            memory.actions.copy_(actions)
        memory.step(self._repeat)
        return memory.obs, memory.rewards, memory.terminated, memory.truncated, memory.infos


def _columns(records: Tensor, dtype: "np.dtype[np.void]", names: dict[str, str]) -> Infos:
    """Columns of records, which are bytes (N, size), as views; no copies."""
    found = {}
    for name, column in names.items():
        kind, offset = dtype.fields[column][:2]  # type: ignore[index]
        part = records[:, offset : offset + kind.itemsize]
        found[name] = part.view(_TYPES[kind.str])[:, 0]
    return found


def _info_names(dtype: "np.dtype[np.void]") -> dict[str, str]:
    return {name: name for name in dtype.names or ()}


class _HostMemory:
    """The fleet's own arrays as tensors."""

    def __init__(self, fleet: Fleet | RaceFleet) -> None:
        self._fleet, batch = fleet, fleet.batch
        self.actions = torch.zeros(fleet.num_cars, NUM_ACTIONS)
        self.obs, self.rewards = torch.from_numpy(batch.obs), torch.from_numpy(batch.rewards)
        self.terminated, self.truncated = torch.from_numpy(batch.terminated), torch.from_numpy(batch.truncated)
        self.infos: Infos = _columns(_bytes_of(batch.infos), batch.infos.dtype, _info_names(batch.infos.dtype))
        self.infos["final_obs"] = torch.from_numpy(batch.final_obs)
        if isinstance(fleet, RaceFleet):
            entrants = fleet.entrants
            self.infos |= _columns(_bytes_of(entrants), entrants.dtype, _RACE_COLUMNS)

    def load(self) -> None:
        """Nothing to do: the cars are those of the fleet."""

    def step(self, repeat: int) -> None:
        self._fleet.step(self.actions.numpy(), autoreset=True, repeat=repeat)


class _GpuMemory:
    """Cars in the memory of a GPU; the fleet in main memory begins their episodes."""

    def __init__(self, fleet: Fleet | RaceFleet) -> None:
        from hotlap.sim import batch_cuda, race_cuda  # needs numba-cuda

        self._fleet, self._batch_cuda = fleet, batch_cuda
        self._cars: Any
        if isinstance(fleet, RaceFleet):
            self._cars = race_cuda.CudaRaces(fleet.scenario, fleet.race_rules, fleet.num_races)
        else:
            self._cars = batch_cuda.CudaCars(fleet.scenario, *fleet.batch.obs.shape)
        batch = self._cars.batch

        def as_bytes(array: Any) -> Tensor:
            return torch.as_tensor(batch_cuda.as_bytes(array), device="cuda").view(fleet.num_cars, -1)

        self.actions, self.obs, self.rewards = (
            torch.as_tensor(array, device="cuda") for array in (self._cars.actions, batch.obs, batch.rewards)
        )
        self.terminated, self.truncated = (
            as_bytes(flags)[:, 0].view(torch.bool) for flags in (batch.terminated, batch.truncated)
        )
        dtype = fleet.batch.infos.dtype
        self.infos: Infos = _columns(as_bytes(batch.infos), dtype, _info_names(dtype))
        self.infos["final_obs"] = torch.as_tensor(batch.final_obs, device="cuda")
        if isinstance(fleet, RaceFleet):
            self.infos |= _columns(as_bytes(self._cars.field.entrants), fleet.entrants.dtype, _RACE_COLUMNS)

    def load(self) -> None:
        self._cars.upload(self._fleet.states)
        if isinstance(self._fleet, RaceFleet):
            self._cars.upload_entrants(self._fleet.entrants)
        self.obs.copy_(torch.from_numpy(self._fleet.batch.obs))

    def step(self, repeat: int) -> None:
        stream = self._batch_cuda.stream_of(torch.cuda.current_stream().cuda_stream)
        self._cars.step(autoreset=True, repeat=repeat, check_actions=False, stream=stream)


def _bytes_of(records: Any) -> Tensor:
    """An array of records as bytes (N, size), sharing its memory."""
    return torch.from_numpy(records.view(np.uint8).reshape(len(records), -1))
