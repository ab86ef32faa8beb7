"""Data files of a static page packed without loss: the bytes of numbers sorted by their place, then deflated."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from hotlap.sim.ribbon import NODE_DTYPE

MAGIC = b"HLZ1"
_HEAD = struct.Struct("<4sBBHI")  # magic, bytes in a row, how often differences are taken, 0, length
_WORD = np.dtype("<u4")
_TEXT, _NUMBERS, _NODES = (1, 0), (_WORD.itemsize, 0), (NODE_DTYPE.itemsize, 2)
_WAYS = {".policy": _NUMBERS, ".track": _NODES, ".road": _TEXT}

Words = NDArray[np.uint32]


def pack_file(name: str, content: bytes) -> bytes:
    """A data file as `docs/web-api.md` describes it; one of another kind as it is."""
    way = next((way for suffix, way in _WAYS.items() if name.endswith(suffix)), None)
    if way is None:
        return content
    row_bytes, num_differences = way
    whole = len(content) // _WORD.itemsize * _WORD.itemsize if row_bytes > 1 else 0
    words = np.frombuffer(content, _WORD, whole // _WORD.itemsize)
    mixed = _mix(words, row_bytes // _WORD.itemsize, num_differences).tobytes() + content[whole:]
    return _HEAD.pack(MAGIC, row_bytes, num_differences, 0, len(content)) + _deflate(_turn(mixed, row_bytes))


def _mix(words: Words, row: int, num_differences: int) -> Words:
    """Differences to the row before, small ones with small bytes; or the numbers themselves with the sign last."""
    for _ in range(num_differences):
        words = np.concatenate([words[:row], words[row:] - words[:-row]])
    sign = words >> np.uint32(31)
    # Of a negative difference all other bits are turned over: -1 becomes 1, 1 becomes 2.
    return (words << np.uint32(1)) ^ (np.negative(sign) if num_differences else sign)


def _turn(content: bytes, row_bytes: int) -> bytes:
    """Rows become columns; what is left of a last row stays at the end."""
    whole = len(content) // row_bytes * row_bytes
    rows = np.frombuffer(content, np.uint8, whole).reshape(-1, row_bytes)
    return rows.T.tobytes() + content[whole:]


def _deflate(content: bytes) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflater.compress(content) + deflater.flush()
