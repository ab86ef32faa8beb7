"""A run's whole state as data, between two rollouts. Needs no learning library."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

REPLAY_GROUP = "replay_buffer"


@dataclass(frozen=True)
class Snapshot:
    """A run's whole state: plain JSON data, and groups of named arrays."""

    plain: Mapping[str, Any]
    groups: Mapping[str, Mapping[str, NDArray[Any]]]

    @property
    def step(self) -> int:
        """The step at which it was captured."""
        return int(self.plain["learner"]["counters"]["num_timesteps"])
