"""The actions of a drive as an entry stores them: runs of ticks with the same action."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hotlap.benchmark.protocol import MAX_TICKS
from hotlap.errors import ReplayError

# One run: an action, and the number of ticks that it is held.
RUN_DTYPE = np.dtype([("steer", "<f4"), ("throttle", "<f4"), ("brake", "<f4"), ("ticks", "<u4")])
Runs = NDArray[np.void]  # (N,) RUN_DTYPE
_ACTION_NAMES = ("steer", "throttle", "brake")


def to_runs(actions: NDArray[np.float32]) -> Runs:
    """Actions tick by tick (num_ticks, 3) as runs; equal means equal bits."""
    bits = np.ascontiguousarray(actions, np.float32).view(np.int32)
    firsts = np.flatnonzero(np.concatenate([[True], (bits[1:] != bits[:-1]).any(axis=1)])[: len(actions)])
    runs = np.zeros(len(firsts), RUN_DTYPE)
    for column, name in enumerate(_ACTION_NAMES):
        runs[name] = actions[firsts, column]
    runs["ticks"] = np.diff(np.append(firsts, len(actions)))
    return runs


def to_ticks(runs: Runs) -> NDArray[np.float32]:
    """Runs as actions tick by tick, (num_ticks, 3)."""
    rows = np.stack([runs[name].astype(np.float32) for name in _ACTION_NAMES], axis=1)
    return np.ascontiguousarray(np.repeat(rows, runs["ticks"], axis=0))


def read_runs(content: bytes, counts: Sequence[int], where: str) -> list[Runs]:
    """The runs of several drives, `counts` of each, checked; ReplayError where they make no sense."""
    if len(content) != sum(counts) * RUN_DTYPE.itemsize:
        raise ReplayError(f"{where}: has {len(content)} bytes, not the {sum(counts)} runs that the entry lists.")
    runs = np.frombuffer(content, RUN_DTYPE)
    if not all(np.isfinite(runs[name]).all() for name in _ACTION_NAMES):
        raise ReplayError(f"{where}: an action is not finite.")
    if (runs["ticks"] == 0).any() or (runs["ticks"] > MAX_TICKS).any():
        raise ReplayError(f"{where}: a run must last from 1 to {MAX_TICKS} ticks.")
    drives = np.split(runs, np.cumsum(counts)[:-1])
    for number, drive in enumerate(drives):
        if (num_ticks := int(drive["ticks"].sum(dtype=np.int64))) > MAX_TICKS:
            raise ReplayError(f"{where}: drive {number} has {num_ticks} ticks; at most {MAX_TICKS} are allowed.")
    return drives
