"""The last check of an export: the actions that a model gives for sampled observations."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.errors import ModelError
from hotlap.models.model_file import ModelFile

NUM_SAMPLES = 16
MAX_SAMPLED = 1e6  # where observations have no bounds


def sample_observations(model: ModelFile) -> NDArray[np.float32]:
    """Observations as the environment gives them: the ends of each range, and random ones between; the same each time.

    For a model with Box observations; bounds that are not finite are taken as the normalizer's mean and ten times its
    deviation, or as a million.
    """
    space = model.card.raw_observations
    assert isinstance(space, spaces.Box)
    rng = np.random.default_rng(0)
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    mean, spread = np.zeros(space.shape), np.full(space.shape, MAX_SAMPLED)
    if model.card.clip_obs is not None and not model.card.is_racer:
        mean, spread = model.normalizer["obs_mean"], 10.0 * np.sqrt(model.normalizer["obs_var"])
    low, high = np.where(np.isfinite(low), low, mean - spread), np.where(np.isfinite(high), high, mean + spread)
    low, high = np.clip(low, -MAX_SAMPLED, MAX_SAMPLED), np.clip(high, -MAX_SAMPLED, MAX_SAMPLED)
    between = rng.uniform(size=(NUM_SAMPLES, *space.shape))
    return np.stack([low, high, *(low + (high - low) * between)]).astype(np.float32)


def refuse_bad_actions(model: ModelFile, actions: NDArray[Any]) -> None:
    """Refuse a model whose actions, one row each, are not finite or not within the bounds of its action space."""
    space = model.card.spaces[1]
    for action in actions:
        if not np.isfinite(action).all() or not space.contains(np.asarray(action, space.dtype)):
            raise ModelError(
                f"{model.path}: its policy gives the action {np.asarray(action).tolist()!s:.80}, which is not one of "
                "the environment's. Use an earlier model."
            )
