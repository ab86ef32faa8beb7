"""`LineKeeper`: keeps its distance from the centreline and sees nobody. Others are measured by how they pass it."""

import numpy as np
from numpy.typing import NDArray

from hotlap.drivers.casual import CasualDriver, CasualHabits
from hotlap.envs.fleet import Fleet

# It does not react late, its controls do not shake, and it leaves grip for the inside of a bend.
_HABITS = CasualHabits(reaction_s=0.0, grip_share=0.60, steer_noise=0.0, pedal_noise=0.0)


class LineKeeper(CasualDriver):
    """Drives car i `offsets[i]` left of the centreline, as a fraction of the road's half-width there."""

    name = "line keeper"

    def __init__(self, offsets: NDArray[np.float64]) -> None:
        super().__init__(_HABITS)
        self._offsets = offsets

    def begin(self, fleet: Fleet, seed: int) -> None:
        """Prepare to drive; other cars are not looked at."""
        super().begin(fleet, seed)
        self._eyes = None
        self._first_node = np.cumsum([0, *(track.nodes.num_nodes for track in fleet.tracks)])
        half_widths = [np.minimum(track.nodes.road_left_m, track.nodes.road_right_m) for track in fleet.tracks]
        self._half_widths_m = np.concatenate(half_widths)

    def act(self, obs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Steer towards the line ahead, at a speed with grip to spare."""
        states = self._fleet.states
        node = self._first_node[states["track"]] + states["node"]
        self._advice["offset_m"] = self._offsets * self._half_widths_m[node]
        return super().act(obs)
