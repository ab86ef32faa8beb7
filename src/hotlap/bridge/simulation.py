"""The cars of one connection: one car or a batch, stepped by requests and described by replies."""

import struct
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.binary import read_actions, write_step
from hotlap.bridge.car_states import state_columns, with_columns
from hotlap.bridge.protocol import (
    Action,
    BatchResetResult,
    BatchStepResult,
    Final,
    GetStateResult,
    Reset,
    ResetResult,
    SetState,
    SetStateResult,
    StepResult,
)
from hotlap.envs.fleet import Fleet
from hotlap.envs.infos import LAP_KEYS, RESET_COLUMNS, STEP_KEYS, Info, reset_info, step_info
from hotlap.envs.race_defaults import RaceStart
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import ObservationName, as_actions
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import find_entries, load_tracks

_LAP_TIME = len(STEP_KEYS)  # column in an info record; only lapClean follows
# One car's info, encoded without building a dict; lap time and cleanness only on the step that ends a lap.
_StepInfo = msgspec.defstruct(
    "_StepInfo",
    [(name, Any) for name in STEP_KEYS] + [(name, Any, msgspec.UNSET) for name in LAP_KEYS],
    gc=False,
)
_ACTION = struct.Struct(f"{NUM_ACTIONS}f")


class SimulationPlan(NamedTuple):
    """The simulation that a reset asks for; a tuple, since every reset makes and compares one."""

    track_ids: list[str]  # as the client gave them
    settings: RacerSettings
    num_envs: int | None  # None: one car, not a batch
    observation: ObservationName
    race: tuple[int, RaceStart] | None = None  # laps and start, if the cars share one road

    @property
    def num_cars(self) -> int:
        """The number of cars."""
        return self.num_envs or 1

    @property
    def driven_ids(self) -> list[str]:
        """Each track that a car drives on, once."""
        return list(dict.fromkeys(self.track_ids[: self.num_cars]))

    def refuse_unknown_tracks(self) -> None:
        """Raise for a track that does not exist, before any is built; looks on the disk."""
        find_entries(self.track_ids)


