"""Nested state split into plain data and arrays, and joined again."""

import json

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hotlap.errors import StateError
from hotlap.runs.state_tree import join_tree, split_tree

DTYPES = [np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64]
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_side=3)))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | ARRAYS
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/'", max_size=3), inner, max_size=4),
    max_leaves=15,
)


def same(left, right) -> bool:
    """Equal in value and type, bit-identical in arrays; NaN equals NaN."""
    if isinstance(left, np.ndarray):
        is_array = isinstance(right, np.ndarray) and left.dtype == right.dtype and left.shape == right.shape
        return is_array and left.tobytes() == right.tobytes()
    if isinstance(left, dict):
        return isinstance(right, dict) and set(left) == set(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))


@given(TREES)
@example({"a/b": np.array(1), "a": {"b": np.array(2)}})
def test_a_split_tree_joins_to_the_same_tree(tree):
    plain, arrays = split_tree(tree)
    # The plain part is standard JSON.
    assert same(join_tree(json.loads(json.dumps(plain, allow_nan=False)), arrays), tree)


def test_arrays_are_named_by_their_path():
    plain, arrays = split_tree({"optimizer": {"state": {0: {"step": torch.tensor(3.0)}}}, "rows": [np.zeros(2)]})
    assert set(arrays) == {"optimizer/state/0/step", "rows/0"}
    assert plain["rows"] == [{"@array": "rows/0"}]
    assert set(plain["optimizer"]["state"]) == {"0"}


def test_arrays_are_copies():
    array, tensor = np.zeros(2), torch.zeros(2, requires_grad=True)
    _, arrays = split_tree({"array": array, "tensor": tensor})
    array += 1.0
    tensor.data.add_(1.0)
    assert not arrays["array"].any()
    assert not arrays["tensor"].any()


def test_numpys_scalars_become_plain_numbers_and_tuples_lists():
    plain, arrays = split_tree([np.float32(0.1), np.int64(3), np.bool_(True), np.float64("nan"), (1, 2)])
    assert plain == [0.10000000149011612, 3, True, {"@float": "nan"}, [1, 2]]
    assert [type(value) for value in plain[:3]] == [float, int, bool]
    assert not arrays


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", 1j])
def test_a_type_that_a_file_cannot_hold_is_refused_with_its_path(value):
    with pytest.raises(StateError, match=r"state: a/1 is of type \w+; a checkpoint cannot hold that"):
        split_tree({"a": [0, value]})


def test_reserved_keys_and_missing_arrays_are_refused():
    for key in ("@array", "@float"):
        with pytest.raises(StateError, match=f"state: a has the only key '{key}'"):
            split_tree({"a": {key: "x"}})
    plain, _ = split_tree({"a": np.zeros(1)})
    with pytest.raises(StateError, match="the array 'a' is missing"):
        join_tree(plain, {})
