"""`parallel_env`: one race as a PettingZoo environment, in which every car is an agent."""

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from hotlap.envs.fleet import FleetState
from hotlap.envs.infos import Info, reset_info, step_info
from hotlap.envs.race_defaults import DEFAULT_CARS, DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.race_infos import RACE_TIME, race_columns
from hotlap.envs.race_vector import grid_option
from hotlap.envs.racer import RacerEnv
from hotlap.envs.rendering import draw_race
from hotlap.envs.settings import RacerSettings, SettingsSource
from hotlap.envs.spaces import action_space, as_actions, observation_space
from hotlap.envs.window import Window, check_render_mode, render_with
from hotlap.errors import ActionError, ConfigError
from hotlap.sim.world import NUM_ACTIONS
from hotlap.tracks.registry import DEFAULT_TRACK

Observations = dict[str, NDArray[np.float32]]


class RaceParallelEnv(ParallelEnv[str, NDArray[np.float32], NDArray[np.float32]]):  # type: ignore[misc, unused-ignore]
    """A race. All cars stay agents until it ends for all; a car that finished or retired has left the road."""

    metadata = {"name": "hotlap_race_v0", "is_parallelizable": True, **RacerEnv.metadata}  # noqa: RUF012

    def __init__(
        self,
        track_id: str = DEFAULT_TRACK,
        num_cars: int = DEFAULT_CARS,
        laps: int = DEFAULT_LAPS,
        start: RaceStart = DEFAULT_START,
        config: SettingsSource = None,
        render_mode: str | None = None,
    ) -> None:
        check_render_mode(render_mode)
        self.render_mode = render_mode
        self.fleet = RaceFleet([track_id], RacerSettings.load(config), 1, num_cars, laps, start, num_threads=1)
        self.possible_agents = [f"car_{number}" for number in range(num_cars)]
        self.agents: list[str] = []
        self._rng: np.random.Generator | None = None
        self._window = Window(f"Hotlap: a race on {track_id}") if render_mode == "human" else None

    @cache  # noqa: B019 (PettingZoo asks for the same object each time)
    def observation_space(self, agent: str) -> Box:
        """The same for every car."""
        return observation_space("race")

    @cache  # noqa: B019
    def action_space(self, agent: str) -> Box:
        """The same for every car."""
        return action_space()

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Info]]:
        """Begin a race; `options={"grid": [3, 0, …]}` has the cars from the first slot to the last."""
        try:
            grid = grid_option(options)
        except ConfigError as error:
            if not isinstance(options, dict):
                raise
            gym.logger.warn(str(error))  # PettingZoo's own tests pass options that no environment knows
            grid = options.get("grid")
        if seed is not None or self._rng is None:
            self._rng, _ = seeding.np_random(seed)
            own_seed = seed if seed is not None else int(self._rng.integers(2**63))
            self.fleet.seed(np.array([own_seed % 2**64], np.uint64))
        else:
            self.fleet.next_episode()
        self.fleet.reset(grid)
        self.agents = list(self.possible_agents)
        if self._window:
            self.render()
        infos = [reset_info(record.item()) for record in self.fleet.batch.infos]
        return self._by_agent(self.fleet.batch.obs.copy()), self._with_race(infos)

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[Observations, dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """One tick of all cars. If an action is missing or not finite, ActionError names the car and nothing moves."""
        if self._rng is None:
            raise gym.error.ResetNeeded("step() before reset(): call reset() first.")
        if not self.agents:
            return {}, {}, {}, {}, {}
        batch = self.fleet.batch
        has_finished = self.fleet.step(self._read_actions(actions), autoreset=False)
        if self._window and self._window.is_due(int(self.fleet.entrants["tick"][0])):
            self.render()
        infos = [step_info(record.item()) for record in batch.infos]
        for number in np.flatnonzero(has_finished):
            infos[number][RACE_TIME] = float(self.fleet.entrants["race_time_s"][number])
        results = (
            self._by_agent(batch.obs.copy()),
            self._by_agent(batch.rewards.tolist()),
            self._by_agent(batch.terminated.tolist()),
            self._by_agent(batch.truncated.tolist()),
            self._with_race(infos),
        )
        if batch.terminated[0] or batch.truncated[0]:
            self.agents = []
        return results

    def _read_actions(self, actions: dict[str, Any]) -> NDArray[np.float32]:
        """The actions of all cars as one array."""
        found = np.zeros((len(self.possible_agents), NUM_ACTIONS), np.float32)
        for number, agent in enumerate(self.possible_agents):
            if agent not in actions:
                raise ActionError(f"actions: {agent} has none; give one for every car.")
            try:
                found[number] = as_actions(actions[agent], (NUM_ACTIONS,))
            except ActionError as error:
                raise ActionError(f"{agent}: {error}") from None
        return found

    def _by_agent(self, rows: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, rows, strict=True))

    def _with_race(self, infos: list[Info]) -> dict[str, Info]:
        """The infos of all cars with what they have in a race."""
        columns = race_columns(self.fleet.entrants, self.fleet.lap_lengths_m)
        for number, info in enumerate(infos):
            info.update({name: column[number].item() for name, column in columns.items()})
        return self._by_agent(infos)

    def render(self) -> NDArray[np.uint8] | None:
        """A top-down picture around the leader with `render_mode="rgb_array"`; with "human" it is shown in the window.

        `reset` and `step` show it there, too. Without a render mode there is a warning.
        """
        fleet = self.fleet
        world = fleet.tracks[0], fleet.states, fleet.entrants
        return render_with(self.render_mode, self._window, lambda: draw_race(*world))

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window:
            self._window.close()

    def get_state(self) -> FleetState:
        """The complete state of the race; `set_state` continues from it bit-identically."""
        return self.fleet.get_state()

    def set_state(self, state: FleetState) -> None:
        """Continue from a state of `get_state`."""
        self.fleet.set_state(state)
        if self._rng is None:
            self._rng, _ = seeding.np_random(0)
        self.agents = [] if self.fleet.entrants["is_over"][0] else list(self.possible_agents)


def parallel_env(
    track_id: str = DEFAULT_TRACK,
    num_cars: int = DEFAULT_CARS,
    laps: int = DEFAULT_LAPS,
    start: RaceStart = DEFAULT_START,
    config: SettingsSource = None,
    render_mode: str | None = None,
) -> RaceParallelEnv:
    """A race of `num_cars` cars over `laps` laps, from a standing or a rolling grid; docs/racing.md describes it."""
    return RaceParallelEnv(track_id, num_cars, laps, start, config, render_mode)
