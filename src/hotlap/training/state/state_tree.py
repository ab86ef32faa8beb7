"""Nested state as a file can hold it: plain JSON data on one side, named arrays on the other."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hotlap.errors import StateError

Tree = Any  # dicts with string keys, lists, arrays, tensors, strings, numbers, None
# Stand in the plain part where an array was, or a number that JSON does not have.
ARRAY_KEY = "@array"
FLOAT_KEY = "@float"
_RESERVED = ({ARRAY_KEY}, {FLOAT_KEY})


def split_tree(tree: Tree) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The plain part, and the arrays by their place in the tree (`optimizer/state/0/exp_avg`)."""
    arrays: dict[str, NDArray[Any]] = {}
    return _split(tree, "", arrays), arrays


def _split(node: Tree, place: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if isinstance(node, torch.Tensor):
        node = node.detach().cpu().numpy()
    if isinstance(node, np.ndarray):
        # A key may have a slash in it, and then two places may read the same.
        while place in arrays:
            place += "'"
        # A copy: what is captured must not change while training goes on.
        arrays[place] = node.copy()
        return {ARRAY_KEY: place}
    if isinstance(node, np.generic):
        node = node.item()
    if isinstance(node, float) and not math.isfinite(node):
        return {FLOAT_KEY: str(node)}
    if isinstance(node, Mapping):
        if set(node) in _RESERVED:
            raise StateError(f"state: {place} has the one key {next(iter(node))!r}, which checkpoints use themselves.")
        return {str(key): _split(value, f"{place}/{key}" if place else str(key), arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_split(value, f"{place}/{index}" if place else str(index), arrays) for index, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise StateError(f"state: {place} is of type {type(node).__name__}, which no checkpoint can hold.")


def join_tree(plain: Any, arrays: Mapping[str, NDArray[Any]]) -> Tree:
    """The tree whose parts these are; arrays stay arrays."""
    if isinstance(plain, Mapping):
        if set(plain) == {ARRAY_KEY}:
            name = plain[ARRAY_KEY]
            if name not in arrays:
                raise StateError(f"state: the array {name!r:.80} is missing.")
            return arrays[name]
        if set(plain) == {FLOAT_KEY}:
            return float(plain[FLOAT_KEY])
        return {key: join_tree(value, arrays) for key, value in plain.items()}
    if isinstance(plain, list):
        return [join_tree(value, arrays) for value in plain]
    return plain
