"""Groups of arrays in the safetensors format, written and read as a stream.

Made by hand because the safetensors package would need a second copy of a group in memory, and a replay buffer can fill
most of it; the tests check that the package reads what is written here and the other way round.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ArchiveError
from hotlap.models.strict_json import from_json, to_json

Tensors = Mapping[str, NDArray[Any]]

MAX_HEADER_BYTES = 1 << 20
MAX_DIMENSIONS = 32  # what every supported NumPy can hold
MAX_ELEMENTS = 1 << 48  # of an array, with its zero sides left out: NumPy refuses empty arrays of absurd shapes

_DTYPES = {
    "BOOL": np.dtype("bool"),
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
}
_CODES = {(dtype.kind, dtype.itemsize): code for code, dtype in _DTYPES.items()}


def encode_tensors(tensors: Tensors, where: str) -> tuple[int, Iterator[bytes | memoryview]]:
    """The size in bytes and the content of a safetensors file, array by array; the same for equal tensors."""
    for name, array in tensors.items():
        _check_tensor(name, array, where)
    # Widest dtypes first, so that every array is aligned.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    entries, start = {}, 0
    for name, array in ordered:
        code, end = _CODES[array.dtype.kind, array.dtype.itemsize], start + array.nbytes
        entries[name] = {"dtype": code, "shape": array.shape, "data_offsets": [start, end]}
        start = end
    header = to_json(entries, f"the header of {where}")
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER_BYTES:
        raise ArchiveError(
            f"the header of {where} has {len(header)} bytes, more than the limit of {MAX_HEADER_BYTES}. "
            "Use fewer or shorter names."
        )
    prefix = len(header).to_bytes(8, "little") + header
    return len(prefix) + start, _chunks(prefix, [array for _, array in ordered])


def _check_tensor(name: object, array: object, where: str) -> None:
    what = f"tensor {name!a:.60} of {where}"
    if not isinstance(name, str) or not isinstance(array, np.ndarray):
        raise ArchiveError(f"{what} must be a NumPy array with a text name, got {type(array).__name__}.")
    if (array.dtype.kind, array.dtype.itemsize) not in _CODES:
        raise ArchiveError(f"{what} has dtype {array.dtype}; use bool, integers or floats.")
    if name == "__metadata__":
        raise ArchiveError(f"{what} cannot have this name, which safetensors reserves. Rename it.")
    if not _is_shape(array.shape):
        raise ArchiveError(f"{what} is too large: {array.shape!s:.60}.")


def _chunks(prefix: bytes, arrays: list[NDArray[Any]]) -> Iterator[bytes | memoryview]:
    yield prefix
    for array in arrays:
        # Little-endian and in C order; copied only where the array is not so already.
        flat = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).reshape(-1).view(np.uint8)
        # A view of foreign memory may hold any byte as True.
        yield (np.minimum(flat, 1) if array.dtype.kind == "b" else flat).data


def read_tensors(fill: Callable[[memoryview], None], size: int, where: str) -> dict[str, NDArray[Any]]:
    """The arrays of a safetensors file of `size` bytes, sorted by name; `fill` fills a buffer with its next bytes."""
    length = int.from_bytes(_take(fill, min(8, size)), "little")
    if size < 8 or length > min(MAX_HEADER_BYTES, size - 8):
        raise ArchiveError(f"{where} claims a header of {length} bytes: damaged or forged.")
    entries = from_json(_take(fill, length), f"the header of {where}")
    arrays = {}
    for name, dtype, shape in _check_layout(entries, size - 8 - length, where):
        arrays[name] = np.empty(shape, dtype)
        flat = arrays[name].reshape(-1).view(np.uint8)
        fill(flat.data)
        if dtype.kind == "b" and flat.max(initial=0) > 1:
            raise ArchiveError(f"tensor {name!a:.60} of {where} holds a BOOL that is neither 0 nor 1.")
    return dict(sorted(arrays.items()))


def _take(fill: Callable[[memoryview], None], count: int) -> bytes:
    buffer = bytearray(count)
    fill(memoryview(buffer))
    return bytes(buffer)


def _check_layout(entries: Any, size: int, where: str) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """Names, dtypes and shapes in the order of their bytes, which must fill `size` without gap or overlap."""
    found = []
    for name, entry in entries.items() if isinstance(entries, dict) else [("", None)]:
        code, shape, offsets = _fields(entry)
        if name == "__metadata__" or code not in _DTYPES or not _is_shape(shape) or len(offsets) != 2:
            raise ArchiveError(f"tensor {name!a:.60} of {where} has no known dtype, shape or offsets.")
        found.append((offsets, name, _DTYPES[code], tuple(shape)))
    found.sort(key=lambda item: item[0])
    position = 0
    for offsets, _, dtype, sides in found:
        end = position + math.prod(sides) * dtype.itemsize
        if offsets != [position, end]:
            break
        position = end
    else:
        if position == size:
            yield from (item[1:] for item in found)
            return
    raise ArchiveError(f"the tensors of {where} do not fill it as its header says: damaged or forged.")


def _fields(entry: Any) -> tuple[str, list[int], list[int]]:
    """dtype, shape and offsets of a header's entry; empty where they are not of the right type."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return "", [], []
    code, *lists = entry["dtype"], entry["shape"], entry["data_offsets"]
    are_sizes = all(isinstance(sizes, list) and all(type(size) is int for size in sizes) for sizes in lists)
    return (code, *lists) if isinstance(code, str) and are_sizes else ("", [], [])


def _is_shape(shape: tuple[int, ...] | list[int]) -> bool:
    is_counted = len(shape) <= MAX_DIMENSIONS and all(side >= 0 for side in shape)
    return is_counted and math.prod(filter(None, shape)) <= MAX_ELEMENTS
