"""The ids under which Gymnasium knows our environments."""

from gymnasium.envs.registration import register, registry

RACER_ID = "hotlap/Racer-v0"
REMOTE_RACER_ID = "hotlap/RemoteRacer-v0"


def register_environments() -> None:
    """Tell Gymnasium about our environments, once."""
    if RACER_ID not in registry:
        # maxSteps of the settings ends episodes; a second limit here would cut them twice.
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
