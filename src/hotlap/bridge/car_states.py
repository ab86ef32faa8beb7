"""The state of cars as JSON columns: written for a client, and checked strictly when a client sends one back."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.protocol import MAX_REQUEST_BYTES
from hotlap.envs.fleet import FleetState
from hotlap.errors import StateError
from hotlap.sim.world import STATE_DTYPE

Columns = Mapping[str, Sequence[int | float | None]]

COLUMN_NAMES = STATE_DTYPE.names or ()
# A number takes at most 24 bytes as JSON, its comma included; what surrounds the numbers takes less than 2,048.
MAX_CARS_PER_MESSAGE = (MAX_REQUEST_BYTES - 2048) // (24 * len(COLUMN_NAMES))
_CAR_COLUMNS: Mapping[str, "np.dtype[Any]"] = {name: STATE_DTYPE[name] for name in COLUMN_NAMES}
_MAY_BE_NULL = "race_race_time_s"  # NaN of a car that has not finished, which JSON cannot hold


def state_columns(state: FleetState) -> dict[str, list[int | float | None]]:
    """The state of a fleet as lists of numbers; float32 values are written so that they are read back exactly."""
    return {name: column.tolist() for name, column in state.items()}


def read_columns(columns: Columns, num_cars: int, dtypes: Mapping[str, "np.dtype[Any]"] = _CAR_COLUMNS) -> FleetState:
    """The columns of `num_cars` cars as arrays of the state's types; StateError for any other."""
    if set(columns) != set(dtypes):
        raise StateError("state: its columns are not those of this version. Send what get_state answered.")
    return {name: _read_column(name, columns[name], num_cars, dtype) for name, dtype in dtypes.items()}


def _read_column(
    name: str, values: Sequence[int | float | None], num_cars: int, dtype: "np.dtype[Any]"
) -> NDArray[Any]:
    if len(values) != num_cars:
        raise StateError(f"state: column {name!r} must have {num_cars} values like the others, got {len(values)}.")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        for value in values:
            if type(value) is not int or not limits.min <= value <= limits.max:
                raise StateError(
                    f"state: column {name!r} must hold whole numbers from {limits.min} to {limits.max}, "
                    f"got {value!r:.40}."
                )
        return np.array(values, dtype)
    if name != _MAY_BE_NULL and None in values:
        raise StateError(f"state: column {name!r} must hold numbers, got null.")
    try:
        wide = np.array(values, np.float64)  # null becomes NaN
    except OverflowError:
        raise StateError(f"state: column {name!r} must hold numbers that fit into {dtype}.") from None
    with np.errstate(over="ignore"):  # too large for float32 becomes infinite, which the fleet refuses
        return wide.astype(dtype)


def with_columns(state: FleetState, first: int, columns: Columns) -> tuple[FleetState, slice]:
    """`state` with the cars from number `first` on replaced by `columns`, and which cars these are."""
    num_cars, num_given = len(state[COLUMN_NAMES[0]]), len(next(iter(columns.values()), ()))
    given = read_columns(columns, num_given, {name: column.dtype for name, column in state.items()})
    if not 1 <= num_given <= num_cars - first:
        raise StateError(f"state: {num_given} car(s) from number {first} on do not fit a batch of {num_cars}.")
    cars = slice(first, first + num_given)
    for name, column in given.items():
        state[name][cars] = column
    return state, cars
