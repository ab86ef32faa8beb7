"""Races as a learner sees them: only the cars that learn have rows, and others are driven by `Opponents`.

So cars that do not learn never reach the rollout or the loss.
"""

import numpy as np
import torch
from torch import Tensor

from hotlap.envs.race_fleet import RaceFleet
from hotlap.envs.tensor_engines import begin_fleet, open_engine
from hotlap.hyperparameters import RaceSettings
from hotlap.learning.opponents import Opponents
from hotlap.learning.race_rewards import Decision, race_reward
from hotlap.sim.race import RACING

_COLUMNS = ("laps_done", "arc_m", "status", "position", "contact_mps", "at_fault")  # of the entrants
_RESULTS = ("obs", "final_obs", "rewards", "terminated", "truncated", "infos", "final_infos")  # of a step, by car


class RaceSeats:
    """The engine of the cars that learn, in races with others; see `CarEngine`."""

    def __init__(
        self, fleet: RaceFleet, device: torch.device, action_repeat: int, settings: RaceSettings, opponents: Opponents
    ) -> None:
        self.opponents = opponents
        self._fleet, self._settings = fleet, settings
        self._all = open_engine(fleet, device, action_repeat)
        self._shape = fleet.num_races, fleet.cars_per_race
        self._rows = opponents.learners
        full, rows = self._all, self._rows
        self.actions = full.actions[rows]
        self.obs, self.final_obs = full.obs[rows], full.final_obs[rows]
        self.rewards = full.rewards[rows]
        self.terminated, self.truncated = full.terminated[rows], full.truncated[rows]
        self.infos, self.final_infos = full.infos[rows], full.final_infos[rows]
        lengths_m = torch.as_tensor(fleet.lap_lengths_m, device=device).view(self._shape)[:, :1]
        self._lengths_m = lengths_m
        rewards = fleet.settings.rewards
        # What a metre of progress is worth, so that a metre gained is counted alike.
        unit_m = torch.full_like(lengths_m, rewards.progress_length_m) if rewards.progress_length_m else lengths_m
        self._unit_m = unit_m / rewards.progress if rewards.progress else unit_m

    def begin(self, seed: int) -> None:
        """Begin all races; race i gets the seed `seed` + i. Their ends are spread over the length of a race."""
        begin_fleet(self._fleet, seed)
        ticks = np.arange(self._fleet.num_races) * int(self._fleet.race_rules["max_ticks"][0]) // self._fleet.num_races
        self._fleet.entrants["tick"] = np.repeat(ticks, self._fleet.cars_per_race)
        self.opponents.begin(seed)
        self.load()

    def load(self) -> None:
        """Take the states of the fleet in main memory."""
        self._all.load()
        torch.index_select(self._all.obs, 0, self._rows, out=self.obs)

    def store(self) -> None:
        """Write the states to the fleet in main memory."""
        self._all.store()

    def step(self) -> None:
        """One decision of every car, also of those that do not learn; where a race ends, the next one begins."""
        full, rows = self._all, self._rows
        full.actions.index_copy_(0, rows, self.actions)
        self.opponents.drive(full.see, full.actions)
        from_m, from_position = self._progress_m(full.entrants), full.entrants["position"].clone()
        full.step()
        ended = torch.logical_or(full.terminated, full.truncated)
        after = {name: self._after(ended, name) for name in _COLUMNS}
        decision = Decision(
            moved_m=self._by_race(self._progress_m(after) - from_m),
            arc_m=self._by_race(after["arc_m"]),
            is_racing=self._by_race(after["status"] == RACING),
            positions_gained=self._by_race(from_position - after["position"]),
            contact_mps=self._by_race(after["contact_mps"]),
            is_at_fault=self._by_race(after["at_fault"] != 0),
        )
        extra = race_reward(self._settings, decision, self._lengths_m, self._unit_m)
        torch.add(full.rewards, extra.flatten(), out=full.rewards)
        self.opponents.note(self._by_race(ended)[:, 0], self._by_race(after["position"]))
        for name in _RESULTS:
            torch.index_select(getattr(full, name), 0, rows, out=getattr(self, name))

    def _after(self, ended: Tensor, name: str) -> Tensor:
        """A column of the entrants at the end of the decision, whether or not a new race began."""
        return torch.where(ended, self._all.final_entrants[name], self._all.entrants[name])

    def _progress_m(self, entrants: dict[str, Tensor]) -> Tensor:
        return self._lengths_m.expand(self._shape).flatten() * entrants["laps_done"] + entrants["arc_m"]

    def _by_race(self, column: Tensor) -> Tensor:
        return column.view(self._shape)
