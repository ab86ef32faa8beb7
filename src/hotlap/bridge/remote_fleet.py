"""`RemoteFleet`: cars behind a bridge with the interface of `Fleet`, one message per step and connection."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.binary import StepArrays, read_step, write_actions
from hotlap.bridge.car_states import MAX_CARS_PER_MESSAGE, read_columns, state_columns
from hotlap.bridge.client import (
    BridgeClient,
    connect_to_racer,
    read_batch_reset,
    read_batch_step,
    read_get_state,
    read_set_state,
)
from hotlap.bridge.protocol import (
    MAX_ENVS,
    MAX_STEP_TICKS,
    BatchStepResult,
    Frame,
    GetState,
    Reset,
    SetState,
)
from hotlap.bridge.remote_env import config_json, refuse_not_finite
from hotlap.config import Range, check_count
from hotlap.envs.fleet import FleetState, check_repeat
from hotlap.envs.infos import INFO_KEYS, LAP_KEYS, RESET_COLUMNS, STEP_KEYS
from hotlap.envs.settings import RacerSettings
from hotlap.envs.spaces import ObservationName, num_observations
from hotlap.errors import BridgeConnectionError, BridgeError, ConfigError, StateError
from hotlap.sim.step import Batch, make_batch
from hotlap.sim.world import INFO_DTYPE

MAX_CONNECTIONS = 64
MAX_REMOTE_CARS = MAX_CONNECTIONS * MAX_ENVS

_FIRST_INFO = np.zeros(1, INFO_DTYPE)  # of a car that has not moved yet
_FIRST_INFO["lapTime"] = np.nan


@dataclass(frozen=True)
class RemoteCars:
    """What a fleet behind a bridge consists of."""

    num_cars: int
    track_ids: Sequence[str]  # car i drives track i modulo their number
    settings: RacerSettings
    observation: ObservationName
    action_repeat: int = 1
    is_binary: bool = True

    def __post_init__(self) -> None:
        check_count("num_envs", self.num_cars, Range(1, MAX_REMOTE_CARS))
        if not self.track_ids:
            raise ConfigError("track_id: at least one track is needed, got an empty list.")
        check_repeat(self.action_repeat)
        if self.settings.domain.delay_high_ticks:
            raise ConfigError("delayHigh: a fleet behind a bridge cannot save actions under way. Use 0, or no bridge.")
        num_observations(self.observation)


@dataclass(frozen=True)
class _Part:
    """Some of the cars, which one connection drives."""

    client: BridgeClient
    cars: slice
    reset: Reset  # without seed and start
    tracks: NDArray[np.int32]  # the fleet's number of each of the part's tracks

    @property
    def num_cars(self) -> int:
        return int(self.cars.stop - self.cars.start)


class RemoteFleet:
    """Cars that a bridge drives. `batch` holds the results; its states are empty, since the bridge has them.

    More cars than one connection may have are divided over several.
    """

    def __init__(self, bridge_url: str, cars: RemoteCars) -> None:
        self.num_cars, self.settings = cars.num_cars, cars.settings
        self.batch: Batch = make_batch(cars.num_cars, num_observations(cars.observation))
        self._cars = cars
        self._seeds: NDArray[np.uint64] | None = None  # for the next reset; None: the random sequences continue
        self._is_reset = False
        self._parts: list[_Part] = []
        try:
            self._connect(bridge_url)
        except BaseException:
            self.close()
            raise

    def _connect(self, bridge_url: str) -> None:
        cars, ids = self._cars, list(self._cars.track_ids)
        order = {track_id: number for number, track_id in enumerate(dict.fromkeys(ids[: cars.num_cars]))}
        config = config_json(cars.settings)
        size = min(MAX_ENVS, MAX_STEP_TICKS // cars.action_repeat)
        for begin in range(0, cars.num_cars, size):
            end = min(begin + size, cars.num_cars)
            driven = [ids[car % len(ids)] for car in range(begin, min(end, begin + len(ids)))]
            reset = Reset(
                track_id=driven,
                config=config,
                num_envs=end - begin,
                observation=cars.observation,
                action_repeat=cars.action_repeat,
            )
            tracks = np.array([order[track_id] for track_id in dict.fromkeys(driven)], np.int32)
            client = connect_to_racer(bridge_url, ids, binary=cars.is_binary)
            self._parts.append(_Part(client, slice(begin, end), reset, tracks))

    # --- seeds and resets ---

    def seed(self, seeds: NDArray[np.uint64]) -> None:
        """Set every car's seed at the next reset and restart its episode count at zero."""
        self._seeds = seeds.copy()

    def next_episode(self) -> None:
        """Advance every car to the random numbers of its next episode at the next reset."""
        self._seeds = None

    def reset(self, start: str | None = None, mask: NDArray[np.bool_] | None = None) -> None:
        """Begin an episode for every car; `start` overrides the settings once."""
        if mask is not None and not mask.all():
            raise ConfigError("start: the cars of a bridge begin their episodes together. Give all the same start.")
        with self._closing_on_errors():
            for part in self._parts:
                self._reset_part(part, start)
        self._seeds, self._is_reset = None, True

    def _reset_part(self, part: _Part, start: str | None) -> None:
        seed = None if self._seeds is None else _as_request(self._seeds[part.cars])
        request = msgspec.structs.replace(part.reset, seed=seed, start=start)
        result = part.client.ask(request, read_batch_reset)
        self._put_obs(part, result.observation)
        self.batch.infos[part.cars] = _FIRST_INFO
        for name, column in RESET_COLUMNS.items():
            values = result.info.get(name, ())
            if len(values) != part.num_cars:
                raise BridgeError(f"bridge: a reset of {part.num_cars} car(s) has {len(values)} values of {name!r}.")
            self.batch.infos[column][part.cars] = values

    def _put_obs(self, part: _Part, rows: Sequence[Sequence[float]], first: int = 0) -> None:
        """Write observations of cars from number `first` of the part on."""
        own = self.batch.obs[part.cars][first : first + len(rows)]
        if len(own) != len(rows) or any(len(row) != own.shape[1] for row in rows):
            raise BridgeError(f"bridge: its observations are not {part.num_cars} rows of {own.shape[1]} numbers.")
        own[:] = rows

    # --- steps ---

    def step(self, actions: NDArray[np.float32], autoreset: bool, repeat: int = 1) -> None:
        """One step of every car; the results are in `batch`. `repeat` must be the fleet's action repeat."""
        if not autoreset or repeat != self._cars.action_repeat:
            raise ConfigError(f"step: these cars reset themselves and repeat actions {self._cars.action_repeat} times.")
        refuse_not_finite(actions)
        with self._closing_on_errors():
            for part in self._parts:
                part.client.send(self._request(actions[part.cars]))
            for part in self._parts:
                self._put_step(part, self._receive(part.client))

    def _request(self, actions: NDArray[np.float32]) -> Frame:
        if self._cars.is_binary:
            return Frame(write_actions(actions), is_binary=True)
        return Frame((step_template(len(actions)) % tuple(actions.ravel().tolist())).encode())

    def _receive(self, client: BridgeClient) -> StepArrays:
        if self._cars.is_binary:
            return read_step(client.receive_binary(), self.batch.obs.shape[1])
        return arrays_from(client.receive_json(read_batch_step))

    def _put_step(self, part: _Part, step: StepArrays) -> None:
        batch, cars = self.batch, part.cars
        if step.obs.shape != batch.obs[cars].shape:
            raise BridgeError(f"bridge: a step of {part.num_cars} car(s) has observations of shape {step.obs.shape}.")
        batch.obs[cars], batch.rewards[cars] = step.obs, step.rewards
        batch.terminated[cars], batch.truncated[cars] = step.terminated, step.truncated
        infos = batch.infos[cars]
        for name in INFO_KEYS:
            infos[name] = step.infos[name]
        if len(step.ended):
            rows = step.ended + cars.start
            batch.final_obs[rows] = step.final_obs
            for name in INFO_KEYS:
                batch.final_infos[name][rows] = step.final_infos[name]

    # --- saving ---

    def get_state(self) -> FleetState:
        """The complete state, one array per column: that of the same cars in this process."""
        if not self._is_reset:
            return {name: self.batch.states[name].copy() for name in self.batch.states.dtype.names or ()}
        parts = []
        with self._closing_on_errors():
            for part in self._parts:
                found = read_columns(part.client.ask(GetState(), read_get_state).state, part.num_cars)
                if not (found["track"] < len(part.tracks)).all():
                    raise BridgeError("bridge: its state names a track that was not asked for.")
                parts.append({**found, "track": part.tracks[found["track"]]})
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from `state`; StateError if it does not fit these cars and tracks."""
        names = self.batch.states.dtype.names or ()
        if not isinstance(state, Mapping) or set(state) != set(names):
            raise StateError("state: its columns are not those of this version. Save it again with get_state().")
        columns = {name: np.asarray(state[name]) for name in names}
        for name, column in columns.items():
            own = self.batch.states[name]
            if column.shape != own.shape or column.dtype != own.dtype:
                raise StateError(
                    f"state: column {name!r} must be {own.dtype} of shape {own.shape}, "
                    f"got {column.dtype} of shape {column.shape}."
                )
        if not all(np.isfinite(column).all() for column in columns.values()):
            raise StateError("state: every value must be finite.")
        own_tracks = [_own_tracks(part, columns["track"][part.cars]) for part in self._parts]
        if not self._is_reset:
            self._seeds = columns["seed"].copy()
            self.reset()
        for part, tracks in zip(self._parts, own_tracks, strict=True):
            self._restore_part(part, {name: column[part.cars] for name, column in columns.items()} | {"track": tracks})

    def _restore_part(self, part: _Part, state: FleetState) -> None:
        """Send the state in messages that are not too long."""
        size = MAX_CARS_PER_MESSAGE
        for first in range(0, part.num_cars, size):
            rows = {name: column[first : first + size] for name, column in state.items()}
            try:
                result = part.client.ask(SetState(state_columns(rows), first), read_set_state)
            except BridgeConnectionError:
                raise
            except BridgeError as error:
                raise StateError(f"state: {error}") from None
            self._put_obs(part, result.observation, first)

    # --- connections ---

    @contextmanager
    def _closing_on_errors(self) -> Iterator[None]:
        """Replies that were not read must not be read as those to the next request, so an error closes everything."""
        try:
            yield
        except BaseException:
            if len(self._parts) > 1:
                self.close()
            raise

    def close(self) -> None:
        """Disconnect; the bridge drops these cars."""
        for part in self._parts:
            part.client.close()


def _as_request(seeds: NDArray[np.uint64]) -> int | list[int]:
    """One number where the seeds are consecutive, which is shorter."""
    is_consecutive = bool((np.diff(seeds) == 1).all())
    return int(seeds[0]) if is_consecutive else [int(seed) for seed in seeds]


def _own_tracks(part: _Part, tracks: NDArray[np.int32]) -> NDArray[np.int32]:
    """The part's numbers of the tracks that have these numbers in the whole fleet."""
    order = np.argsort(part.tracks).astype(np.int32)
    places = np.searchsorted(part.tracks, tracks, sorter=order).clip(max=len(order) - 1)
    found: NDArray[np.int32] = order[places]
    if (part.tracks[found] != tracks).any():
        raise StateError("state: a car is on a track that its connection does not have. Was it saved on other tracks?")
    return found


