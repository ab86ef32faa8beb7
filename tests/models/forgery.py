"""Model files made without the code under test, so that each has the one flaw a test wants and no other.

They come from Python's own zipfile, its fields set as ours.
"""

import contextlib
import hashlib
import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hotlap.errors import ArchiveError
from hotlap.models.archive import Archive, read_archive

NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)
DOCUMENT = b'{"lr":0.0003,"name":"caf\\u00e9"}'
# Two tensors laid out by hand: the wider first, whatever the names; the header padded to a multiple of eight.
HEADER = b'{"a":{"data_offsets":[8,12],"dtype":"F32","shape":[1]},"b":{"data_offsets":[0,8],"dtype":"I64","shape":[]}}'
TENSORS = struct.pack("<Q", 112) + HEADER.ljust(112) + struct.pack("<qf", -2, 1.5)
SMALL = Archive(
    {"step": 7},
    {"config": {"name": "café", "lr": 0.0003}},
    {"policy": {"b": np.array(-2), "a": np.array([1.5], np.float32)}},
)
PAYLOADS = {"config.json": DOCUMENT, "policy.safetensors": TENSORS}


def canonical(data) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def manifest(payloads: dict[str, bytes], about=None, **changes) -> bytes:
    members = {name: hashlib.sha256(payload).hexdigest() for name, payload in payloads.items()}
    about = {"step": 7} if about is None else about
    whole = {"format": "hotlap-archive", "format_version": 1, "about": about, "members": members}
    return canonical({**whole, **changes})


def forge_zip(members: list[tuple[str, bytes]], comment=b"", **changes) -> bytes:
    """A zip as ours by Python's zipfile; `changes` are fields of its last member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        file.comment = comment
        for index, (name, payload) in enumerate(members):
            info = zipfile.ZipInfo(name)
            info.create_system, info.create_version, info.extract_version = 0, 10, 10
            wanted = changes if index == len(members) - 1 else {}
            for key, value in wanted.items():
                setattr(info, key, value)
            file.writestr(info, payload)
            info.external_attr = wanted.get("external_attr", 0)
    return buffer.getvalue()


def forge(payloads: dict[str, bytes] | None = None, about=None, **changes) -> bytes:
    """A whole archive with true digests; `changes` are fields of the manifest."""
    payloads = PAYLOADS if payloads is None else payloads
    return forge_zip([("manifest.json", manifest(payloads, about, **changes)), *payloads.items()])


def safetensors(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else canonical(header)
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4)) -> dict:
    return {"data_offsets": list(offsets), "dtype": dtype, "shape": list(shape)}


@contextlib.contextmanager
def frugal() -> Iterator[None]:
    """Fails when what is done inside takes a megabyte of memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def patched(data: bytes, position: int, value: bytes) -> bytes:
    return data[:position] + value + data[position + len(value) :]


def refusal(path: Path, data: bytes | None = None, read=read_archive) -> str:
    """What is said about the file; checked to be one line that names it, and to leave the folder alone."""
    if data is not None:
        path.write_bytes(data)
    before = list(path.parent.iterdir())
    with pytest.raises(ArchiveError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert text.endswith(".")
    assert list(path.parent.iterdir()) == before
    return text
