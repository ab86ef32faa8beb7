"""`RemoteRacerVectorEnv`: a batch of cars over the bridge, one message per step, with same-step autoreset."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotlap.bridge.binary import StepArrays, read_step, write_actions
from hotlap.bridge.client import connect_to_racer, read_batch_reset, read_batch_step
from hotlap.bridge.protocol import DEFAULT_URL, MAX_ENVS, BatchStepResult, Reset
from hotlap.bridge.remote_env import config_json, refuse_not_finite, refuse_render_mode
from hotlap.envs.infos import INFO_KEYS, LAP_KEYS, RESET_COLUMNS, SHARED_KEYS, STEP_KEYS, VectorInfo, masked_info
from hotlap.envs.racer import DEFAULT_TRACK, start_option
from hotlap.envs.racer_vector import RacerVectorEnv
from hotlap.envs.seeds import resolve_seed
from hotlap.envs.settings import SettingsSource
from hotlap.envs.spaces import (
    DEFAULT_OBSERVATION,
    NUM_ACTIONS,
    ObservationName,
    action_space,
    as_actions,
    num_observations,
    observation_space,
)
from hotlap.errors import ConfigError
from hotlap.sim.world import INFO_DTYPE

Arrays = NDArray[Any]


class RemoteRacerVectorEnv(gym.vector.VectorEnv[NDArray[np.float32], NDArray[np.float32], Arrays]):
    """`RacerVectorEnv` in another process: the same arrays wherever their masks are true.

    `binary` selects the bridge's binary format; otherwise messages are JSON, at a third of the speed.
    """

    metadata = RacerVectorEnv.metadata

    def __init__(
        self,
        num_envs: int = 1,
        bridge_url: str = DEFAULT_URL,
        track_id: str | Sequence[str] = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        binary: bool = True,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        if not isinstance(num_envs, int) or not 1 <= num_envs <= MAX_ENVS:
            raise ConfigError(f"num_envs must be a whole number from 1 to {MAX_ENVS}, got {num_envs!r:.40}.")
        refuse_render_mode(render_mode)
        self.num_envs = num_envs
        self.single_action_space = action_space()
        self.single_observation_space = observation_space(observation)
        self._observation, self._num_obs = observation, num_observations(observation)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._track_ids = [track_id] if isinstance(track_id, str) else list(track_id)
        if not self._track_ids:
            raise ConfigError("track_id: at least one track is needed, got an empty list.")
        self._config = config_json(config)
        self._is_binary = binary
        self._is_seeded = False
        self._all_cars = np.ones(num_envs, np.bool_)
        self._all_cars.flags.writeable = False
        self._client = connect_to_racer(bridge_url, self._track_ids, binary=binary)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], VectorInfo]:
        """Begin an episode for every car; an integer seed s gives car i the seed s + i."""
        start = start_option(options)
        if isinstance(seed, int):
            super().reset(seed=seed)
        is_continued = seed is None and self._is_seeded
        request = Reset(
            track_id=self._track_ids,
            config=self._config,
            seed=None if is_continued else resolve_seed(seed, self.num_envs, self.np_random),
            num_envs=self.num_envs,
            start=start,  # type: ignore[arg-type]  # `start_option` checked it
            observation=self._observation,
        )
        result = self._client.ask(request, read_batch_reset)
        self._is_seeded = True
        info: VectorInfo = {}
        for name, column in RESET_COLUMNS.items():
            info[name], info[f"_{name}"] = np.array(result.info[name], INFO_DTYPE[column]), self._all_cars
        return np.array(result.observation, np.float32), info

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_], VectorInfo]:
        """One tick for every car; a car that ended is reset at once (see `final_obs`, `final_info`)."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        checked = as_actions(actions, (self.num_envs, NUM_ACTIONS))
        refuse_not_finite(checked)
        result = self._step_binary(checked) if self._is_binary else self._step_json(checked)
        has_ended = np.zeros(self.num_envs, np.bool_)
        has_ended[result.ended] = True
        # The info of a car that was just reset describes no step: that of its last one is in `final_info`.
        info = masked_info(result.infos, ~has_ended)
        if len(result.ended):
            for name in SHARED_KEYS:
                info[f"_{name}"] = self._all_cars
            finals = {name: np.zeros(self.num_envs, INFO_DTYPE[name]) for name in INFO_KEYS}
            finals["lapTime"][:] = np.nan
            for name, column in result.final_infos.items():
                finals[name][result.ended] = column
            final_obs = np.zeros((self.num_envs, self._num_obs), np.float32)
            final_obs[result.ended] = result.final_obs
            info["final_obs"], info["_final_obs"] = final_obs, has_ended
            info["final_info"], info["_final_info"] = masked_info(finals, has_ended), has_ended
        return result.obs, result.rewards, result.terminated, result.truncated, info

    def _step_binary(self, actions: NDArray[np.float32]) -> StepArrays:
        return read_step(self._client.step_binary(write_actions(actions)), self._num_obs)

    def _step_json(self, actions: NDArray[np.float32]) -> StepArrays:
        request = _step_template(self.num_envs) % tuple(actions.ravel().tolist())
        return arrays_from(self._client.ask(request.encode(), read_batch_step))

    def close_extras(self, **kwargs: Any) -> None:
        """Disconnect; the bridge drops these cars."""
        self._client.close()


@lru_cache(maxsize=4)
def _step_template(num_cars: int) -> str:
    """A step request with placeholders for its numbers.

    Nine digits round-trip every float32, and 1,024 cars stay under the size limit of a request.
    """
    return '{"type":"step","action":[' + ",".join(["[%.9g,%.9g,%.9g]"] * num_cars) + "]}"


def arrays_from(result: BatchStepResult) -> StepArrays:
    """A JSON step result as the arrays that the binary format gives."""
    num_cars = len(result.reward)
    infos = {name: np.array(result.info[name], INFO_DTYPE[name]) for name in STEP_KEYS}
    has_lap = [value is not None for value in result.info.get("lapTime", [None] * num_cars)]
    infos["lapTime"] = np.full(num_cars, np.nan, np.float32)
    infos["lapClean"] = np.zeros(num_cars, np.bool_)
    for name in LAP_KEYS:
        if name in result.info:
            infos[name][has_lap] = [value for value in result.info[name] if value is not None]
    finals = [final.info for final in result.finals.values()]
    final_infos = {name: np.array([info.get(name, 0) for info in finals], INFO_DTYPE[name]) for name in INFO_KEYS}
    final_infos["lapTime"] = np.array([info.get("lapTime", np.nan) for info in finals], np.float32)
    final_obs = np.array([final.observation for final in result.finals.values()], np.float32)
    return StepArrays(
        np.array(result.observation, np.float32),
        np.array(result.reward, np.float32),
        np.array(result.terminated, np.bool_),
        np.array(result.truncated, np.bool_),
        infos,
        np.array(list(result.finals), np.int32),
        final_obs.reshape(len(finals), len(result.observation[0])),
        final_infos,
    )
