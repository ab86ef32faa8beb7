"""The binary format of a step: little-endian arrays, for batches where JSON would be the bottleneck.

A request is float32 (N, 3). A reply holds, for N cars of which M ended their episode on this step:

    uint32   N, M
    float32  observation (N, L), reward (N), then a column of N for each of FLOAT_COLUMNS
    int32    a column of N for each of INT_COLUMNS
    uint8    terminated (N), truncated (N), then a column of N for each of BOOL_COLUMNS
    int32    index (M) of the cars that ended
    float32  last observation (M, L), then a column of M for each of FLOAT_COLUMNS
    int32    a column of M for each of INT_COLUMNS
    uint8    a column of M for each of BOOL_COLUMNS

L is the length of the observation that `reset` asked for: 14 for `rays`. `lapTime` is NaN where no lap ended. Every
array starts at a multiple of its item's size.

The cars of a race have more columns: after N and M comes float64 `raceProgress` (N), then (M) of those that ended;
RACE_FLOATS follow FLOAT_COLUMNS, and RACE_INTS follow INT_COLUMNS, with the flags among them as 0 or 1. `raceTime` is
NaN where no car finished.
"""

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotlap.envs.infos import INFO_KEYS
from hotlap.envs.race_infos import RACE_TIME
from hotlap.errors import BridgeError
from hotlap.sim.step import Batch
from hotlap.sim.world import INFO_DTYPE, NUM_ACTIONS, NUM_OBSERVATIONS

FLOAT_COLUMNS = tuple(name for name in INFO_KEYS if INFO_DTYPE[name] == np.float32)
INT_COLUMNS = tuple(name for name in INFO_KEYS if INFO_DTYPE[name] == np.int32)
BOOL_COLUMNS = tuple(name for name in INFO_KEYS if INFO_DTYPE[name] == np.bool_)

RACE_PROGRESS = "raceProgress"
RACE_FLOATS = ("contact", "slipstream", RACE_TIME)
RACE_FLAGS = ("atFault", "finished")
RACE_INTS = ("position", "overtakes", *RACE_FLAGS)

_DOUBLE, _FLOAT, _INT, _BYTE = np.dtype("<f8"), np.dtype("<f4"), np.dtype("<i4"), np.dtype(np.uint8)
_HEAD = struct.Struct("<II")
ACTION_BYTES = NUM_ACTIONS * _FLOAT.itemsize

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class StepArrays:
    """The result of a step of N cars, M of which ended and were reset; info columns by name."""

    obs: NDArray[np.float32]  # (N, L)
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    infos: Columns
    ended: NDArray[np.int32]  # (M,), indices of the cars that ended
    final_obs: NDArray[np.float32]  # (M, L)
    final_infos: Columns  # of M rows


class RaceColumns(NamedTuple):
    """What the infos of cars in a race have besides, of all N and of the M that ended."""

    columns: Columns
    finals: Columns


def write_actions(actions: NDArray[np.float32]) -> bytes:
    """Encode actions (N, 3) as a step request."""
    return actions.astype(_FLOAT, copy=False).tobytes()


def read_actions(data: bytes, num_cars: int) -> NDArray[np.float32]:
    """Decode the actions (N, 3) of a step request."""
    if len(data) != num_cars * ACTION_BYTES:
        raise BridgeError(
            f"action: a binary step of {num_cars} car(s) is {num_cars * ACTION_BYTES} bytes"
            f" (little-endian float32, {num_cars} by {NUM_ACTIONS}), got {len(data)}."
        )
    return np.frombuffer(data, _FLOAT).astype(np.float32).reshape(num_cars, NUM_ACTIONS)


