"""Nested state taken apart for a file and put together again."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from hotlap.errors import StateError
from hotlap.models.archive import Archive, read_archive, write_archive
from hotlap.training.state.state_tree import join_tree, split_tree

DTYPES = [np.bool_, np.uint8, np.int32, np.int64, np.uint64, np.float32, np.float64]
ARRAYS = st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_side=3)))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | ARRAYS
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/'", max_size=3), inner, max_size=4),
    max_leaves=15,
)


def same(left, right) -> bool:
    """Equal in value and kind, to the bit in arrays; numbers that are none are equal to themselves."""
    if isinstance(left, np.ndarray):
        is_array = isinstance(right, np.ndarray) and left.dtype == right.dtype and left.shape == right.shape
        return is_array and left.tobytes() == right.tobytes()
    if isinstance(left, dict):
        return isinstance(right, dict) and set(left) == set(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))


@given(TREES)
def test_a_tree_comes_back_as_it_went(tree):
    plain, arrays = split_tree(tree)
    # The plain part is JSON as the standard has it.
    assert same(join_tree(json.loads(json.dumps(plain, allow_nan=False)), arrays), tree)


def test_a_tree_comes_back_from_a_file(tmp_path):
    tree = {"a": {"b": np.arange(3), "c": [1.5, float("inf"), {"d": torch.ones(2)}]}, "e": None, "f": 2**130}
    plain, arrays = split_tree(tree)
    write_archive(tmp_path / "a.zip", Archive({}, {"state": plain}, {"arrays": arrays}))
    back = read_archive(tmp_path / "a.zip")
    expected = {"a": {"b": np.arange(3), "c": [1.5, float("inf"), {"d": np.ones(2, np.float32)}]}, "e": None}
    assert same(join_tree(back.documents["state"], back.tensors["arrays"]), {**expected, "f": 2**130})


def test_arrays_are_named_by_their_place():
    plain, arrays = split_tree({"optimizer": {"state": {0: {"step": torch.tensor(3.0)}}}, "rows": [np.zeros(2)]})
    assert set(arrays) == {"optimizer/state/0/step", "rows/0"}
    assert plain["rows"] == [{"@array": "rows/0"}]
    assert set(plain["optimizer"]["state"]) == {"0"}


def test_keys_with_slashes_keep_their_arrays_apart():
    tree = {"a/b": np.array(1), "a": {"b": np.array(2)}}
    assert same(join_tree(*split_tree(tree)), tree)


def test_what_was_taken_does_not_change_with_what_it_was_taken_from():
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
def test_what_no_file_can_hold_is_refused_by_its_place(value):
    with pytest.raises(StateError, match=r"state: a/1 is of type \w+, which no checkpoint can hold"):
        split_tree({"a": [0, value]})


@pytest.mark.parametrize("key", ["@array", "@float"])
def test_what_would_read_back_as_something_else_is_refused(key):
    with pytest.raises(StateError, match=f"state: a has the one key '{key}'"):
        split_tree({"a": {key: "x"}})


def test_an_array_that_is_missing_is_named():
    plain, _ = split_tree({"a": np.zeros(1)})
    with pytest.raises(StateError, match="the array 'a' is missing"):
        join_tree(plain, {})
