"""The last check of an export: the actions that a model gives for sampled observations."""

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.errors import ModelError
from hotlap.models.model_file import ModelFile

NUM_SAMPLES = 16
ROUNDING = 1e-6  # of a bound: scaling to it rounds


def sample_observations(model: ModelFile) -> Any:
    """Observations as the environment might give them, one row each, or a dict of rows; the same each time."""
    space = deepcopy(model.card.raw_observations)
    space.seed(0)
    rows = [space.sample() for _ in range(NUM_SAMPLES)]
    if isinstance(space, spaces.Dict):
        return {name: np.stack([row[name] for row in rows]) for name in space.spaces}
    return np.stack(rows)


def refuse_bad_actions(model: ModelFile, actions: NDArray[Any]) -> None:
    """Refuse a model whose actions, one row each, are not finite or not within the bounds of its action space."""
    space = model.card.spaces[1]
    is_good = np.isfinite(actions)
    if isinstance(space, spaces.Box):
        is_good &= actions >= space.low - ROUNDING * np.abs(space.low)
        is_good &= actions <= space.high + ROUNDING * np.abs(space.high)
    if not is_good.all():
        row = actions[int(np.argmin(is_good.reshape(len(actions), -1).all(axis=1)))]
        raise ModelError(
            f"{model.path}: its policy gives the action {row.tolist()!s:.80}, which is not one of the environment's. "
            "Use an earlier model."
        )
