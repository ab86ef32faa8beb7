"""A run's whole state as data, between two rollouts. Needs no learning library."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import DivergedError

REPLAY_GROUP = "replay_buffer"
# The groups that a NaN reaches from a bad update.
_LEARNED_GROUPS = ("policy", "optimizers", "normalizer", "learner")


@dataclass(frozen=True)
class Snapshot:
    """A run's whole state: plain JSON data, and groups of named arrays."""

    plain: Mapping[str, Any]
    groups: Mapping[str, Mapping[str, NDArray[Any]]]

    @property
    def step(self) -> int:
        """The step at which it was captured."""
        return int(self.plain["learner"]["counters"]["num_timesteps"])

    def refuse_not_finite(self) -> None:
        """Raise DivergedError where a weight, or what belongs to the weights, is not finite."""
        for group in _LEARNED_GROUPS:
            for name, array in self.groups.get(group, {}).items():
                if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                    raise DivergedError(f"{group} {name!r:.80} holds NaN or infinity")
