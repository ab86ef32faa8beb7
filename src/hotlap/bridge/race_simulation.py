"""The cars of one connection that share a road: what their replies have beside those of cars alone."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.binary import Columns, RaceColumns, write_step
from hotlap.bridge.protocol import Reset
from hotlap.bridge.simulation import Simulation, SimulationPlan
from hotlap.config import camel_case, convert, setting
from hotlap.envs.infos import Info
from hotlap.envs.race_defaults import DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import LAPS, RaceFleet
from hotlap.envs.race_infos import RACE_TIME, race_columns

_decode_any = msgspec.json.Decoder(Any).decode


@dataclass(frozen=True)
class RaceRequest:
    """The object `race` of a reset."""

    laps: int = setting(DEFAULT_LAPS, "Laps of a race.", LAPS)
    start: RaceStart = setting(DEFAULT_START, "Standing, or anywhere on the road at speed.")
    grid: tuple[int, ...] | None = setting(None, "The cars from the first slot to the last, in this one race.")


@lru_cache(maxsize=32)
def race_from(data: bytes) -> RaceRequest:
    """The JSON object `race` of a request; cached, so equal bytes are parsed once."""
    request: RaceRequest = convert(RaceRequest, _decode_any(data), "race", camel_case)
    return request


class RaceSimulation(Simulation):
    """One race, in the bits of `RaceVectorEnv` with one race; when it is over for all cars, the next one begins."""

    def __init__(self, fleet: RaceFleet, plan: SimulationPlan, rng: np.random.Generator) -> None:
        super().__init__(fleet, plan, rng)
        self._races = fleet
        self._has_finished = np.zeros(fleet.num_cars, np.bool_)  # in the last step

    def car_name(self, number: int) -> str:
        """What a car is called in errors."""
        return f"car_{number}"

    def _seeds(self, seed: int | list[int]) -> NDArray[np.uint64]:
        return super()._seeds(seed)[:1]

    def _begin(self, request: Reset) -> None:
        self._races.reset(race_from(bytes(request.race)).grid)

    def _advance(self, actions: NDArray[np.float32]) -> None:
        self._has_finished = self._races.step(actions, autoreset=True, repeat=self._repeat)

    def _reset_columns(self) -> dict[str, list[Any]]:
        return super()._reset_columns() | _as_lists(self._race_columns(self._races.entrants))

    def _step_columns(self) -> dict[str, list[Any]]:
        columns = super()._step_columns() | _as_lists(self._race_columns(self._races.entrants))
        has_finished = self._has_finished & ~self._has_ended()
        if has_finished.any():
            times_s = self._races.entrants["race_time_s"].tolist()
            columns[RACE_TIME] = [time_s if done else None for time_s, done in zip(times_s, has_finished, strict=True)]
        return columns

    def _final_info(self, car: int) -> Info:
        entrants = self._races.field.final_entrants
        info = super()._final_info(car)
        info.update({name: column[car].item() for name, column in self._race_columns(entrants).items()})
        if self._has_finished[car]:
            info[RACE_TIME] = float(entrants["race_time_s"][car])
        return info

    def _race_columns(self, entrants: NDArray[np.void]) -> Columns:
        return race_columns(entrants, self._races.lap_lengths_m)

    def _write_step(self) -> bytes:
        has_ended = self._has_ended()
        ended = np.flatnonzero(has_ended)
        columns = self._timed_columns(self._races.entrants, self._has_finished & ~has_ended)
        finals = self._timed_columns(self._races.field.final_entrants, self._has_finished)
        kept = {name: column[ended] for name, column in finals.items()}
        return write_step(self._batch, ended, RaceColumns(columns, kept))

    def _timed_columns(self, entrants: NDArray[np.void], has_finished: NDArray[np.bool_]) -> Columns:
        times_s = np.where(has_finished, entrants["race_time_s"], np.float32(np.nan))
        return self._race_columns(entrants) | {RACE_TIME: times_s}


def _as_lists(columns: Columns) -> dict[str, list[Any]]:
    return {name: column.tolist() for name, column in columns.items()}
