"""The cars of one connection: one car or a batch, stepped by requests and described by replies."""

import struct
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.binary import read_actions, write_step
from hotlap.bridge.car_states import state_columns, with_columns
from hotlap.bridge.protocol import (
    MAX_ENVS,
    MAX_STEP_TICKS,
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
    decode_config,
)
from hotlap.config import Range, check_number
from hotlap.envs.fleet import REPEATS, Fleet
from hotlap.envs.infos import LAP_KEYS, RESET_COLUMNS, STEP_KEYS, reset_info, step_info
from hotlap.envs.racer import DEFAULT_TRACK
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName, as_actions
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import find_entries, load_tracks

_NO_CONFIG = (b"", b"null")
_NUM_ENVS = Range(1, MAX_ENVS)
_LAP_TIME = len(STEP_KEYS)  # column in an info record; only lapClean follows
# One car's info, encoded without building a dict; lap time and cleanness only on the step that ends a lap.
_StepInfo = msgspec.defstruct(
    "_StepInfo",
    [(name, Any) for name in STEP_KEYS] + [(name, Any, msgspec.UNSET) for name in LAP_KEYS],
    gc=False,
)
_ACTION = struct.Struct(f"{NUM_ACTIONS}f")


@lru_cache(maxsize=32)
def settings_from(config: bytes) -> RacerSettings:
    """The settings in a request's JSON object; cached, so equal bytes are parsed once."""
    return RacerSettings() if config in _NO_CONFIG else RacerSettings.load(decode_config(config))


class SimulationPlan(NamedTuple):
    """The simulation that a reset asks for; a tuple, since every reset makes and compares one."""

    track_ids: list[str]  # as the client gave them
    settings: RacerSettings
    num_envs: int | None  # None: one car, not a batch
    observation: ObservationName

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

    def build(self, rng: np.random.Generator) -> "Simulation":
        """A new simulation; `rng` draws its seed if its first reset gives none."""
        fleet = Fleet(self.track_ids, self.settings, self.num_cars, CpuEngine(), self.observation)
        return Simulation(fleet, self, rng)


def plan_simulation(request: Reset) -> SimulationPlan:
    """What a reset asks for; raises if it contradicts itself."""
    track_ids = request.track_id if request.track_id is not None else DEFAULT_TRACK
    if isinstance(track_ids, list) and request.num_envs is None:
        raise ConfigError("trackId: a list of tracks needs numEnvs. Name one track, or ask for a batch.")
    if isinstance(track_ids, str):
        track_ids = [track_ids]
    _check_counts(request)
    _check_seed(request)
    settings = settings_from(bytes(request.config))
    return SimulationPlan(track_ids, settings, request.num_envs, request.observation or DEFAULT_OBSERVATION)


def _check_seed(request: Reset) -> None:
    seeds = request.seed if isinstance(request.seed, list) else [request.seed or 0]
    if isinstance(request.seed, list) and len(seeds) != request.num_envs:
        raise ConfigError(f"seed: a list needs one seed for each of the numEnvs cars, got {len(seeds)}.")
    if min(seeds, default=0) < 0:
        raise ConfigError(f"seed must be zero or more, got {min(seeds)}.")


def _check_counts(request: Reset) -> None:
    if request.num_envs is not None:
        check_number("numEnvs", request.num_envs, _NUM_ENVS)
    if request.action_repeat is not None:
        check_number("actionRepeat", request.action_repeat, REPEATS, "ticks")
    num_cars, repeat = request.num_envs or 1, request.action_repeat or 1
    if num_cars * repeat > MAX_STEP_TICKS:
        raise ConfigError(
            f"actionRepeat times numEnvs must be at most {MAX_STEP_TICKS}, got {repeat} times {num_cars}. "
            "Divide the cars over several connections."
        )


class Simulation:
    """Steps cars and makes the replies. Single-threaded: for up to 1,024 cars, waking a second thread takes longer."""

    def __init__(self, fleet: Fleet, plan: SimulationPlan, rng: np.random.Generator) -> None:
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
            self.fleet.seed(self._car_seeds(seed))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self.fleet.reset(start=request.start)
        batch = self._batch
        if self.is_batch:
            columns = {name: batch.infos[column].tolist() for name, column in RESET_COLUMNS.items()}
            return BatchResetResult(batch.obs.tolist(), columns)
        return ResetResult(self._first_obs.tolist(), reset_info(batch.infos[0].item()))

    def _car_seeds(self, seed: int | list[int]) -> NDArray[np.uint64]:
        """One seed for each car, as in `RacerVectorEnv`: s, s + 1, …, or those listed."""
        seeds = seed if isinstance(seed, list) else range(seed, seed + self.fleet.num_cars)
        return np.array([one % 2**64 for one in seeds], np.uint64)

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
        self.fleet.step(as_actions(actions, self._actions.shape), autoreset=True, repeat=self._repeat)
        batch = self._batch
        finals = {
            int(car): Final(batch.final_obs[car].tolist(), step_info(batch.final_infos[car].item()))
            for car in self._ended()
        }
        return BatchStepResult(
            batch.obs.tolist(),
            batch.rewards.tolist(),
            batch.terminated.tolist(),
            batch.truncated.tolist(),
            self._info_columns(),
            finals,
        )

    def step_binary(self, data: bytes) -> bytes:
        """One step of one car or of a batch, in the binary format."""
        actions = read_actions(data, self.fleet.num_cars)
        self.fleet.step(actions, autoreset=self.is_batch, repeat=self._repeat)
        return write_step(self._batch, self._ended() if self.is_batch else np.zeros(0, np.intp))

    def get_state(self) -> GetStateResult:
        """The state of every car."""
        return GetStateResult(state_columns(self.fleet.get_state()))

    def set_state(self, request: SetState) -> SetStateResult:
        """Continue some of the cars from a state; one that does not fit is refused and changes nothing."""
        state, cars = with_columns(self.fleet.get_state(), request.first, request.state)
        self.fleet.set_state(state)
        self._is_seeded = True
        return SetStateResult(self._batch.obs[cars].tolist())

    def _ended(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._batch.terminated | self._batch.truncated)

    def _info_columns(self) -> dict[str, list[Any]]:
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
