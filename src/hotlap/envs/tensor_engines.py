"""The simulator of a fleet as tensors on one device: the fleet's own memory, or that of a GPU."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from hotlap.envs.fleet import Fleet
from hotlap.envs.fleet_vector import AnyFleet
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.spaces import ObservationName, num_observations
from hotlap.envs.stream_fleet import StreamFleet
from hotlap.sim.opponent_view import NUM_OPPONENT_VIEW
from hotlap.sim.race import ENTRANT_DTYPE
from hotlap.sim.world import NUM_ACTIONS, NUM_OBSERVATIONS

_TYPES = {"<f4": torch.float32, "<i4": torch.int32, "<u4": torch.int32, "|b1": torch.bool}


class CarEngine(Protocol):
    """Cars that take actions. Every tensor has one row per car and is written in place by `step`."""

    actions: Tensor  # (N, 3), read by `step`
    obs: Tensor
    final_obs: Tensor  # valid where an episode ended
    rewards: Tensor
    terminated: Tensor
    truncated: Tensor
    infos: Tensor  # (N, …) the bits of INFO_DTYPE as int32
    final_infos: Tensor

    def begin(self, seed: int) -> None:
        """Begin an episode for every car; car i gets the seed `seed` + i."""

    def load(self) -> None:
        """Take the states of the fleet in main memory."""

    def store(self) -> None:
        """Write the states to the fleet in main memory."""

    def step(self) -> None:
        """One decision of every car; where an episode ends, the next one begins."""


def open_engine(fleet: "AnyFleet | RaceFleet", device: torch.device, action_repeat: int) -> "HostEngine | GpuEngine":
    """The engine of a fleet on a device."""
    return (GpuEngine if device.type == "cuda" else HostEngine)(fleet, action_repeat)


class HostEngine:
    """The fleet itself; the tensors share memory with its arrays."""

    def __init__(self, fleet: "AnyFleet | RaceFleet", action_repeat: int) -> None:
        self._fleet, self._action_repeat, batch = fleet, action_repeat, fleet.batch
        self.actions = torch.zeros(fleet.num_cars, NUM_ACTIONS)
        self.obs, self.final_obs = torch.from_numpy(batch.obs), torch.from_numpy(batch.final_obs)
        self.rewards = torch.from_numpy(batch.rewards)
        self.terminated, self.truncated = torch.from_numpy(batch.terminated), torch.from_numpy(batch.truncated)
        self.infos, self.final_infos = map(_words_of, (batch.infos, batch.final_infos))
        if isinstance(fleet, RaceFleet):
            self.entrants = _entrant_columns(_words_of(fleet.entrants))
            self.final_entrants = _entrant_columns(_words_of(fleet.field.final_entrants))

    def begin(self, seed: int) -> None:
        """Begin an episode for every car or race; number i gets the seed `seed` + i."""
        begin_fleet(self._fleet, seed)

    def load(self) -> None:
        """Nothing to do: the cars are those of the fleet."""

    def store(self) -> None:
        """Nothing to do: the cars are those of the fleet."""

    def see(self, observation: ObservationName) -> Tensor:
        """What the cars of a race see now, in rows that begin with the columns of this observation."""
        return torch.from_numpy(self._fleet.see(observation))  # type: ignore[union-attr]

    def step(self) -> None:
        """One decision of every car."""
        self._fleet.step(self.actions.numpy(), autoreset=True, repeat=self._action_repeat)


class GpuEngine:
    """The cars in the memory of a GPU; the fleet in main memory resets, reads and writes their states."""

    def __init__(self, fleet: "AnyFleet | RaceFleet", action_repeat: int) -> None:
        from hotlap.sim import batch_cuda, race_cuda  # needs numba-cuda

        if not isinstance(fleet, Fleet | RaceFleet):
            raise TypeError("cars behind a bridge are trained on the CPU")
        self._fleet, self._action_repeat, self._batch_cuda = fleet, action_repeat, batch_cuda
        self._cars: Any
        if isinstance(fleet, RaceFleet):
            num_columns = fleet.batch.obs.shape[1]
            self._cars = race_cuda.CudaRaces(fleet.scenario, fleet.race_rules, fleet.num_races, num_columns)
        else:
            self._cars = batch_cuda.CudaCars(fleet.scenario, *fleet.batch.obs.shape)
        batch = self._cars.batch

        def words(records: Any) -> Tensor:
            return _tensor(batch_cuda.as_bytes(records)).view(torch.int32).view(fleet.num_cars, -1)

        self.actions = _tensor(self._cars.actions)[:, :NUM_ACTIONS]
        self.obs, self.final_obs, self.rewards = map(_tensor, (batch.obs, batch.final_obs, batch.rewards))
        self.terminated, self.truncated = (_tensor(flags).view(torch.bool) for flags in (
            batch_cuda.as_bytes(batch.terminated), batch_cuda.as_bytes(batch.truncated)
        ))  # fmt: skip
        self.infos, self.final_infos = words(batch.infos), words(batch.final_infos)
        if isinstance(fleet, RaceFleet):
            self.entrants = _entrant_columns(words(self._cars.field.entrants))
            self.final_entrants = _entrant_columns(words(self._cars.field.final_entrants))
        self._other_obs: Any = None  # with the other version of the road, where a driver sees it

    def begin(self, seed: int) -> None:
        """Begin an episode for every car or race; number i gets the seed `seed` + i."""
        begin_fleet(self._fleet, seed)
        self.load()

    def load(self) -> None:
        """Take the states of the fleet in main memory."""
        if isinstance(self._fleet, StreamFleet):
            for slot in self._fleet.take_changed():
                self._cars.upload_ribbon(self._fleet.scenario.ribbons, self._fleet.slot_parts(slot))
        self._cars.upload(self._fleet.states)
        if isinstance(self._fleet, RaceFleet):
            self._cars.upload_entrants(self._fleet.entrants)
        elif not self._fleet.settings.domain.is_standard:
            self._cars.upload_records(self._fleet.scenario.cars)
            self._cars.actions.copy_to_device(self._fleet.sent_actions)
        self.obs.copy_(torch.from_numpy(self._fleet.batch.obs))

    def store(self) -> None:
        """Write the states to the fleet in main memory."""
        self._fleet.states[:] = self._cars.download()
        if isinstance(self._fleet, RaceFleet):
            self._fleet.entrants[:] = self._cars.download_entrants()
        elif not self._fleet.settings.domain.is_standard:
            self._fleet.scenario.cars[:] = self._cars.download_records()
            self._fleet.sent_actions[:] = self._cars.actions.copy_to_host()

    def see(self, observation: ObservationName) -> Tensor:
        """What the cars of a race see now, in rows that begin with the columns of this observation."""
        fleet: RaceFleet = self._fleet  # type: ignore[assignment]
        if fleet.shows(observation):
            return self.obs
        if self._other_obs is None:
            self._other_obs = self._cars.make_observations(num_observations(fleet.other_observation))
        found = _tensor(self._other_obs)
        found[:, :NUM_OBSERVATIONS] = self.obs[:, :NUM_OBSERVATIONS]
        found[:, -NUM_OPPONENT_VIEW:] = self.obs[:, -NUM_OPPONENT_VIEW:]
        self._cars.view(self._other_obs, self._stream())
        return found

    def _stream(self) -> Any:
        return self._batch_cuda.stream_of(torch.cuda.current_stream().cuda_stream)

    def step(self) -> None:
        """Launch one decision of every car."""
        stream = self._stream()
        # Actions are clamped to their bounds, and a NaN is found in the losses of the update.
        self._cars.step(autoreset=True, repeat=self._action_repeat, check_actions=False, stream=stream)


def begin_fleet(fleet: "AnyFleet | RaceFleet", seed: int) -> None:
    """Begin an episode for every car, or every race; number i gets the seed `seed` + i."""
    count = fleet.num_races if isinstance(fleet, RaceFleet) else fleet.num_cars
    fleet.seed(np.uint64(seed) + np.arange(count, dtype=np.uint64))
    fleet.reset()


def columns_of(words: Tensor, dtype: "np.dtype[np.void]", names: Iterable[str]) -> dict[str, Tensor]:
    """Columns of records, which are int32 words (N, …), as views; no copies."""
    records, found = words.view(torch.uint8), {}
    for name in names:
        kind, offset = dtype.fields[name][:2]  # type: ignore[index]
        found[name] = records[:, offset : offset + kind.itemsize].view(_TYPES[kind.str])[:, 0]
    return found


def _entrant_columns(words: Tensor) -> dict[str, Tensor]:
    return columns_of(words, ENTRANT_DTYPE, ENTRANT_DTYPE.names or ())


def _words_of(records: Any) -> Tensor:
    return torch.from_numpy(records.view(np.int32).reshape(len(records), -1))


def _tensor(array: Any) -> Tensor:
    return torch.as_tensor(array, device="cuda")
