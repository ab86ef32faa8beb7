"""Model and checkpoint files: a zip of JSON and safetensors with digests, written atomically; anything else is refused.

The zip is written in one way only: members stored, in one order, dated 1980. So the reader demands the bytes it expects
and interprets no others. The digests find damage; they are no signature.
"""

import hashlib
import json
import math
import os
import re
import stat
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from hotlap.atomic_files import atomic_write
from hotlap.errors import ArchiveError, InputFileError

Tensors = Mapping[str, NDArray[Any]]

MAX_FILE_BYTES = (1 << 32) - 1  # beyond that a zip needs other headers
MAX_MEMBERS = 32
MAX_MANIFEST_BYTES = 1 << 20
MAX_DOCUMENTS_BYTES = 32 << 20  # of all documents together: parsed JSON takes some twenty times its size in memory
MAX_HEADER_BYTES = 1 << 20  # of one safetensors member
MAX_DIMENSIONS = 32  # what every NumPy we run on can hold
MAX_DEPTH = 64  # of lists and objects inside one another

_FORMAT = "hotlap-archive"
_FORMAT_VERSION = 1
_MANIFEST = "manifest.json"
_NAME = re.compile(r"[a-z0-9_]{1,64}\.(?:json|safetensors)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES = 1 << 20
_REMEDY = "Take another checkpoint or model, or save it again."

# The zip's records. Version 1.0 on a plain FAT disk: no flags, stored, midnight of 1980-01-01, no attributes.
_LOCAL = struct.Struct("<4s5H3I2H")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_VERSION = 10
_FIRST_DATE = 0x21
_MAX_DIRECTORY_BYTES = MAX_MEMBERS * (_ENTRY.size + 64 + len(".safetensors"))
# What names, headers and manifest may add to the contents, so that the size is known before anything is hashed.
_MAX_CONTENT_BYTES = MAX_FILE_BYTES - MAX_MANIFEST_BYTES - 4 * _MAX_DIRECTORY_BYTES

_DTYPES = {
    "BOOL": np.dtype("bool"),
    **{f"U{bits}": np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"I{bits}": np.dtype(f"<i{bits // 8}") for bits in (8, 16, 32, 64)},
    **{f"F{bits}": np.dtype(f"<f{bits // 8}") for bits in (16, 32, 64)},
}
_CODES = {(dtype.kind, dtype.itemsize): code for code, dtype in _DTYPES.items()}


@dataclass(frozen=True)
class Archive:
    """What a file holds. Plain JSON means dict, list, str, int, finite float, bool and None; a tuple comes back a list.

    Names are made of a-z, 0-9 and _. Keys and names come back sorted, arrays in C order and writable.
    """

    about: dict[str, Any]
    documents: dict[str, Any]
    tensors: dict[str, dict[str, NDArray[Any]]]


def write_archive(path: Path, archive: Archive) -> None:
    """Write the file whole or not at all: until the last moment the old one, if any, stands as it was.

    Equal archives give equal bytes.
    """
    try:
        packed = _pack(archive)
    except ArchiveError as error:
        raise ArchiveError(f"{path}: not written: {error}") from None
    members = _place((content.name, crc, content.size) for content, crc in packed)
    with atomic_write(path) as file:
        for member, (content, _) in zip(members, packed, strict=True):
            file.write(_local_header(member))
            for chunk in content.chunks():
                file.write(chunk)
        file.write(_directory(members))


def read_archive(path: Path, *, only: Collection[str] | None = None) -> Archive:
    """The file's content, every byte of it verified.

    Of the tensors only the groups named in `only` are kept; one that is not in the file is not in the answer either.
    """
    documents, tensors = {}, {}
    with _opened(path) as file:
        members = _read_structure(file)
        about, digests = _read_manifest(file, members)
        for member in members[1:]:
            stem, _, kind = member.name.partition(".")
            reader = _MemberReader(file, member)
            if kind == "json":
                text = reader.take(member.size)
                reader.check(digests[member.name])
                documents[stem] = _from_json(text, member.name)
                continue
            arrays = _read_tensors(reader, keep=only is None or stem in only)
            reader.check(digests[member.name])
            if arrays is not None:
                tensors[stem] = arrays
    return Archive(about, documents, tensors)


def read_about(path: Path) -> dict[str, Any]:
    """What the file says about itself, the zip's structure and the manifest verified, the other members not read."""
    with _opened(path) as file:
        return _read_manifest(file, _read_structure(file))[0]


def tensors_digest(tensors: Tensors) -> str:
    """SHA-256 over names, dtypes, shapes and bytes, whatever the order or memory layout; the same on every machine.

    It is the digest that the manifest of a file gives for these tensors.
    """
    return _pack_tensors("tensors", tensors).sums()[1]


# --- the zip ---


@dataclass(frozen=True)
class _Member:
    """One file in the zip; `offset` is where its local header starts."""

    name: str
    crc: int
    size: int
    offset: int

    @property
    def start(self) -> int:
        """Where the content starts."""
        return self.offset + _LOCAL.size + len(self.name)

    @property
    def end(self) -> int:
        """Where the content ends and the next record starts."""
        return self.start + self.size


def _local_header(member: _Member) -> bytes:
    name = member.name.encode("ascii")
    head = (b"PK\3\4", _VERSION, 0, 0, 0, _FIRST_DATE, member.crc, member.size, member.size, len(name), 0)
    return _LOCAL.pack(*head) + name


def _directory(members: list[_Member]) -> bytes:
    """All that follows the last member."""
    entries = b""
    for member in members:
        name = member.name.encode("ascii")
        head = (b"PK\1\2", _VERSION, _VERSION, 0, 0, 0, _FIRST_DATE, member.crc, member.size, member.size, len(name))
        entries += _ENTRY.pack(*head, 0, 0, 0, 0, 0, member.offset) + name
    return entries + _END.pack(b"PK\5\6", 0, 0, len(members), len(members), len(entries), members[-1].end, 0)


def _read_structure(file: BinaryIO) -> list[_Member]:
    """The members, every header byte verified; reads a few kilobytes whatever the file claims."""
    size = os.fstat(file.fileno()).st_size
    if size > MAX_FILE_BYTES:
        raise ArchiveError(f"is {size} bytes long, which no model or checkpoint is.")
    tail_size = min(size, _MAX_DIRECTORY_BYTES + _END.size)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    if len(tail) < _END.size or not tail.startswith(b"PK\5\6", len(tail) - _END.size):
        raise ArchiveError("does not end as a model or checkpoint does: cut short, added to, or something else.")
    _, _, _, _, count, directory_size, directory_start, _ = _END.unpack(tail[-_END.size :])
    if directory_start + directory_size + _END.size != size or directory_size > _MAX_DIRECTORY_BYTES:
        raise ArchiveError("its zip directory does not lie where it should: cut short, added to, or something else.")
    written = tail[len(tail) - _END.size - directory_size :]
    members = _parse_directory(written, min(count, MAX_MEMBERS))
    # The first of these keeps false sizes out of the records rebuilt by the second.
    if members[-1].end != directory_start or _directory(members) != written:
        raise ArchiveError("its zip directory is not as Hotlap writes it: damaged or made by something else.")
    for member in members:
        file.seek(member.offset)
        if file.read(member.start - member.offset) != _local_header(member):
            raise ArchiveError(f"the zip header of {member.name} is not as Hotlap writes it: damaged or forged.")
    return members


def _parse_directory(written: bytes, count: int) -> list[_Member]:
    """Names, checksums and sizes; whether the other fields are right is for the caller to see."""
    found: list[tuple[str, int, int]] = []
    position = 0
    while len(found) < count and position + _ENTRY.size <= len(written):
        fields = _ENTRY.unpack_from(written, position)
        crc, size, name_length = fields[7], fields[9], fields[10]
        position += _ENTRY.size + name_length
        name = written[position - name_length : position].decode("ascii", "replace")
        if not _NAME.fullmatch(name):
            raise ArchiveError(f"holds {name!a:.60}; a model or checkpoint holds only .json and .safetensors.")
        found.append((name, crc, size))
    names = [name for name, _, _ in found]
    if not names or names != _in_order(names):
        raise ArchiveError(f"must hold {_MANIFEST}, then the others by name, each once; got {names!a:.80}.")
    return _place(found)


def _place(found: Iterable[tuple[str, int, int]]) -> list[_Member]:
    """Members of these names, checksums and sizes, one behind the other."""
    members: list[_Member] = []
    for name, crc, size in found:
        members.append(_Member(name, crc, size, members[-1].end if members else 0))
    return members


def _in_order(names: Iterable[str]) -> list[str]:
    return [_MANIFEST, *sorted(set(names) - {_MANIFEST})]


# --- reading ---


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file; whatever is refused inside the block is told as one line about this file."""
    try:
        # Before opening: opening a pipe would wait for somebody to write into it.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ArchiveError("is a folder or a device, not a file.")
        with path.open("rb") as file:
            yield file
    except ArchiveError as error:
        raise ArchiveError(f"{path}: {error} {_REMEDY}") from None
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise ArchiveError(
            f"{path}: cannot be read ({error.strerror or error}). Check its permissions and the disk."
        ) from None


class _MemberReader:
    """Reads one member from its start to its end, and keeps account of what has passed."""

    def __init__(self, file: BinaryIO, member: _Member) -> None:
        self.member = member
        self.remaining = member.size
        self._file = file
        self._sha = hashlib.sha256()
        self._crc = 0
        file.seek(member.start)

    def take(self, count: int) -> bytes:
        """The next bytes; never more than the member has left."""
        buffer = np.empty(min(count, self.remaining), np.uint8)
        self.fill(buffer)
        return buffer.tobytes()

    def fill(self, buffer: NDArray[np.uint8]) -> None:
        """Read on until the flat buffer is full."""
        for start in range(0, buffer.size, _CHUNK_BYTES):
            chunk = buffer.data[start : start + _CHUNK_BYTES]
            if self._file.readinto(chunk) != len(chunk):  # type: ignore[attr-defined]  # BinaryIO does not name it
                raise ArchiveError(f"{self.member.name} ended while it was read: something else writes this file.")
            self._sha.update(chunk)
            self._crc = zlib.crc32(chunk, self._crc)
        self.remaining -= buffer.size

    def check(self, digest: str | None) -> None:
        """Pass over the rest, then compare with the zip's checksum and the manifest's digest, where there is one."""
        while self.remaining:
            self.take(_CHUNK_BYTES)
        if self._crc != self.member.crc or (digest is not None and self._sha.hexdigest() != digest):
            raise ArchiveError(f"{self.member.name} does not match its checksum: it is damaged.")


def _read_manifest(file: BinaryIO, members: list[_Member]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the file says about itself, and the digest of every other member."""
    reader = _MemberReader(file, members[0])
    documents_size = sum(member.size for member in members[1:] if member.name.endswith(".json"))
    if reader.remaining > MAX_MANIFEST_BYTES or documents_size > MAX_DOCUMENTS_BYTES:
        raise ArchiveError("holds more JSON than a model or checkpoint does.")
    text = reader.take(reader.remaining)
    reader.check(None)
    manifest = _from_json(text, _MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ArchiveError(f"its {_MANIFEST} is not that of a model or checkpoint.")
    version = manifest.get("format_version")
    if type(version) is not int or version != _FORMAT_VERSION:
        raise ArchiveError(f"is of format version {version!a:.20}; this Hotlap reads version {_FORMAT_VERSION}.")
    about, digests = manifest.get("about"), manifest.get("members")
    if set(manifest) != {"format", "format_version", "about", "members"} or not isinstance(about, dict):
        raise ArchiveError(f"its {_MANIFEST} has other fields than it should.")
    if not isinstance(digests, dict) or _in_order(digests) != [member.name for member in members]:
        raise ArchiveError(f"its {_MANIFEST} lists other members than the file holds.")
    if _MANIFEST in digests or not all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in digests.values()):
        raise ArchiveError(f"its {_MANIFEST} lists something that is no SHA-256 digest.")
    return about, digests


def _read_tensors(reader: _MemberReader, keep: bool) -> dict[str, NDArray[Any]] | None:
    """The arrays of a safetensors member; where they are not kept, only its header is read."""
    name = reader.member.name
    prefix = reader.take(8)
    length = int.from_bytes(prefix, "little")
    if length > min(MAX_HEADER_BYTES, reader.remaining):
        raise ArchiveError(f"{name} claims a header of {length} bytes: damaged or forged.")
    header = reader.take(length)
    layout = _lay_out(name, _parse_header(name, header), {})
    # Nothing is allocated before every offset and size is known to be true.
    if layout.head != prefix + header or layout.size != reader.member.size:
        raise ArchiveError(f"the tensors of {name} do not lie as its header says: damaged or forged.")
    if not keep:
        return None
    arrays = {}
    for slot in layout.slots:
        array = np.empty(slot.shape, slot.dtype)
        flat = array.reshape(-1).view(np.uint8)
        reader.fill(flat)
        if slot.code == "BOOL" and flat.max(initial=0) > 1:
            raise ArchiveError(f"tensor {slot.name!a:.60} of {name} holds something that is neither true nor false.")
        arrays[slot.name] = array
    return dict(sorted(arrays.items()))


def _parse_header(name: str, header: bytes) -> Iterator["_Slot"]:
    entries = _from_json(header.rstrip(b" "), f"the header of {name}")
    for key, entry in entries.items() if isinstance(entries, dict) else [("", None)]:
        code = entry.get("dtype") if isinstance(entry, dict) else None
        shape = entry.get("shape") if isinstance(entry, dict) else None
        if not isinstance(code, str) or code not in _DTYPES or not isinstance(shape, list):
            raise ArchiveError(f"tensor {key!a:.60} of {name} has no known dtype or no shape.")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ArchiveError(f"tensor {key!a:.60} of {name} has a shape that is none.")
        yield _Slot(key, code, tuple(shape))


# --- packing ---


@dataclass(frozen=True)
class _Slot:
    """Where a tensor goes: its safetensors dtype code and shape."""

    name: str
    code: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype as stored."""
        return _DTYPES[self.code]

    @property
    def size(self) -> int:
        """Bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class _Content:
    """What a member will hold: JSON, or a safetensors header and the arrays that follow it."""

    name: str
    head: bytes
    slots: tuple[_Slot, ...] = ()
    tensors: Tensors = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.head) + sum(slot.size for slot in self.slots)

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The bytes, array by array, so that there is never a copy of the whole."""
        yield self.head
        for slot in self.slots:
            # Little-endian and in C order; a copy only where the array is not so already.
            flat = np.ascontiguousarray(self.tensors[slot.name], slot.dtype).reshape(-1).view(np.uint8)
            # A view of foreign memory may call any byte true.
            yield (np.minimum(flat, 1) if slot.code == "BOOL" else flat).data

    def sums(self) -> tuple[int, str]:
        """The zip's checksum and the manifest's digest."""
        crc, sha = 0, hashlib.sha256()
        for chunk in self.chunks():
            crc = zlib.crc32(chunk, crc)
            sha.update(chunk)
        return crc, sha.hexdigest()


def _pack(archive: Archive) -> list[tuple[_Content, int]]:
    """The members in the order they are written, the manifest first, each with its checksum."""
    if not isinstance(archive.about, dict):
        raise ArchiveError(f"what is said about the file must be a dict, got {type(archive.about).__name__}.")
    contents = [_Content(f"{stem}.json", _to_json(data, f"{stem}.json")) for stem, data in archive.documents.items()]
    _limit("bytes of documents", sum(content.size for content in contents), MAX_DOCUMENTS_BYTES, "Use tensors.")
    contents += [_pack_tensors(f"{stem}.safetensors", tensors) for stem, tensors in archive.tensors.items()]
    _limit("bytes in all", sum(content.size for content in contents), _MAX_CONTENT_BYTES, "Store less.")
    _limit("members", 1 + len(contents), MAX_MEMBERS, "Store fewer.")
    for content in contents:
        if not _NAME.fullmatch(content.name) or content.name == _MANIFEST:
            raise ArchiveError(f"no member may be called {content.name!a:.80}. Use a-z, 0-9 and _, not 'manifest'.")
    contents.sort(key=lambda content: content.name)
    sums = [content.sums() for content in contents]
    digests = {content.name: digest for content, (_, digest) in zip(contents, sums, strict=True)}
    manifest = {"format": _FORMAT, "format_version": _FORMAT_VERSION, "about": archive.about, "members": digests}
    first = _Content(_MANIFEST, _to_json(manifest, _MANIFEST))
    _limit("bytes of manifest", first.size, MAX_MANIFEST_BYTES, "Use documents.")
    return [(first, first.sums()[0]), *((content, crc) for content, (crc, _) in zip(contents, sums, strict=True))]


def _limit(what: str, got: int, limit: int, remedy: str) -> None:
    if got > limit:
        raise ArchiveError(f"{what}: {got}, more than the limit of {limit}. {remedy}")


def _pack_tensors(name: str, tensors: Tensors) -> _Content:
    slots = []
    for key, array in tensors.items():
        if not isinstance(key, str) or not isinstance(array, np.ndarray):
            raise ArchiveError(
                f"tensor {key!a:.60} of {name} must be a NumPy array by name, got {type(array).__name__}."
            )
        code = _CODES.get((array.dtype.kind, array.dtype.itemsize))
        if code is None:
            raise ArchiveError(f"tensor {key!a:.60} of {name} is of dtype {array.dtype}; use bool, integers or floats.")
        slots.append(_Slot(key, code, array.shape))
    return _lay_out(name, slots, tensors)


def _lay_out(name: str, slots: Iterable[_Slot], tensors: Tensors) -> _Content:
    """The one way such tensors are stored: the widest dtypes first, so that each lies aligned, then by name."""
    ordered = tuple(sorted(slots, key=lambda slot: (-slot.dtype.itemsize, slot.name)))
    entries, start = {}, 0
    for slot in ordered:
        if slot.name == "__metadata__":
            raise ArchiveError(f"no tensor of {name} may be called '__metadata__'; safetensors means something else.")
        # With the zeros left out: NumPy refuses an empty array whose other sides are too long.
        if len(slot.shape) > MAX_DIMENSIONS or math.prod(filter(None, slot.shape)) > MAX_FILE_BYTES:
            raise ArchiveError(f"tensor {slot.name!a:.60} of {name} is too large: {slot.shape!s:.60}.")
        entries[slot.name] = {"dtype": slot.code, "shape": slot.shape, "data_offsets": [start, start + slot.size]}
        start += slot.size
    header = _to_json(entries, f"the header of {name}")
    header += b" " * (-len(header) % 8)
    _limit(f"bytes of the header of {name}", len(header), MAX_HEADER_BYTES, "Use fewer or shorter names.")
    return _Content(name, struct.pack("<Q", len(header)) + header, ordered, tensors)


# --- JSON, written in one way only ---


def _to_json(data: Any, where: str) -> bytes:
    if flaw := _find_flaw(data):
        raise ArchiveError(f"{where}{flaw}")
    try:
        return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    except ValueError as error:  # a whole number of thousands of digits
        raise ArchiveError(f"{where} cannot be written as JSON: {error}.") from None


def _from_json(text: bytes, where: str) -> Any:
    try:
        data = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError):
        raise ArchiveError(f"{where} is not JSON as Hotlap writes it.") from None
    if _to_json(data, where) != text:
        raise ArchiveError(f"{where} is not JSON as Hotlap writes it.")
    return data


def _find_flaw(value: Any, depth: int = 0) -> str:
    """What JSON would drop or change on the way, and where: NaN, keys that are no text, halves of characters."""
    if value is None or isinstance(value, int) or (isinstance(value, str) and _is_text(value)):
        return ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else f" is {value}; JSON holds finite numbers only. Use null (None)."
    if not isinstance(value, dict | list | tuple) or depth == MAX_DEPTH:
        return f" is {value!a:.40} ({type(value).__name__}) at depth {depth}. Use plain JSON data, not nested as deep."
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(value, dict) and not (isinstance(key, str) and _is_text(key)):
            return f" has the key {key!a:.40}. Use text for keys."
        if flaw := _find_flaw(item, depth + 1):
            return f"[{key!a:.40}]{flaw}"
    return ""


def _is_text(value: str) -> bool:
    """Whether every character is whole: half of a surrogate pair is none."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