def write_step(batch: Batch, ended: NDArray[np.intp], race: RaceColumns | None = None) -> bytes:
    """Encode the step in `batch` as a reply; `ended` lists the cars that ended and were reset."""
    infos: Any = batch.infos
    finals: Any = batch.final_infos[ended] if len(ended) else None
    floats, ints = FLOAT_COLUMNS, INT_COLUMNS
    parts = [_HEAD.pack(len(batch.infos), len(ended))]
    if race is not None:
        floats, ints = floats + RACE_FLOATS, ints + RACE_INTS
        infos = {name: infos[name] for name in INFO_KEYS} | race.columns
        finals = {name: finals[name] for name in INFO_KEYS} | race.finals if len(ended) else None
        parts += [columns[RACE_PROGRESS].astype(_DOUBLE).tobytes() for columns in (race.columns, race.finals)]
    parts += [_floats(batch.obs), _floats(batch.rewards)]
    parts += [_floats(infos[name]) for name in floats]
    parts += [_ints(infos[name]) for name in ints]
    parts += [batch.terminated.tobytes(), batch.truncated.tobytes()]
    parts += [infos[name].tobytes() for name in BOOL_COLUMNS]
    if len(ended):
        parts += [_ints(ended), _floats(batch.final_obs[ended])]
        parts += [_floats(finals[name]) for name in floats]
        parts += [_ints(finals[name]) for name in ints]
        parts += [finals[name].tobytes() for name in BOOL_COLUMNS]
    return b"".join(parts)


def _floats(values: NDArray[Any]) -> bytes:
    return values.astype(_FLOAT, copy=False).tobytes()


def _ints(values: NDArray[Any]) -> bytes:
    return values.astype(_INT, copy=False).tobytes()


def read_step(data: bytes, num_obs: int = NUM_OBSERVATIONS, *, is_race: bool = False) -> StepArrays:
    """Decode a step reply, with observations of length `num_obs`, into arrays that own their memory."""
    if len(data) < _HEAD.size:
        raise BridgeError(f"bridge: a binary reply has at least {_HEAD.size} bytes, got {len(data)}.")
    num_cars, num_ended = _HEAD.unpack_from(data)
    row_bytes = _row_bytes(num_obs, is_race)
    expected = _HEAD.size + num_cars * (row_bytes + 2) + num_ended * (row_bytes - _FLOAT.itemsize + _INT.itemsize)
    if len(data) != expected:
        raise BridgeError(f"bridge: a binary reply of {num_cars} car(s) has {expected} bytes, got {len(data)}.")
    reader = _Reader(data, is_race)
    infos, finals = reader.progress(num_cars), reader.progress(num_ended)
    obs, rewards = reader.take(_FLOAT, num_cars * num_obs), reader.take(_FLOAT, num_cars)
    infos |= reader.numbers(num_cars)
    terminated, truncated = reader.take(_BYTE, num_cars) != 0, reader.take(_BYTE, num_cars) != 0
    infos |= reader.bools(num_cars)
    ended, final_obs = reader.take(_INT, num_ended), reader.take(_FLOAT, num_ended * num_obs)
    finals |= reader.numbers(num_ended) | reader.bools(num_ended)
    if num_ended and (ended.min() < 0 or ended.max() >= num_cars):
        raise BridgeError(f"bridge: a binary reply of {num_cars} car(s) names a car that is not in the batch.")
    return StepArrays(
        obs.reshape(num_cars, num_obs),
        rewards,
        terminated,
        truncated,
        infos,
        ended,
        final_obs.reshape(num_ended, num_obs),
        finals,
    )


def _row_bytes(num_obs: int, is_race: bool) -> int:
    """Bytes of one car's observation, reward and info."""
    num_words = num_obs + 1 + len(FLOAT_COLUMNS) + len(INT_COLUMNS)
    if is_race:
        num_words += len(RACE_FLOATS) + len(RACE_INTS) + _DOUBLE.itemsize // _FLOAT.itemsize
    return num_words * _FLOAT.itemsize + len(BOOL_COLUMNS)


class _Reader:
    """Reads arrays from a message, front to back."""

    def __init__(self, data: bytes, is_race: bool) -> None:
        self._data, self._is_race = data, is_race
        self._offset = _HEAD.size

    def take(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        values = np.frombuffer(self._data, dtype, count, self._offset)
        self._offset += values.nbytes
        return values.astype(dtype.newbyteorder("="))

    def progress(self, count: int) -> Columns:
        return {RACE_PROGRESS: self.take(_DOUBLE, count)} if self._is_race else {}

    def numbers(self, count: int) -> Columns:
        floats = FLOAT_COLUMNS + (RACE_FLOATS if self._is_race else ())
        ints = INT_COLUMNS + (RACE_INTS if self._is_race else ())
        found = {name: self.take(_FLOAT, count) for name in floats} | {name: self.take(_INT, count) for name in ints}
        return found | {name: found[name] != 0 for name in RACE_FLAGS if self._is_race}

    def bools(self, count: int) -> Columns:
        return {name: self.take(_BYTE, count) != 0 for name in BOOL_COLUMNS}