class Simulation:
    """Steps cars and makes the replies. Single-threaded: for up to 1,024 cars, waking a second thread takes longer."""

    def __init__(self, fleet: Fleet | RaceFleet, plan: SimulationPlan, rng: np.random.Generator) -> None:
        self.fleet = fleet
        self.is_batch = plan.num_envs is not None
        self._plan = plan
        self._rng = rng
        self._batch = fleet.batch
        self._is_seeded = False
        self._repeat = 1  # ticks per step
        self._are_shipped = all(track.is_shipped for track in fleet.tracks)
        # Made once: for one car, indexing arrays would cost as much as stepping it.
        self._actions = np.zeros((fleet.num_cars, NUM_ACTIONS), np.float32)
        self._action_bytes = self._actions.data.cast("B")
        self._first_obs = self._batch.obs[0]

    def fits(self, plan: SimulationPlan) -> bool:
        """Whether a reset with this plan can reuse this simulation, so that it costs no more than a step."""
        if self._plan != plan:
            return False
        # A user's own track may have been imported again or removed since.
        return self._are_shipped or self.fleet.tracks == load_tracks([track.track_id for track in self.fleet.tracks])

    def reset(self, request: Reset) -> ResetResult | BatchResetResult:
        """Begin an episode for every car."""
        self._repeat = request.action_repeat or 1
        if request.seed is not None or not self._is_seeded:
            seed = request.seed if request.seed is not None else int(self._rng.integers(2**62))
            self.fleet.seed(self._seeds(seed))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self._begin(request)
        if self.is_batch:
            return BatchResetResult(self._batch.obs.tolist(), self._reset_columns())
        return ResetResult(self._first_obs.tolist(), reset_info(self._batch.infos[0].item()))

    def car_name(self, number: int) -> str:
        """What a car is called in errors."""
        return f"car {number}"

    def _seeds(self, seed: int | list[int]) -> NDArray[np.uint64]:
        """One seed for each car, as in `RacerVectorEnv`: s, s + 1, …, or those listed."""
        seeds = seed if isinstance(seed, list) else range(seed, seed + self.fleet.num_cars)
        return np.array([one % 2**64 for one in seeds], np.uint64)

    def _begin(self, request: Reset) -> None:
        cast("Fleet", self.fleet).reset(start=request.start)

    def _advance(self, actions: NDArray[np.float32]) -> None:
        self.fleet.step(actions, autoreset=self.is_batch, repeat=self._repeat)

    def step(self, action: Action) -> StepResult:
        """One step of a single car."""
        if max(action) > 1.0 or min(action) < -1.0:  # JSON may hold numbers too large for float32
            action = (_clip(action[0]), _clip(action[1]), _clip(action[2]))
        _ACTION.pack_into(self._action_bytes, 0, *action)
        self.fleet.step(self._actions, autoreset=False, repeat=self._repeat)
        batch = self._batch
        values = batch.infos.item()
        has_lap = values[_LAP_TIME] == values[_LAP_TIME]  # false for NaN
        return StepResult(
            self._first_obs.tolist(),
            batch.rewards.item(),
            batch.terminated.item(),
            batch.truncated.item(),
            _StepInfo(*(values if has_lap else values[:_LAP_TIME])),
        )

    def step_batch(self, actions: list[Action]) -> BatchStepResult:
        """One step of every car; a car that ends is reset at once."""
        self._advance(as_actions(actions, self._actions.shape))
        batch = self._batch
        ended = np.flatnonzero(self._has_ended()).tolist()
        finals = {car: Final(batch.final_obs[car].tolist(), self._final_info(car)) for car in ended}
        return BatchStepResult(
            batch.obs.tolist(),
            batch.rewards.tolist(),
            batch.terminated.tolist(),
            batch.truncated.tolist(),
            self._step_columns(),
            finals,
        )

    def step_binary(self, data: bytes) -> bytes:
        """One step of one car or of a batch, in the binary format."""
        self._advance(read_actions(data, self.fleet.num_cars))
        return self._write_step()

    def _write_step(self) -> bytes:
        return write_step(self._batch, np.flatnonzero(self._has_ended()) if self.is_batch else np.zeros(0, np.intp))

    def get_state(self) -> GetStateResult:
        """The state of every car."""
        return GetStateResult(state_columns(self.fleet.get_state()))

    def set_state(self, request: SetState) -> SetStateResult:
        """Continue some of the cars from a state; one that does not fit is refused and changes nothing."""
        state, cars = with_columns(self.fleet.get_state(), request.first, request.state)
        self.fleet.set_state(state)
        self._is_seeded = True
        return SetStateResult(self._batch.obs[cars].tolist())

    def _has_ended(self) -> NDArray[np.bool_]:
        return self._batch.terminated | self._batch.truncated

    def _final_info(self, car: int) -> Info:
        """The last info of a car whose episode ended."""
        return step_info(self._batch.final_infos[car].item())

    def _reset_columns(self) -> dict[str, list[Any]]:
        """The infos of a reset as columns."""
        return {name: self._batch.infos[column].tolist() for name, column in RESET_COLUMNS.items()}

    def _step_columns(self) -> dict[str, list[Any]]:
        """The infos of the last step as columns; lap columns only if a lap ended, null for the other cars."""
        infos = self._batch.infos
        columns = {name: infos[name].tolist() for name in STEP_KEYS}
        finished = ~np.isnan(infos["lapTime"])
        if finished.any():
            for name in LAP_KEYS:
                columns[name] = [
                    value if has_lap else None
                    for value, has_lap in zip(infos[name].tolist(), finished.tolist(), strict=True)
                ]
        return columns


def _clip(value: float) -> float:
    return min(max(value, -1.0), 1.0)
