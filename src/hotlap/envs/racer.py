"""`RacerEnv`: one car, one Gymnasium environment."""

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from hotlap.envs.fleet import Fleet, FleetState
from hotlap.envs.infos import Info, reset_info, step_info
from hotlap.envs.rendering import draw_frame
from hotlap.envs.settings import RacerSettings, SettingsSource, start_code
from hotlap.envs.spaces import (
    DEFAULT_OBSERVATION,
    ObservationName,
    action_space,
    as_actions,
    observation_space,
)
from hotlap.envs.window import Window, check_render_mode, offered_modes, render_with
from hotlap.errors import ConfigError
from hotlap.sim.batch_cpu import CpuEngine
from hotlap.sim.vehicle import TICKS_PER_SECOND
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK

Observation = NDArray[np.float32]

_ACTION_SHAPE = (NUM_ACTIONS,)


class RacerEnv(gym.Env[Any, Any]):
    """A car on a track. One step is one physics tick of 1/60 s. Spaces, rewards and infos: docs/environment.md."""

    metadata = {"render_modes": offered_modes(), "render_fps": TICKS_PER_SECOND}  # noqa: RUF012 (Gymnasium declares it so)

    def __init__(
        self,
        track_id: str = DEFAULT_TRACK,
        config: SettingsSource = None,
        render_mode: str | None = None,
        observation: ObservationName = DEFAULT_OBSERVATION,
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.action_space = action_space()
        self.observation_space = observation_space(observation)
        self.fleet = Fleet([track_id], RacerSettings.load(config), 1, CpuEngine(), observation)
        self._batch = self.fleet.batch
        self._actions = np.zeros((1, NUM_ACTIONS), np.float32)
        self._is_seeded = False
        self._window = Window(f"Hotlap: {track_id}") if render_mode == "human" else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, Info]:
        """Begin an episode; `options={"start": "random"}` starts it anywhere on the track."""
        start = start_option(options)
        super().reset(seed=seed)
        if seed is not None or not self._is_seeded:
            own_seed = seed if seed is not None else int(self.np_random.integers(2**63))
            self.fleet.seed(np.array([own_seed % 2**64], np.uint64))
            self._is_seeded = True
        else:
            self.fleet.next_episode()
        self.fleet.reset(start=start)
        if self._window:
            self.render()
        return self._batch.obs[0].copy(), reset_info(self._batch.infos[0].item())

    def step(self, action: NDArray[np.float32]) -> tuple[Observation, float, bool, bool, Info]:
        """One tick. An action out of range is clipped; if it is not finite, ActionError is raised and the car stays."""
        if not self._is_seeded:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        self._actions[0] = as_actions(action, _ACTION_SHAPE)
        self.fleet.step(self._actions, autoreset=False)
        batch = self._batch
        if self._window and self._window.is_due(int(self.fleet.states["tick"][0])):
            self.render()
        return (
            batch.obs[0].copy(),
            float(batch.rewards[0]),
            bool(batch.terminated[0]),
            bool(batch.truncated[0]),
            step_info(batch.infos[0].item()),
        )

    def render(self) -> NDArray[np.uint8] | None:
        """A top-down RGB picture of the world with `render_mode="rgb_array"`; with "human" it is shown in the window.

        `reset` and `step` show it there, too. Without a render mode there is a warning.
        """
        fleet = self.fleet
        world = fleet.tracks[0], fleet.states[0], self._batch.obs[0], fleet.top_speed_mps
        return render_with(self.render_mode, self._window, lambda: draw_frame(*world))

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window:
            self._window.close()

    def get_state(self) -> FleetState:
        """The complete state of the world; `set_state` continues from it bit-identically."""
        return self.fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of `get_state`."""
        self.fleet.set_state(state)
        self._is_seeded = True


def start_option(options: dict[str, Any] | None) -> str | None:
    """The start in the options of `reset`, or None; any other option raises ConfigError."""
    if options is None:
        return None
    if not isinstance(options, dict):
        raise ConfigError(f"options must be a dict, got {options!r:.40}.")
    for key in options:
        if key != "start":
            raise ConfigError(f"options: unknown key {key!r:.40}. Known keys: start.")
    start = options.get("start")
    if start is not None:
        start_code(start)
    return start
