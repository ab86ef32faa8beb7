"""Groups of arrays as safetensors content; a large group is cut into shards, so that only one is in memory twice."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hotlap.errors import ArchiveError, one_line
from hotlap.models.strict_json import from_json

Tensors = Mapping[str, NDArray[Any]]

SHARD_BYTES = 256 << 20  # exceeded only by an array's single row
MAX_HEADER_BYTES = 1 << 20  # bounds the number of arrays in a shard too: each takes more than 50 bytes
MAX_DIMENSIONS = 32  # what every supported NumPy can hold
_DTYPES = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))}
_DTYPES |= {"float16", "float32", "float64"}


def shard_names(group: str, count: int) -> list[str]:
    """The file names of a group's shards, in order; a group that fits into one has no number."""
    if count == 1:
        return [f"{group}.safetensors"]
    return [f"{group}-{number:05}-of-{count:05}.safetensors" for number in range(1, count + 1)]


def cut_into_shards(tensors: Tensors, where: str) -> list[dict[str, NDArray[Any]]]:
    """The arrays in shards of about SHARD_BYTES at most, as views; a larger array is cut into blocks of rows."""
    for name, array in tensors.items():
        _check_tensor(name, array, where)
    shards: list[dict[str, NDArray[Any]]] = [{}]
    size = 0
    for name, array in sorted(tensors.items()):
        num_blocks = -(-array.nbytes // SHARD_BYTES)
        for block in [array] if num_blocks < 2 else np.array_split(array, min(num_blocks, len(array))):
            if size and size + block.nbytes > SHARD_BYTES:
                shards.append({})
                size = 0
            shards[-1][name] = block
            size += block.nbytes
    return shards


def _check_tensor(name: object, array: object, where: str) -> None:
    what = f"tensor {name!a:.60} of {where}"
    if not isinstance(name, str) or not isinstance(array, np.ndarray):
        raise ArchiveError(f"{what} must be a NumPy array with a text name, got {type(array).__name__}.")
    _check_type(array, what)
    if name == "__metadata__":
        raise ArchiveError(f"{what} cannot have this name, which safetensors reserves. Rename it.")


def _check_type(array: NDArray[Any], what: str) -> None:
    if array.dtype.name not in _DTYPES or array.ndim > MAX_DIMENSIONS:
        raise ArchiveError(
            f"{what} has dtype {array.dtype} and {array.ndim} dimensions; use bool, integers or floats, and up to "
            f"{MAX_DIMENSIONS} dimensions."
        )


def encode_shard(shard: Tensors, where: str) -> bytes:
    """The content of a safetensors file, the same for equal arrays."""
    # The package reads memory as if every array were in C order.
    arrays = {name: np.asarray(array, array.dtype.newbyteorder("<"), "C") for name, array in shard.items()}
    # A view of foreign memory may hold any byte as True.
    arrays |= {name: np.asarray(array.view(np.uint8) != 0) for name, array in arrays.items() if array.dtype.kind == "b"}
    try:
        content = save(arrays)
    except (SafetensorError, UnicodeError) as error:
        raise ArchiveError(f"{where} cannot be written ({one_line(error)}). Rename its tensors.") from None
    length = int.from_bytes(content[:8], "little")
    if length > MAX_HEADER_BYTES:
        raise ArchiveError(
            f"the header of {where} has {length} bytes, more than the limit of {MAX_HEADER_BYTES}. "
            "Use fewer or shorter names."
        )
    return content


def check_header(start: bytes, size: int, where: str) -> None:
    """Refuse content of `size` bytes whose first eight claim a header longer than the limit or than the content."""
    length = int.from_bytes(start, "little")
    if size < 8 or length > min(MAX_HEADER_BYTES, size - 8):
        raise ArchiveError(f"{where} claims a header of {length} bytes: damaged or forged.")


def add_shard(group: dict[str, NDArray[Any]], content: bytes, where: str) -> None:
    """Decode a shard and add its arrays to the group; rows of an array that is there already are appended to it."""
    header = from_json(content[8 : 8 + int.from_bytes(content[:8], "little")], f"the header of {where}")
    try:
        arrays = load(content)
    except (SafetensorError, KeyError, ValueError) as error:  # KeyError: a dtype that NumPy lacks
        raise ArchiveError(f"{where} is damaged or forged ({one_line(error)!a}).") from None
    if header.keys() != arrays.keys() or any(len(entry) != 3 for entry in header.values()):
        raise ArchiveError(f"the header of {where} holds metadata or further fields, which Hotlap never writes.")
    for name, array in arrays.items():
        what = f"tensor {name!a:.60} of {where}"
        _check_type(array, what)
        if array.dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
            raise ArchiveError(f"{what} holds a BOOL that is neither 0 nor 1.")
        if name not in group:
            group[name] = array
            continue
        whole = group[name]
        is_rows = array.ndim == whole.ndim > 0 and array.size > 0  # empty rows could be more than NumPy can count
        if not is_rows or (whole.dtype, whole.shape[1:]) != (array.dtype, array.shape[1:]):
            raise ArchiveError(f"{what} has another dtype or shape than its rows in the shards before: forged.")
        if not whole.flags.owndata:
            whole = group[name] = whole.copy()
        num_rows = len(whole)
        # In place, since a second copy may not fit into memory.
        whole.resize((num_rows + len(array), *whole.shape[1:]), refcheck=False)
        whole[num_rows:] = array
