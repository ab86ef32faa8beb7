"""`RemoteRacerVectorEnv`: a batch of cars over the bridge, one message per step, with same-step autoreset."""

from collections.abc import Sequence
from typing import Any

from hotlap.bridge.protocol import DEFAULT_URL
from hotlap.bridge.remote_env import refuse_render_mode
from hotlap.bridge.remote_fleet import RemoteCars, RemoteFleet
from hotlap.envs.fleet_vector import FleetVectorEnv
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import DEFAULT_OBSERVATION, ObservationName
from hotlap.tracks.registry import DEFAULT_TRACK


class RemoteRacerVectorEnv(FleetVectorEnv):
    """`RacerVectorEnv` in another process: the same arrays wherever their masks are true.

    `binary` selects the bridge's binary format; otherwise messages are JSON, at a third of the speed. With
    `action_repeat` a step lasts that many ticks with one action, and is still one message.
    """

    def __init__(
        self,
        num_envs: int = 1,
        bridge_url: str = DEFAULT_URL,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        binary: bool = True,
        observation: ObservationName = DEFAULT_OBSERVATION,
        action_repeat: int = 1,
    ) -> None:
        refuse_render_mode(render_mode)
        track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        cars = RemoteCars(num_envs, track_ids, RacerSettings.load(config), observation, action_repeat, binary)
        self.fleet = RemoteFleet(bridge_url, cars)
        super().__init__(self.fleet, observation, action_repeat)

    def close_extras(self, **kwargs: Any) -> None:
        """Disconnect; the bridge drops these cars."""
        self.fleet.close()
