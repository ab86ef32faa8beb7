"""Hotlap: teach a car to race, and measure how good it is.

Importing the package registers its environments with Gymnasium and loads nothing heavy. The simulator is compiled, or
loaded from its cache, when the first environment is made.
"""

from hotlap.python_processes import leave_working_folder

leave_working_folder()  # before anything else is imported

from typing import TYPE_CHECKING, Any  # noqa: E402

from hotlap._version import __version__  # noqa: E402
from hotlap.envs.registration import register_with_gymnasium  # noqa: E402
from hotlap.errors import HotlapError, explain_missing  # noqa: E402

if TYPE_CHECKING:
    from hotlap.bridge.remote_env import RemoteRacerEnv
    from hotlap.bridge.remote_vector import RemoteRacerVectorEnv
    from hotlap.envs.race_parallel import parallel_env
    from hotlap.envs.race_vector import RaceVectorEnv
    from hotlap.envs.racer import RacerEnv
    from hotlap.envs.racer_vector import RacerVectorEnv
    from hotlap.envs.tensor_racer import TensorRacer
    from hotlap.sim.version import PHYSICS_VERSION, RACE_VERSION

__all__ = [
    "PHYSICS_VERSION",
    "RACE_VERSION",
    "HotlapError",
    "RaceVectorEnv",
    "RacerEnv",
    "RacerVectorEnv",
    "RemoteRacerEnv",
    "RemoteRacerVectorEnv",
    "TensorRacer",
    "__version__",
    "parallel_env",
]

_LAZY = {
    "RaceVectorEnv": "hotlap.envs.race_vector",
    "TensorRacer": "hotlap.envs.tensor_racer",
    "parallel_env": "hotlap.envs.race_parallel",
    "RacerEnv": "hotlap.envs.racer",
    "RacerVectorEnv": "hotlap.envs.racer_vector",
    "RemoteRacerEnv": "hotlap.bridge.remote_env",
    "RemoteRacerVectorEnv": "hotlap.bridge.remote_vector",
    "PHYSICS_VERSION": "hotlap.sim.version",
    "RACE_VERSION": "hotlap.sim.version",
}

register_with_gymnasium()


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module 'hotlap' has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(_LAZY[name]), name)
    except ModuleNotFoundError as error:
        raise explain_missing(error) from None


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted(__all__)
