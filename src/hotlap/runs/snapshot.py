"""A run's whole state as data, between two rollouts. Needs no learning library."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import DivergedError, StateError
from hotlap.models.model_file import NORMALIZER_GROUP, POLICY_GROUP
from hotlap.runs.state_tree import Tree, join_tree, split_tree

REPLAY_GROUP = "replay_buffer"
# Raised when states of one version cannot be restored by another.
STATE_FORMAT = 2
# The groups that a NaN reaches from a bad update.
_LEARNED_GROUPS = ("policy", "optimizers", "normalizer", "learner")
# A model file has these too, without anything beside the arrays.
_MODEL_GROUPS = (POLICY_GROUP, NORMALIZER_GROUP)


@dataclass(frozen=True)
class Snapshot:
    """A run's whole state: plain JSON data, and groups of named arrays."""

    plain: Mapping[str, Any]
    groups: Mapping[str, Mapping[str, NDArray[Any]]]

    @classmethod
    def of(cls, parts: Mapping[str, Tree]) -> "Snapshot":
        """From the parts of a run's state by name; arrays are copied."""
        plain: dict[str, Any] = {"format": STATE_FORMAT}
        groups: dict[str, Mapping[str, NDArray[Any]]] = {}
        for name, tree in parts.items():
            rest, arrays = split_tree(tree)
            if arrays:
                groups[name] = arrays
            if name not in _MODEL_GROUPS:
                plain[name] = rest
        return cls(plain, groups)

    def parts(self) -> dict[str, Tree]:
        """What `of` was made from; StateError for a state of another version."""
        if self.plain.get("format") != STATE_FORMAT:
            raise StateError(
                "it was written by another version of hotlap. Its model can be evaluated; train on from it with "
                "`hotlap train --start-model`, or resume it with the version that wrote it."
            )
        # The arrays of a replay buffer are removed when newer checkpoints are written.
        kept = {name: rest for name, rest in self.plain.items() if name != REPLAY_GROUP or name in self.groups}
        found = {name: join_tree(rest, self.groups.get(name, {})) for name, rest in kept.items()}
        return found | {name: dict(self.groups.get(name, {})) for name in _MODEL_GROUPS}

    @property
    def step(self) -> int:
        """The step at which it was captured."""
        return int(self.plain["learner"]["counters"]["num_timesteps"])

    @property
    def next_road(self) -> int | None:
        """The number of the next road where the cars drive on a stream of them; None elsewhere, and where damaged."""
        found = self.groups.get("envs", {}).get("world.next_road")
        return int(found) if found is not None and found.shape == () and found.dtype == np.int64 else None

    def refuse_not_finite(self) -> None:
        """Raise DivergedError where a weight, or what belongs to the weights, is not finite."""
        for group in _LEARNED_GROUPS:
            for name, array in self.groups.get(group, {}).items():
                if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                    raise DivergedError(f"{group} {name!r:.80} holds NaN or infinity")
