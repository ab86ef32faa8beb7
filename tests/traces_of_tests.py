"""A test that leaves something behind fails itself, not the one that comes after it in the same process."""

import os
import sys
from collections.abc import Iterator
from functools import lru_cache

import pytest

# Of variables only these: libraries set others when they are imported.
WATCHED = ("CUDA", "HOTLAP", "LOCAL_", "MKL", "NUMBA", "OMP", "PYTHON", "RANK", "TORCH_", "WORLD_SIZE")
SET_BY_AN_IMPORT = "OMP_WAIT_POLICY"  # of `hotlap.training`


def watched_variables() -> set[tuple[str, str]]:
    """Names and values of variables that another test or its processes may read."""
    return {
        (name, value) for name, value in os.environ.items() if name.startswith(WATCHED) and name != SET_BY_AN_IMPORT
    }


@lru_cache(maxsize=1)
def our_modules(num_modules: int) -> list[tuple[str, str, str]]:
    """Name, package and last part of the name of our modules; collected again when the number of all has changed."""
    names = [name for name in sys.modules if name.startswith("hotlap.")]
    return [(name, *name.rpartition(".")[::2]) for name in names]


def replaced_modules() -> list[str]:
    """Modules of ours that their package does not have, or of which it has another copy."""
    modules, found = sys.modules, []
    for name, package, attribute in our_modules(len(modules)):
        module = modules.get(name)
        if module is not None and getattr(modules.get(package), attribute, None) is not module:
            found.append(name)
    return found


@pytest.fixture(autouse=True)
def no_traces() -> Iterator[None]:
    """Compare the variables of the environment and our modules after a test with those before it."""
    variables, modules = watched_variables(), replaced_modules()
    yield
    changed = {name for name, _ in variables ^ watched_variables()}
    assert not changed, f"the test left other environment variables: {', '.join(sorted(changed))}"
    assert replaced_modules() == modules, "the test left another copy of a module"