@lru_cache(maxsize=4)
def step_template(num_cars: int) -> str:
    """A step request with placeholders for its numbers.

    Nine digits round-trip every float32, and 1,024 cars stay under the size limit of a request.
    """
    return '{"type":"step","action":[' + ",".join(["[%.9g,%.9g,%.9g]"] * num_cars) + "]}"


def arrays_from(result: BatchStepResult) -> StepArrays:
    """A JSON step result as the arrays that the binary format gives."""
    num_cars = len(result.reward)
    infos = {name: np.array(result.info[name], INFO_DTYPE[name]) for name in STEP_KEYS}
    has_lap = [value is not None for value in result.info.get("lapTime", [None] * num_cars)]
    infos["lapTime"] = np.full(num_cars, np.nan, np.float32)
    infos["lapClean"] = np.zeros(num_cars, np.bool_)
    for name in LAP_KEYS:
        if name in result.info:
            infos[name][has_lap] = [value for value in result.info[name] if value is not None]
    finals = [final.info for final in result.finals.values()]
    final_infos = {name: np.array([info.get(name, 0) for info in finals], INFO_DTYPE[name]) for name in INFO_KEYS}
    final_infos["lapTime"] = np.array([info.get("lapTime", np.nan) for info in finals], np.float32)
    final_obs = np.array([final.observation for final in result.finals.values()], np.float32)
    return StepArrays(
        np.array(result.observation, np.float32),
        np.array(result.reward, np.float32),
        np.array(result.terminated, np.bool_),
        np.array(result.truncated, np.bool_),
        infos,
        np.array(list(result.finals), np.int32),
        final_obs.reshape(len(finals), len(result.observation[0])),
        final_infos,
    )
