"""Model files made without the code under test, so that each has exactly the flaw that a test wants."""

import contextlib
import hashlib
import io
import json
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from hotlap.errors import ArchiveError
from hotlap.models.archive import Archive, read_archive

NUMBERS = np.arange(24, dtype=np.float32).reshape(4, 6)
SMALL = Archive(
    {"step": 7},
    {"config": {"name": "café", "lr": 0.0003}},
    {"policy": {"b": np.array(-2), "a": np.array([1.5], np.float32)}},
)
DOCUMENT = b'{"lr":0.0003,"name":"caf\\u00e9"}'
TENSORS = save(SMALL.tensors["policy"])
PAYLOADS = {"config.json": DOCUMENT, "policy.safetensors": TENSORS}


def manifest(payloads: dict[str, bytes], **changes) -> bytes:
    members = {name: hashlib.sha256(payload).hexdigest() for name, payload in payloads.items()}
    whole = {"format": "hotlap-archive", "format_version": 2, "about": {"step": 7}, "members": members}
    return json.dumps({**whole, **changes}).encode()


def forge_zip(members: list[tuple[str, bytes]], **changes) -> bytes:
    """A zip of these members; `changes` are zip fields of the last."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Duplicate name")
        for index, (name, payload) in enumerate(members):
            info = zipfile.ZipInfo(name, (2026, 1, 2, 3, 4, 6))
            for key, value in changes.items() if index == len(members) - 1 else ():
                setattr(info, key, value)
            file.writestr(info, payload)
    return buffer.getvalue()


def forge(payloads: dict[str, bytes] | None = None, **changes) -> bytes:
    """A whole archive with correct digests; `changes` are fields of the manifest."""
    payloads = PAYLOADS if payloads is None else payloads
    return forge_zip([("manifest.json", manifest(payloads, **changes)), *payloads.items()])


@contextlib.contextmanager
def memory_limit(num_bytes: int = 4 << 20) -> Iterator[None]:
    """Fail if the block allocates more than this."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < num_bytes
    finally:
        tracemalloc.stop()


def patched(data: bytes, position: int, value: bytes) -> bytes:
    return data[:position] + value + data[position + len(value) :]


def refusal(path: Path, data: bytes | None = None, read=read_archive) -> str:
    """The error about the file, checked to be one line that names it, with nothing written."""
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
