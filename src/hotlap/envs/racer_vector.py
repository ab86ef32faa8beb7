"""`RacerVectorEnv`: N cars in one compiled call, with same-step autoreset."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym

from hotlap.config import Range, check_count
from hotlap.envs.fleet import NUM_CARS, Fleet, make_engine
from hotlap.envs.fleet_vector import FleetVectorEnv
from hotlap.envs.registration import REMOTE_RACER_ID
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.tracks.registry import DEFAULT_TRACK


class RacerVectorEnv(FleetVectorEnv):
    """Cars on one track, or on several in turn.

    Car i of a batch seeded s is bit-identical to `RacerEnv` seeded s + i.
    """

    def __init__(
        self,
        num_envs: int = 1,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        num_threads: int | None = None,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        check_count("num_envs", num_envs, NUM_CARS)
        if num_threads is not None:
            check_count("num_threads", num_threads, Range(1))
        if render_mode is not None:
            raise ConfigError(
                f"render_mode: the batched environment cannot render, got {render_mode!r:.40}. Use RacerEnv."
            )
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        engine = CpuEngine(num_threads) if num_threads else make_engine(num_envs)
        self.fleet = Fleet(track_ids, RacerSettings.load(config), num_envs, engine, observation)
        super().__init__(self.fleet, observation)


def make_fleet_env(
    num_envs: int,
    track_id: str | Sequence[str] = DEFAULT_TRACK,
    config: SettingsSource = None,
    *,
    observation: ObservationName = DEFAULT_OBSERVATION,
    action_repeat: int = 1,
    num_threads: int | None = None,
    bridge: Mapping[str, str] | None = None,
) -> Any:
    """Cars in this process, or behind a bridge; `fleet` of either steps them, with the same bits.

    `bridge` has the arguments of a connection (`{"bridge_url": URL}`). A fleet in this process repeats actions by the
    argument of its `step`, one behind a bridge by `action_repeat`.
    """
    if bridge is None:
        return RacerVectorEnv(num_envs, track_id, config, num_threads=num_threads, observation=observation)
    options: dict[str, Any] = {"track_id": track_id, "config": config, "observation": observation}
    mode = gym.VectorizeMode.VECTOR_ENTRY_POINT
    options |= {"num_envs": num_envs, "vectorization_mode": mode, "action_repeat": action_repeat, **bridge}
    return gym.make_vec(REMOTE_RACER_ID, **options)  # by its id, without importing the bridge
