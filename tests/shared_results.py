"""Results that take seconds to compute, made by one of the processes of a test run and read by the others."""

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")

RUN = "HOTLAP_TEST_RUN"  # names a run of several processes; not set in a run of one process


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[], T]) -> T:
    """What `make` returns, called in one of the processes of a run; in a run of one process, simply called."""
    run = os.environ.get(RUN)
    if run is None or os.name != "posix":
        return make()
    import fcntl

    folder = factory.getbasetemp().parent  # the processes' common one
    path = folder / f"{name}-{run}.pickle"
    with (folder / f"{name}-{run}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():
            found: T = pickle.loads(path.read_bytes())
        else:
            found = make()
            partial = path.with_suffix(".partial")
            partial.write_bytes(pickle.dumps(found))
            partial.rename(path)
    return found
