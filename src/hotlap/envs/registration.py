"""The Gymnasium ids of our environments, and their registration."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

RACER_ID = "hotlap/Racer-v0"
REMOTE_RACER_ID = "hotlap/RemoteRacer-v0"


def register_environments() -> None:
    """Register our environments with Gymnasium, unless they are registered already."""
    from gymnasium.envs.registration import register, registry

    if RACER_ID not in registry:
        # No max_episode_steps: maxSteps of the settings limits the episodes.
        register(
            id=RACER_ID,
            entry_point="hotlap.envs.racer:RacerEnv",
            vector_entry_point="hotlap.envs.racer_vector:RacerVectorEnv",
        )
    if REMOTE_RACER_ID not in registry:
        register(
            id=REMOTE_RACER_ID,
            entry_point="hotlap.bridge.remote_env:RemoteRacerEnv",
            vector_entry_point="hotlap.bridge.remote_vector:RemoteRacerVectorEnv",
        )


def register_with_gymnasium() -> None:
    """Register our environments now if Gymnasium is imported, else as soon as it is: `hotlap --help` needs it not."""
    if "gymnasium" in sys.modules:
        register_environments()
    elif not any(isinstance(finder, _GymnasiumFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GymnasiumFinder())


class _GymnasiumFinder:
    """Finds Gymnasium as the other finders do, once, and lets its loader register our environments at the end."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's specification; None for every other module, which leaves it to the next finder."""
        if name != "gymnasium":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            loader, execute = spec.loader, spec.loader.exec_module

            def execute_and_register(module: ModuleType) -> None:
                execute(module)
                register_environments()

            loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
