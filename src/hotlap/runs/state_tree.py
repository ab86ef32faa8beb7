"""Splits nested state into plain JSON data and named arrays, the two things a checkpoint file holds."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import StateError

Tree = Any  # dicts with string keys, lists, arrays, tensors, strings, numbers, None
# Placeholders in the plain part for an array, and for a NaN or infinity.
ARRAY_KEY = "@array"
FLOAT_KEY = "@float"
_PLAIN = (int, bool, str, type(None))
_RESERVED = ({ARRAY_KEY}, {FLOAT_KEY})


def split_tree(tree: Tree) -> tuple[Any, dict[str, NDArray[Any]]]:
    """The plain part, and the arrays by their path in the tree (`optimizers/policy/state/0/exp_avg`)."""
    arrays: dict[str, NDArray[Any]] = {}
    return _split(tree, "", arrays), arrays


def _split(node: Tree, path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    if type(node) in _PLAIN:  # most are, and the checks below take long
        return node
    if hasattr(node, "detach"):  # a tensor; torch is not imported here, since it takes seconds
        node = node.detach().cpu().numpy()
    if isinstance(node, np.ndarray):
        # A key may contain a slash, so two paths may read the same.
        while path in arrays:
            path += "'"
        # A copy: a captured state must not change while training continues.
        arrays[path] = node.copy()
        return {ARRAY_KEY: path}
    if isinstance(node, np.generic):
        node = node.item()
    if isinstance(node, float) and not math.isfinite(node):
        return {FLOAT_KEY: str(node)}
    if isinstance(node, Mapping):
        if set(node) in _RESERVED:
            raise StateError(f"state: {path} has the only key {next(iter(node))!r}, which is reserved. Rename it.")
        return {str(key): _split(value, f"{path}/{key}" if path else str(key), arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [_split(value, f"{path}/{index}" if path else str(index), arrays) for index, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise StateError(f"state: {path} is of type {type(node).__name__}; a checkpoint cannot hold that.")


def join_tree(plain: Any, arrays: Mapping[str, NDArray[Any]]) -> Tree:
    """The tree that `split_tree` took apart; tensors come back as arrays."""
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
