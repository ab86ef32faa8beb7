"""Refuses numbers in a model file with which a policy gives no action, before anything is built from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box
from numpy.typing import NDArray

from hotlap.errors import ModelError
from hotlap.models.actor_layers import ACTORS, VARIANCE_FLOOR, actor_layers

LARGEST = float(np.finfo(np.float32).max)  # policies compute in float32

_Arrays = Mapping[str, NDArray[Any]]
_REMEDY = "Use another model."


def refuse_not_finite(path: Path, arrays: _Arrays) -> None:
    """Refuse weights or statistics that hold NaN or infinity."""
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelError(f"{path}: {name!r:.80} is not finite, so its training diverged. Use an earlier model.")


def refuse_other_types(path: Path, weights: _Arrays, statistics: _Arrays) -> None:
    """Refuse arrays of another type than Hotlap writes: the same bytes as whole numbers are another network."""
    for arrays, expected in ((weights, np.float32), (statistics, np.float64)):
        for name, array in arrays.items():
            if array.dtype != expected:
                raise ModelError(f"{path}: {name!r:.80} is {array.dtype}; it must be {np.dtype(expected)}. {_REMEDY}")


def refuse_bad_statistics(path: Path, statistics: _Arrays) -> None:
    """Refuse a normalizer that divides by the root of a negative variance or does not fit into float32."""
    for name, array in statistics.items():
        if not array.size:
            continue
        low = 0.0 if name.endswith(("_var", "_count")) else -LARGEST
        if array.min() < low or array.max() > LARGEST:
            worst = array.min() if array.min() < low else array.max()
            raise ModelError(
                f"{path}: {name!r:.80} must be from {low:.3g} to {LARGEST:.3g}, got {worst:.3g}. {_REMEDY}"
            )


def refuse_overflow(
    path: Path,
    weights: _Arrays,
    algorithm: str,
    *,
    activation: str | None,
    observations: Space[Any],
    clip_obs: float | None,
    statistics: _Arrays,
) -> None:
    """Refuse weights with which a sum of the actor's may overflow, which makes actions NaN.

    The largest output of each layer is bounded by that of its inputs: the bounds of the observations, taken as 1 where
    they have none, normalized and clipped. Weights that do not form a perceptron are left to who builds it.
    """
    try:
        layers = list(actor_layers(weights, algorithm))
    except KeyError:
        return
    largest = _largest_inputs(observations, clip_obs, statistics)
    name = activation or ACTORS[algorithm].default_activation
    for weight, bias in layers:
        if weight.ndim != 2 or bias.shape != weight.shape[:1]:
            return
        if largest.shape != weight.shape[1:]:  # features of a picture, or weights that do not fit
            largest = np.ones(weight.shape[1])
        sums = np.abs(weight.astype(np.float64)) @ largest + np.abs(bias.astype(np.float64))
        if sums.size and not sums.max() <= LARGEST:
            raise ModelError(
                f"{path}: its weights are too large: a layer may reach {sums.max():.3g}, and float32 ends at "
                f"{LARGEST:.3g}. Use an earlier model."
            )
        largest = np.ones(len(sums)) if name == "tanh" else np.maximum(sums, 1.0 if name == "elu" else 0.0)


def _largest_inputs(observations: Space[Any], clip_obs: float | None, statistics: _Arrays) -> NDArray[np.float64]:
    """How large each input of a network may be; empty where it is not known."""
    if not isinstance(observations, Box):
        return np.zeros(0)
    largest = np.maximum(np.abs(observations.low.astype(np.float64)), np.abs(observations.high.astype(np.float64)))
    largest = np.where(np.isfinite(largest), largest, 1.0)
    if clip_obs is not None:
        mean, variance = statistics["obs_mean"], statistics["obs_var"]
        if mean.shape != largest.shape or variance.shape != largest.shape:
            return np.zeros(0)
        largest = np.minimum((largest + np.abs(mean)) / np.sqrt(variance + VARIANCE_FLOOR), clip_obs)
    return largest.ravel()
