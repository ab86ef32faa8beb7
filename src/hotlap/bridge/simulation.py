"""One connection's world: a car, or a batch of cars, moved by requests and described by replies."""

import struct
from functools import lru_cache
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.binary import read_actions, write_step
from hotlap.bridge.protocol import (
    Action,
    BatchResetResult,
    BatchStepResult,
    Final,
    Reset,
    ResetResult,
    StepResult,
    decode_config,
)
from hotlap.envs.fleet import Fleet
from hotlap.envs.racer import DEFAULT_TRACK, RESET_COLUMNS, step_info
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import NUM_ACTIONS, as_actions
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.world import INFO_DTYPE
from hotlap.tracks.registry import load_track

_NO_CONFIG = (b"", b"null")
_LAP_NAMES = ("lapTime", "lapClean")  # the last two
_LAP_TIME = -2
_STEP_NAMES = tuple(name for name in INFO_DTYPE.names or () if name not in _LAP_NAMES)
# One car's info, written without a dict on the way; lap time and cleanness only where a lap ended.
_StepInfo = msgspec.defstruct(
    "_StepInfo",
    [(name, Any) for name in _STEP_NAMES] + [(name, Any, msgspec.UNSET) for name in _LAP_NAMES],
    gc=False,
)
_ACTION = struct.Struct(f"{NUM_ACTIONS}f")
_reset_values = itemgetter(*((INFO_DTYPE.names or ()).index(column) for column in RESET_COLUMNS.values()))


@lru_cache(maxsize=32)
def settings_from(config: bytes) -> RacerSettings:
    """Settings from a request's JSON object; the same text is read once."""
    return RacerSettings() if config in _NO_CONFIG else RacerSettings.load(decode_config(config))


def simulation_for(request: Reset, current: "Simulation | None", rng: np.random.Generator) -> "Simulation":
    """The world a reset asks for: `current` where nothing about it changes, so that a reset costs no more than a step.

    `rng` draws a seed where a new world is given none. A refused request leaves `current` as it was.
    """
    track_ids = request.track_id if request.track_id is not None else DEFAULT_TRACK
    if isinstance(track_ids, list) and request.num_envs is None:
        raise ConfigError("trackId: a list of tracks needs numEnvs. Name one track, or ask for a batch.")
    if isinstance(track_ids, str):
        track_ids = [track_ids]
    settings = settings_from(bytes(request.config))
    _check_seed(request)
    if current is not None and current.is_like(track_ids, settings, request.num_envs):
        return current
    return Simulation(Fleet(track_ids, settings, request.num_envs or 1, CpuEngine()), request.num_envs is not None, rng)


def _check_seed(request: Reset) -> None:
    seeds = request.seed if isinstance(request.seed, list) else [request.seed or 0]
    if isinstance(request.seed, list) and len(seeds) != request.num_envs:
        raise ConfigError(f"seed: a list needs one seed for each of the numEnvs cars, got {len(seeds)}.")
    if min(seeds, default=0) < 0:
        raise ConfigError(f"seed must be zero or more, got {min(seeds)}.")


class Simulation:
    """Cars and the replies about them. One thread: at most 1,024 cars are done before a second one has woken up."""

    def __init__(self, fleet: Fleet, is_batch: bool, rng: np.random.Generator) -> None:
        self.fleet = fleet
        self.is_batch = is_batch
        self._rng = rng
        self._batch = fleet.batch
        self._is_seeded = False
        self._track_ids = [track.track_id for track in fleet.tracks]
        self._are_shipped = all(track.is_shipped for track in fleet.tracks)
        # Made once: for one car, indexing arrays would cost as much as moving it.
        self._actions = np.zeros((fleet.num_cars, NUM_ACTIONS), np.float32)
        self._action_bytes = self._actions.data.cast("B")
        self._first_obs = self._batch.obs[0]

    def is_like(self, track_ids: list[str], settings: RacerSettings, num_envs: int | None) -> bool:
        """Whether a reset that asks for these can go on with this world."""
        if self.is_batch != (num_envs is not None) or (num_envs or 1) != self.fleet.num_cars:
            return False
        return self._has_tracks(track_ids) and self.fleet.settings == settings

    def _has_tracks(self, track_ids: list[str]) -> bool:
        if self._track_ids != track_ids:
            return False
        # A track of the user's may have been imported anew since, or removed.
        return self._are_shipped or self.fleet.tracks == tuple(map(load_track, track_ids))

    def reset(self, request: Reset) -> ResetResult | BatchResetResult:
        """Begin an episode for every car."""
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
        values = _reset_values(batch.infos.item())
        return ResetResult(self._first_obs.tolist(), dict(zip(RESET_COLUMNS, values, strict=True)))

    def _car_seeds(self, seed: int | list[int]) -> NDArray[np.uint64]:
        """One seed for each car, as `RacerVectorEnv` has it: from s on, or those listed."""
        seeds = seed if isinstance(seed, list) else range(seed, seed + self.fleet.num_cars)
        return np.array([one % 2**64 for one in seeds], np.uint64)

    def step(self, action: Action) -> StepResult:
        """One tick of the one car."""
        if max(action) > 1.0 or min(action) < -1.0:  # float32 has no room for what JSON may hold
            action = (_clip(action[0]), _clip(action[1]), _clip(action[2]))
        _ACTION.pack_into(self._action_bytes, 0, *action)
        self.fleet.step(self._actions, autoreset=False)
        batch = self._batch
        told = batch.infos.item()
        has_lap = told[_LAP_TIME] == told[_LAP_TIME]  # else NaN
        return StepResult(
            self._first_obs.tolist(),
            batch.rewards.item(),
            batch.terminated.item(),
            batch.truncated.item(),
            _StepInfo(*(told if has_lap else told[:_LAP_TIME])),
        )

    def step_batch(self, actions: list[Action]) -> BatchStepResult:
        """One tick of every car; those that end begin anew at once."""
        self.fleet.step(as_actions(actions, self._actions.shape), autoreset=True)
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
        """One tick, of one car or of a batch, in the binary form."""
        self.fleet.step(read_actions(data, self.fleet.num_cars), autoreset=self.is_batch)
        return write_step(self._batch, self._ended() if self.is_batch else np.zeros(0, np.intp))

    def _ended(self) -> NDArray[np.intp]:
        return np.flatnonzero(self._batch.terminated | self._batch.truncated)

    def _info_columns(self) -> dict[str, list[Any]]:
        """The infos of the last step, a column each; lap times only when a lap ended, null for the other cars."""
        infos = self._batch.infos
        columns = {name: infos[name].tolist() for name in _STEP_NAMES}
        finished = ~np.isnan(infos["lapTime"])
        if finished.any():
            for name in _LAP_NAMES:
                columns[name] = [
                    value if is_told else None
                    for value, is_told in zip(infos[name].tolist(), finished.tolist(), strict=True)
                ]
        return columns


def _clip(value: float) -> float:
    return min(max(value, -1.0), 1.0)
