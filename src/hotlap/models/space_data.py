"""Gymnasium spaces as plain JSON data and back, so that a model file carries them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.errors import ConfigError, one_line

MAX_ELEMENTS = 1 << 24  # of a Box: more than any observation has, and little enough to allocate


def space_data(space: spaces.Space[Any]) -> dict[str, Any]:
    """A space as plain data: its kind and what that kind needs; a Box whose bounds are all equal stores one number.

    A Dict is a list of pairs, since the order of its keys decides how a network reads it.
    """
    if isinstance(space, spaces.Dict):
        return {"kind": "Dict", "spaces": [[name, space_data(part)] for name, part in space.spaces.items()]}
    if isinstance(space, spaces.Box):
        bounds = {"low": _plain_bound(space.low), "high": _plain_bound(space.high)}
        return {"kind": "Box", "shape": list(space.shape), "dtype": np.dtype(space.dtype).name, **bounds}
    if isinstance(space, spaces.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist()}
    if isinstance(space, spaces.MultiBinary):
        return {"kind": "MultiBinary", "n": list(space.shape) if len(space.shape) > 1 else int(space.shape[0])}
    raise ConfigError(f"{space!s:.80} is a space that no policy of Hotlap uses. Use Box, Discrete, Multi… or Dict.")


def space_from_data(data: Any) -> spaces.Space[Any]:
    """The space that `space_data` described; anything else is refused."""
    try:
        return _build(data)
    except (AssertionError, AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ConfigError(f"{data!s:.80} does not describe a space ({one_line(error):.80}).") from None


def same_to_policy(one: spaces.Space[Any], other: spaces.Space[Any]) -> bool:
    """Whether two observation spaces look the same to a network: bounds do not matter to it.

    EnvPool declares other bounds than Gymnasium for the same environment.
    """
    return _without_bounds(space_data(one)) == _without_bounds(space_data(other))


def _without_bounds(data: Mapping[str, Any]) -> dict[str, Any]:
    if data["kind"] == "Dict":
        return {"kind": "Dict", "spaces": [(name, _without_bounds(part)) for name, part in data["spaces"]]}
    return {key: value for key, value in data.items() if key not in ("low", "high")}


def _build(data: Any) -> spaces.Space[Any]:
    kind, values = data["kind"], {key: value for key, value in data.items() if key != "kind"}
    if kind == "Dict":
        return spaces.Dict([(str(name), _build(part)) for name, part in _only(values, "spaces")["spaces"]])
    if kind == "Box":
        _only(values, "shape", "dtype", "low", "high")
        shape, dtype = tuple(values["shape"]), np.dtype(values["dtype"])
        if dtype.kind not in "fiub" or math.prod(shape) > MAX_ELEMENTS or min(shape, default=0) < 0:
            raise ValueError("its shape or dtype is out of range")
        low, high = (np.broadcast_to(np.array(_numbers(values[name]), dtype), shape) for name in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(**_only(values, "n", "start"))
    if kind == "MultiDiscrete":
        nvec, start = (np.array(_only(values, "nvec", "start")[name], np.int64) for name in ("nvec", "start"))
        return spaces.MultiDiscrete(nvec, start=start)
    if kind == "MultiBinary":
        if np.prod(values["n"]) > MAX_ELEMENTS:
            raise ValueError("it is too large")
        return spaces.MultiBinary(**_only(values, "n"))
    raise ValueError(f"unknown kind {kind!r:.40}")


def _only(values: dict[str, Any], *names: str) -> dict[str, Any]:
    if set(values) != set(names):
        raise ValueError(f"its keys must be {', '.join(names)}")
    return values


def _plain_bound(bound: NDArray[Any]) -> Any:
    """One number where all are equal, else nested lists; infinities become text, which JSON can hold."""
    if bound.size and (bound == bound.flat[0]).all():
        bound = bound.reshape(-1)[0]
    return _map_leaves(bound.tolist(), lambda value: str(value) if math.isinf(value) else value)


def _numbers(bound: Any) -> Any:
    return _map_leaves(bound, lambda value: float(value) if value in ("inf", "-inf") else value)


def _map_leaves(value: Any, change: Any) -> Any:
    return [_map_leaves(item, change) for item in value] if isinstance(value, list) else change(value)
