"""Gymnasium spaces as plain JSON data and back, so that a model file carries them."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from hotlap.errors import ConfigError, one_line
from hotlap.models.tensor_shards import MAX_DIMENSIONS

MAX_ELEMENTS = 1 << 21  # of a space and all its parts: more than observations have, and little enough to allocate

MAX_SPACE_TEXT = 120  # characters of a space in an error text


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
    """The space that `space_data` described; anything else is refused, before anything large is allocated."""
    try:
        if _count_elements(data) > MAX_ELEMENTS:
            raise ValueError(f"it has more than {MAX_ELEMENTS} elements")
        return _build(data)
    except (AssertionError, AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ConfigError(f"{data!s:.80} does not describe a space ({one_line(error):.80}).") from None


def same_to_policy(one: spaces.Space[Any], other: spaces.Space[Any]) -> bool:
    """Whether two observation spaces look the same to a network: bounds do not matter to it.

    EnvPool declares other bounds than Gymnasium for the same environment.
    """
    return _without_bounds(space_data(one)) == _without_bounds(space_data(other))


def describe_space(space: object) -> str:
    """A space as an error shows it: its beginning and its end, where the shape is."""
    text = " ".join(str(space).split())
    return text if len(text) <= MAX_SPACE_TEXT else f"{text[: MAX_SPACE_TEXT // 2]} … {text[-MAX_SPACE_TEXT // 2 :]}"


def _without_bounds(data: Mapping[str, Any]) -> dict[str, Any]:
    if data["kind"] == "Dict":
        return {"kind": "Dict", "spaces": [(name, _without_bounds(part)) for name, part in data["spaces"]]}
    return {key: value for key, value in data.items() if key not in ("low", "high")}


def _count_elements(data: Any) -> int:
    """The number of values that a network sees of a space; a choice of n counts as n, as it is one-hot encoded."""
    kind = data["kind"]
    if kind == "Dict":
        return sum(1 + _count_elements(part) for _, part in data["spaces"])
    if kind == "Box":
        return math.prod(_sizes(data["shape"]))
    if kind == "MultiDiscrete":
        return sum(_sizes(_flat(data["nvec"])))
    if kind == "MultiBinary":
        return math.prod(_sizes(_flat(data["n"])))
    return sum(_sizes([data["n"]]))


def _sizes(values: list[Any]) -> list[int]:
    """The values, if all are whole numbers from 0."""
    if not isinstance(values, list) or not all(type(value) is int and value >= 0 for value in values):
        raise ValueError("its sizes must be whole numbers, zero or more")
    return values


def _flat(value: Any) -> list[Any]:
    return [leaf for item in value for leaf in _flat(item)] if isinstance(value, list) else [value]


def _build(data: Any) -> spaces.Space[Any]:
    kind, values = data["kind"], {key: value for key, value in data.items() if key != "kind"}
    if kind == "Dict":
        return spaces.Dict([(str(name), _build(part)) for name, part in _only(values, "spaces")["spaces"]])
    if kind == "Box":
        _only(values, "shape", "dtype", "low", "high")
        shape, dtype = tuple(values["shape"]), np.dtype(values["dtype"])
        if dtype.kind not in "fiub" or len(shape) > MAX_DIMENSIONS:
            raise ValueError("its shape or dtype is out of range")
        low, high = (np.array(_numbers(values[name]), dtype) for name in ("low", "high"))
        if {low.shape, high.shape} - {(), shape}:
            raise ValueError("its bounds must have its shape, or be one number")
        return spaces.Box(np.broadcast_to(low, shape), np.broadcast_to(high, shape), shape, dtype.type)
    if kind == "Discrete":
        return spaces.Discrete(**_only(values, "n", "start"))
    if kind == "MultiDiscrete":
        nvec, start = (np.array(_only(values, "nvec", "start")[name], np.int64) for name in ("nvec", "start"))
        return spaces.MultiDiscrete(nvec, start=start)
    if kind == "MultiBinary":
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
