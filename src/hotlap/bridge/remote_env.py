"""`RemoteRacerEnv`: the racer over the bridge, with the same spaces and bit-identical traces."""

from math import isfinite
from typing import Any

import gymnasium as gym
import msgspec
import numpy as np
from numpy.typing import NDArray

from hotlap.bridge.client import connect_to_racer, read_reset, read_step
from hotlap.bridge.protocol import DEFAULT_URL, Reset, Step, encode
from hotlap.config import as_plain, camel_case
from hotlap.envs.infos import Info
from hotlap.envs.racer import Observation, start_option
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import (
    DEFAULT_OBSERVATION,
    ObservationName,
    action_space,
    as_actions,
    observation_space,
)
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK

_ACTION_SHAPE = (NUM_ACTIONS,)


class RemoteRacerEnv(gym.Env[Any, Any]):
    """`RacerEnv` in another process. The constructor connects; `close` disconnects."""

    metadata = {"render_modes": [], "render_fps": TICKS_PER_SECOND}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        bridge_url: str = DEFAULT_URL,
        track_id: str = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        refuse_render_mode(render_mode)
        self.render_mode = None
        self.action_space = action_space()
        self.observation_space = observation_space(observation)
        self._observation = observation
        self._track_id = track_id
        self._config = config_json(config)
        self._is_seeded = False
        self._client = connect_to_racer(bridge_url, [track_id])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begin an episode; `options={"start": "random"}` begins it anywhere on the track."""
        start = start_option(options)
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**63))  # drawn as the local environment draws it
        request = Reset(
            track_id=self._track_id,
            config=self._config,
            seed=None if seed is None else seed % 2**64,
            start=start,  # type: ignore[arg-type]  # `start_option` checked it
            observation=self._observation,
        )
        result = self._client.ask(request, read_reset)
        self._is_seeded = True
        return np.array(result.observation, np.float32), result.info

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, Info]:
        """One tick. An action out of range is clipped; one that is not finite is an error and the car does not move."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        checked = as_actions(action, _ACTION_SHAPE)
        steer, throttle, brake = checked.tolist()
        if not isfinite(steer + throttle + brake):  # each is within float32, so the sum of finite ones is finite
            refuse_not_finite(checked[None])
        result = self._client.ask(Step((steer, throttle, brake)), read_step)
        observation = np.array(result.observation, np.float32)
        return observation, result.reward, result.terminated, result.truncated, result.info

    def close(self) -> None:
        """Disconnect; the bridge drops this simulation."""
        self._client.close()


def config_json(config: SettingsSource) -> msgspec.Raw:
    """Load and check the settings, and encode them as the JSON object of a request."""
    return msgspec.Raw(encode(as_plain(RacerSettings.load(config), camel_case)))


def refuse_render_mode(render_mode: str | None) -> None:
    """Refuse every render mode: the bridge sends no pictures."""
    if render_mode is not None:
        raise ConfigError(f"render_mode: a remote environment cannot render, got {render_mode!r:.40}. Use RacerEnv.")


def refuse_not_finite(actions: NDArray[np.float32]) -> None:
    """Raise the local environment's error for NaN or infinite actions (N, 3), which JSON cannot hold."""
    is_finite = np.isfinite(actions)
    if not is_finite.all():
        bad = int(np.flatnonzero(~is_finite.all(axis=1))[0])
        raise ActionError(f"action of car {bad} must be finite, got {actions[bad].tolist()}; nothing moved.")
