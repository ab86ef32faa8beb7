"""Groups of arrays as safetensors: round trips, shards of large groups, and content that is refused."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load

from hotlap.errors import ArchiveError
from hotlap.models import tensor_shards as subject
from hotlap.models.archive import tensors_digest
from hotlap.models.tensor_shards import add_shard, check_header, cut_into_shards, encode_shard
from models.forgery import NUMBERS, memory_limit

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
any_array = st.sampled_from([order + code for code in DTYPES if code != "bool" for order in "<>"] + ["bool"]).flatmap(
    lambda code: hnp.arrays(code, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)


def assert_same_arrays(got, wanted) -> None:
    assert list(got) == sorted(wanted)
    for name, array in wanted.items():
        assert got[name].dtype == array.dtype.newbyteorder("=")
        assert got[name].shape == array.shape
        assert got[name].tobytes() == array.astype(array.dtype.newbyteorder("=")).tobytes()
        assert got[name].flags.writeable
        assert got[name].flags.aligned
        assert got[name].flags.c_contiguous


def encode(tensors) -> bytes:
    [shard] = cut_into_shards(tensors, "policy.safetensors")
    return encode_shard(shard, "policy.safetensors")


def decode(*contents: bytes):
    group = {}
    for content in contents:
        check_header(content[:8], len(content), "policy.safetensors")
        add_shard(group, content, "policy.safetensors")
    return dict(sorted(group.items()))


@given(st.dictionaries(st.text(max_size=6), any_array, max_size=4))
def test_arrays_come_back_unchanged(tensors):
    assert_same_arrays(decode(encode(tensors)), tensors)
    theirs = load(encode(tensors))
    assert_same_arrays({name: theirs[name] for name in sorted(theirs)}, tensors)


@given(
    tensors=st.dictionaries(st.text(max_size=3), any_array, max_size=4),
    shard_bytes=st.integers(8, 400),
)
def test_shards_come_back_as_the_arrays_they_were_cut_from(tensors, shard_bytes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "SHARD_BYTES", shard_bytes)
        shards = cut_into_shards(tensors, "replay.safetensors")
    assert_same_arrays(decode(*(encode_shard(shard, "replay") for shard in shards)), tensors)


def test_a_group_is_cut_where_a_shard_is_full_and_an_array_between_rows(monkeypatch):
    monkeypatch.setattr(subject, "SHARD_BYTES", 64)
    arrays = {"b": np.zeros((5, 4), np.float32), "a": np.zeros(40, np.uint8), "c": np.zeros(24, np.uint8)}
    shapes = [{name: array.shape for name, array in shard.items()} for shard in cut_into_shards(arrays, "group")]
    assert shapes == [{"a": (40,)}, {"b": (3, 4)}, {"b": (2, 4), "c": (24,)}]


def test_a_row_larger_than_a_shard_is_a_shard(monkeypatch):
    monkeypatch.setattr(subject, "SHARD_BYTES", 10)
    shards = cut_into_shards({"w": np.zeros((2, 30), np.uint8)}, "group")
    assert [shard["w"].shape for shard in shards] == [(1, 30), (1, 30)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.zeros((1, 2)), np.zeros((1, 3))),
        (np.zeros((1, 2)), np.zeros((1, 2), np.float32)),
        (np.zeros((1, 2)), np.zeros(2)),
        (np.zeros(2), np.array(1.0)),
        (np.array(1.0), np.array(1.0)),
    ],
    ids=["another row", "another dtype", "fewer dimensions", "a number", "two numbers"],
)
def test_rows_that_do_not_fit_those_before_are_refused(one, other):
    for shards in ((one, other), (other, one)):
        with pytest.raises(ArchiveError, match="another dtype or shape than its rows in the shards before"):
            decode(*(encode({"w": array}) for array in shards))


def test_empty_rows_beyond_what_an_array_can_count_are_refused():
    empty = packed({"w": entry("U8", (1 << 62, 0), (0, 0))})
    assert decode(empty)["w"].shape == (1 << 62, 0)
    with pytest.raises(ArchiveError, match="another dtype or shape than its rows in the shards before"):
        decode(empty, empty)


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(NUMBERS),
        np.repeat(NUMBERS, 2, axis=1)[:, ::2],
        NUMBERS.astype(">f4"),
        np.frombuffer(b"x" + NUMBERS.tobytes(), np.uint8)[1:].view(np.float32).reshape(4, 6),
    ],
    ids=["fortran order", "strided", "big-endian", "unaligned"],
)
def test_the_memory_layout_does_not_matter(array):
    assert encode({"w": array}) == encode({"w": NUMBERS})


def test_every_bit_of_a_float_is_kept():
    patterns = np.array([0x7FC01234, 0x80000000, 1, 0xFF800000], np.uint32).view(np.float32)
    assert decode(encode({"w": patterns}))["w"].tobytes() == patterns.tobytes()


def test_booleans_are_written_as_0_and_1():
    odd = np.array([0, 2, 255], np.uint8).view(bool)
    assert decode(encode({"flags": odd}))["flags"].view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"v": np.arange(4)},
        {"w": np.arange(4).reshape(2, 2)},
        {"w": np.arange(4).astype(np.uint64)},
        {"w": np.arange(4)[::-1]},
        {"w": np.arange(4), "x": np.zeros(0)},
        {},
    ],
    ids=["name", "shape", "dtype", "values", "one more", "none"],
)
def test_different_tensors_have_different_digests(other):
    assert tensors_digest({"w": np.arange(4)}) != tensors_digest(other)


@pytest.mark.parametrize(
    ("name", "array", "text"),
    [
        ("w", [1.0], "NumPy array with a text name, got list"),
        (3, np.zeros(1), "NumPy array with a text name"),
        ("w", np.array([None]), "dtype object"),
        ("w", np.zeros(1, complex), "dtype complex128"),
        ("w", np.array(["a"]), "dtype <U1"),
        ("w", np.array(["2026-01-01"], "M8[D]"), "dtype datetime64"),
        ("__metadata__", np.zeros(1), "which safetensors reserves"),
        ("\udc00", np.zeros(1), r"cannot be written .*surrogates not allowed"),
        ("x" * (1 << 20), np.zeros(1), "more than the limit of 1048576"),
    ],
)  # fmt: skip
def test_a_tensor_that_cannot_be_stored_is_refused(name, array, text):
    with pytest.raises(ArchiveError, match=text):
        encode({name: array})


# --- hostile headers ---


def packed(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)) -> dict:
    return {"data_offsets": list(offsets), "dtype": dtype, "shape": list(shape)}


F32 = struct.pack("<f", 1.0)
BAD_CONTENT = {
    "empty": b"",
    "shorter than its length": b"\0\0\0",
    "no header": struct.pack("<Q", 0),
    "a header longer than the member": struct.pack("<Q", 1 << 40) + b"{}",
    "a header of 2^64 bytes": struct.pack("<Q", (1 << 64) - 1) + b"{}",
    "a header over the limit": packed(b"{" + b" " * (2 << 20) + b"}"),
    "a list": packed([]),
    "a tensor that is a number": packed({"w": 1}),
    "metadata": packed({"__metadata__": {"a": "b"}}),
    "metadata of three fields": packed({"__metadata__": {"a": "b", "c": "d", "e": "f"}}),
    "metadata as a tensor": packed({"__metadata__": entry()}, F32),
    "a name twice": packed(b'{"w":%b,"w":%b}' % ((json.dumps(entry()).encode(),) * 2), F32),
    "unknown dtype": packed({"w": entry("F8_E5M2", offsets=(0, 1))}, b"\0"),
    "dtype a list": packed({"w": entry(["F32"])}, F32),
    "no dtype": packed({"w": {"data_offsets": [0, 4], "shape": [1]}}, F32),
    "one field more": packed({"w": {**entry(), "more": 1}}, F32),
    "negative side": packed({"w": entry(shape=(-1,))}, F32),
    "two negative sides": packed({"w": entry(shape=(-1, -1))}, F32),
    "side true": packed({"w": entry(shape=(True,))}, F32),
    "side a float": packed({"w": entry(shape=(1.0,))}, F32),
    "shape a number": packed({"w": {**entry(), "shape": 1}}, F32),
    "33 dimensions": packed({"w": entry(shape=(1,) * 33)}, F32),
    "three offsets": packed({"w": entry(offsets=(0, 4, 4))}, F32),
    "offsets too short": packed({"w": entry(offsets=(0, 3))}, F32),
    "offsets reversed": packed({"w": entry(offsets=(4, 0))}, F32),
    "a gap": packed({"w": entry(offsets=(4, 8))}, F32 + F32),
    "overlap": packed({"v": entry(), "w": entry()}, F32),
    "bytes missing": packed({"w": entry()}, F32[:3]),
    "bytes left over": packed({"w": entry()}, F32 + b"\0"),
    "a terabyte": packed({"w": entry("U8", (1 << 40,), (0, 1 << 40))}, F32),
    "more than 2^64 elements": packed({"w": entry("U8", (1 << 62, 1 << 62), (0, 1 << 124))}, F32),
    "empty with a side of 2^63": packed({"w": entry(shape=(0, 1 << 63), offsets=(0, 0))}),
    "empty with huge sides": packed({"w": entry(shape=(0, 1 << 62, 1 << 62), offsets=(0, 0))}),
    "a BOOL of 2": packed({"w": entry("BOOL", offsets=(0, 1))}, b"\2"),
}


@pytest.mark.parametrize("content", BAD_CONTENT.values(), ids=BAD_CONTENT)
def test_a_bad_header_is_refused_without_allocating_what_it_claims(content):
    with memory_limit(), pytest.raises(ArchiveError, match=r"policy\.safetensors"):
        decode(content)


def test_the_valid_content_that_the_bad_ones_differ_from_is_read():
    assert decode(packed({"w": entry()}, F32))["w"].tolist() == [1.0]
    assert decode(packed({"w": entry("BOOL", offsets=(0, 1))}, b"\1"))["w"].tolist() == [True]
    assert decode(packed({})) == {}
