"""The cars of a run divided over processes: joins their states into one snapshot, and cuts it into parts again.

The joined snapshot is the one of a single process with all cars, so any number of processes can resume from it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import StateError, TrainingError
from hotlap.learning.distributed.processes import Processes
from hotlap.models.archive import tensors_digest
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP
from hotlap.runs.snapshot import Snapshot

_Groups = Mapping[str, Mapping[str, NDArray[Any]]]


def join_cars(snapshot: Snapshot, processes: Processes) -> Snapshot:
    """The state of all processes; everything but the cars is the same in each of them."""
    if processes.is_alone:
        return snapshot
    columns = _per_car(snapshot.groups)
    _refuse_different(snapshot.groups, processes)
    # In one message: a gather for each of dozens of small arrays would take longer.
    parts = processes.gather_bytes(b"".join(columns[key].tobytes() for key in columns))
    joined: dict[tuple[str, str], NDArray[Any]] = {}
    begin = 0
    for key, own in columns.items():
        each = [np.frombuffer(part, own.dtype, own.size, begin).reshape(own.shape) for part in parts]
        joined[key] = np.concatenate(each)
        begin += own.nbytes
    return Snapshot(snapshot.plain, _replaced(snapshot.groups, joined))


def take_cars(snapshot: Snapshot, processes: Processes) -> Snapshot:
    """The part of one process."""
    if processes.is_alone:
        return snapshot
    own: dict[tuple[str, str], NDArray[Any]] = {}
    for key, column in _per_car(snapshot.groups).items():
        num_cars, rest = divmod(len(column), processes.size)
        if rest:
            raise StateError(f"state: its {len(column)} cars cannot be divided over {processes.size} processes.")
        own[key] = column[num_cars * processes.rank : num_cars * (processes.rank + 1)]
    return Snapshot(snapshot.plain, _replaced(snapshot.groups, own))


def _refuse_different(groups: _Groups, processes: Processes) -> None:
    """Refuse processes whose weights or normalizers have come apart."""
    moments = {name: array for name, array in groups.get(NORMALIZER_GROUP, {}).items() if name != "returns"}
    digests = [tensors_digest(part) for part in (groups[POLICY_GROUP], moments)]
    if len(set(processes.gather_bytes("".join(digests).encode()))) > 1:
        raise TrainingError("the processes of this run have different weights. Are all machines of the same kind?")


def _per_car(groups: _Groups) -> dict[tuple[str, str], NDArray[Any]]:
    """The arrays with one row per car, by group and name."""
    found = {("envs", name): array for name, array in groups.get("envs", {}).items() if array.ndim}
    if NORMALIZER_GROUP in groups:
        found[NORMALIZER_GROUP, "returns"] = groups[NORMALIZER_GROUP]["returns"]
    return found


def _replaced(groups: _Groups, changed: Mapping[tuple[str, str], NDArray[Any]]) -> _Groups:
    return {
        group: {name: changed.get((group, name), array) for name, array in arrays.items()}
        for group, arrays in groups.items()
    }
