"""The Gymnasium ids of our environments."""

from gymnasium.envs.registration import register, registry

RACER_ID = "hotlap/Racer-v0"
REMOTE_RACER_ID = "hotlap/RemoteRacer-v0"


def register_environments() -> None:
    """Register our environments with Gymnasium, unless they are registered already."""
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
