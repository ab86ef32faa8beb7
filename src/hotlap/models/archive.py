"""Model and checkpoint files: a zip of JSON and safetensors members, with a manifest of their SHA-256 digests.

The digests detect damage; they are not a signature. Nothing in a file is executed, and no size that a file claims is
trusted: memory is allocated only after the claim has been checked against the real size.
"""

import hashlib
import io
import re
import stat
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hotlap.atomic_files import atomic_write
from hotlap.errors import ArchiveError, InputFileError, one_line
from hotlap.models.strict_json import from_json, to_json
from hotlap.models.tensor_shards import Tensors, add_shard, check_header, cut_into_shards, encode_shard, shard_names

MAX_MEMBERS = 1024  # with the shards of a large replay buffer
MAX_MANIFEST_BYTES = 1 << 20
MAX_DOCUMENTS_BYTES = 32 << 20  # all documents together: parsed JSON takes about twenty times its size in memory
MAX_INFLATED_BYTES = 1 << 30  # all compressed members together; Hotlap itself writes none
MAX_INFLATION = 1032  # the highest ratio that deflate can reach
# Weights hardly compress, but a small file of zeros would take gigabytes of memory and seconds to read.
MAX_WEIGHTS_INFLATED_BYTES = 32 << 20
MAX_WEIGHTS_INFLATION = 8  # beyond that size

_FORMAT = "hotlap-archive"
_FORMAT_VERSION = 2
_MANIFEST = "manifest.json"
_STEM = re.compile(r"[a-z0-9_]{1,64}")  # of a document's or a group's members
_NAME = re.compile(rf"{_STEM.pattern}(?:\.json|(?:-[0-9]{{5}}-of-[0-9]{{5}})?\.safetensors)")
_CHUNK_BYTES = 1 << 20
_REMEDY = "Use another checkpoint or model, or save it again."
# What zipfile raises for a damaged or hostile file.
_ZIP_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError)


@dataclass(frozen=True)
class Archive:
    """The content of a file: `about` and `documents` are plain JSON data, `tensors` are groups of arrays.

    Plain JSON data means dict, list, str, int, finite float, bool and None; a tuple comes back as a list. Names of
    documents and groups consist of a-z, 0-9 and _. Names come back sorted, arrays in C order and writable.
    """

    about: dict[str, Any]
    documents: dict[str, Any]
    tensors: dict[str, dict[str, NDArray[Any]]]


def write_archive(path: Path, archive: Archive) -> None:
    """Write the file atomically: an error leaves the previous file, if any, unchanged.

    Equal archives give equal bytes. One shard of arrays at a time is encoded in memory.
    """
    try:
        members = dict(sorted(_plan_members(archive).items()))
        # Written last, with the digests; encoded here already, so that a flaw is found before anything is written.
        _encode_manifest(archive.about, dict.fromkeys(members, "0" * 64))
        with atomic_write(path) as file, zipfile.ZipFile(file, "w") as zipped:
            digests = {name: _write_member(zipped, name, member) for name, member in members.items()}
            _write_member(zipped, _MANIFEST, _encode_manifest(archive.about, digests))
    except ArchiveError as error:
        raise ArchiveError(f"{path}: not written: {error}") from None


def archive_size(archive: Archive) -> int:
    """The bytes of JSON and arrays in its file; ArchiveError where the file cannot be written."""
    members = _plan_members(archive)
    size = len(_encode_manifest(archive.about, dict.fromkeys(members, "0" * 64)))
    for member in members.values():
        size += len(member) if isinstance(member, bytes) else sum(array.nbytes for array in member.values())
    return size


def read_archive(path: Path, *, only: Collection[str] | None = None) -> Archive:
    """The file's content, every byte of it verified.

    With `only`, just these documents and groups of tensors are returned; a name that the file lacks is ignored. Members
    may then inflate to little more than the weights of a network do.
    """
    documents: dict[str, Any] = {}
    tensors: dict[str, dict[str, NDArray[Any]]] = {}
    with _opened(path) as zipped:
        about, digests = _read_manifest(zipped)
        if only is not None:
            _check_inflation(zipped.infolist())
        for name, digest in sorted(digests.items()):
            stem = _stem(name)
            if only is not None and stem not in only:
                _read_member(zipped, name, digest, is_kept=False)
            elif name.endswith(".json"):
                documents[stem] = from_json(_read_member(zipped, name, digest), name)
            else:
                with zipped.open(name) as file:
                    check_header(file.read(8), zipped.getinfo(name).file_size, name)
                add_shard(tensors.setdefault(stem, {}), _read_member(zipped, name, digest), name)
    return Archive(about, documents, {stem: dict(sorted(group.items())) for stem, group in tensors.items()})


def read_about(path: Path) -> dict[str, Any]:
    """The manifest's `about`; the list of members is checked, their content is not read."""
    with _opened(path) as zipped:
        return _read_manifest(zipped)[0]


def tensors_digest(tensors: Tensors) -> str:
    """SHA-256 over names, dtypes, shapes and values; independent of order, memory layout and machine.

    It equals the digest that a file's manifest holds for this group of tensors, where that is one shard.
    """
    sha = hashlib.sha256()
    for shard in cut_into_shards(tensors, "tensors"):
        sha.update(encode_shard(shard, "tensors"))
    return sha.hexdigest()


def _stem(name: str) -> str:
    """The name of a member's document or group."""
    return re.split("[-.]", name)[0]


# --- writing ---


def _plan_members(archive: Archive) -> dict[str, bytes | Tensors]:
    """Every member but the manifest: the text of a document, or the arrays of a shard."""
    texts = {f"{stem}.json": to_json(data, f"{stem}.json") for stem, data in archive.documents.items()}
    members: dict[str, bytes | Tensors] = {**texts}
    for stem, tensors in archive.tensors.items():
        shards = cut_into_shards(tensors, f"{stem}.safetensors")
        members |= zip(shard_names(stem, len(shards)), shards, strict=True)
    for stem in [*archive.documents, *archive.tensors]:
        if not _STEM.fullmatch(stem) or stem == _stem(_MANIFEST):
            raise ArchiveError(f"a member cannot be called {stem!a:.80}. Use a-z, 0-9 and _, not 'manifest'.")
    _check_limit("members", 1 + len(members), MAX_MEMBERS, "Store fewer.")
    _check_limit("bytes of documents", sum(map(len, texts.values())), MAX_DOCUMENTS_BYTES, "Use tensors.")
    return members


def _encode_manifest(about: dict[str, Any], digests: Mapping[str, str]) -> bytes:
    if not isinstance(about, dict):
        raise ArchiveError(f"about must be a dict, got {type(about).__name__}.")
    manifest = {"format": _FORMAT, "format_version": _FORMAT_VERSION, "about": about, "members": dict(digests)}
    text = to_json(manifest, _MANIFEST)
    _check_limit("bytes of manifest", len(text), MAX_MANIFEST_BYTES, "Use documents.")
    return text


def _check_limit(what: str, got: int, limit: int, remedy: str) -> None:
    if got > limit:
        raise ArchiveError(f"{what}: {got}, more than the limit of {limit}. {remedy}")


def _write_member(zipped: zipfile.ZipFile, name: str, member: bytes | Tensors) -> str:
    """Write one member without compression and return its SHA-256."""
    content = member if isinstance(member, bytes) else encode_shard(member, name)
    info = zipfile.ZipInfo(name)  # dated 1980-01-01
    info.create_system = 3  # the same on every system
    zipped.writestr(info, content)
    return hashlib.sha256(content).hexdigest()


# --- reading ---


class BoundedFile(io.BufferedReader):
    """A file read in small pieces only: zipfile would read a directory of gigabytes at once if the zip claims one."""

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes; without a size, as zipfile reads the last few kilobytes, up to the limit."""
        limit = 2 * _CHUNK_BYTES
        if size is not None and size > limit:
            raise ArchiveError("its zip directory is larger than that of a model or checkpoint.")
        return super().read(limit if size is None or size < 0 else size)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip, its list of members checked; whatever is refused inside the block becomes one line about this file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would block
            raise ArchiveError("is a folder or a device, not a file.")
        with BoundedFile(path.open("rb", buffering=0)) as file, zipfile.ZipFile(file) as zipped:
            _check_members(zipped.infolist(), path.stat().st_size)
            yield zipped
    except ArchiveError as error:
        raise ArchiveError(f"{path}: {error} {_REMEDY}") from None
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except _ZIP_ERRORS as error:
        raise ArchiveError(f"{path}: is damaged or not a zip ({one_line(error)}). {_REMEDY}") from None
    except OSError as error:
        raise ArchiveError(
            f"{path}: cannot be read ({error.strerror or error}). Check its permissions and the disk."
        ) from None


def _check_members(infos: list[zipfile.ZipInfo], file_size: int) -> None:
    """Refuse members that Hotlap would not write; order, dates and compression may be another program's."""
    for info in infos:
        if not _NAME.fullmatch(info.orig_filename):
            raise ArchiveError(
                f"holds {info.orig_filename!a:.60}; a model or checkpoint holds only .json and .safetensors."
            )
        if info.flag_bits & 0x1 or stat.S_ISLNK(info.external_attr >> 16):
            raise ArchiveError(f"{info.filename} is encrypted or a link; a model or checkpoint holds neither.")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{info.filename} uses compression {info.compress_type}; use stored or deflated.")
    sizes = {info.filename: info.file_size for info in infos}
    if _MANIFEST not in sizes or len(sizes) != len(infos) or len(sizes) > MAX_MEMBERS:
        raise ArchiveError(f"must hold {_MANIFEST} and up to {MAX_MEMBERS} members, each once; got {[*sizes]!a:.80}.")
    for stem, group in groupby(sorted(name for name in sizes if name.endswith(".safetensors")), _stem):
        if (names := list(group)) != shard_names(stem, len(names)):
            raise ArchiveError(f"lacks a shard of {stem}, or holds one too many: got {names!a:.80}.")
    documents_size = sum(size for name, size in sizes.items() if name.endswith(".json") and name != _MANIFEST)
    if sizes[_MANIFEST] > MAX_MANIFEST_BYTES or documents_size > MAX_DOCUMENTS_BYTES:
        raise ArchiveError("holds more JSON than a model or checkpoint does.")
    deflated = [info for info in infos if info.compress_type == zipfile.ZIP_DEFLATED]
    if (
        sum(info.compress_size for info in infos) > file_size
        or any(info.file_size != info.compress_size for info in infos if info not in deflated)
        or any(info.file_size > MAX_INFLATION * info.compress_size for info in deflated)
        or sum(info.file_size for info in deflated) > MAX_INFLATED_BYTES
    ):
        raise ArchiveError("claims members larger than it can hold: damaged or forged.")


def _check_inflation(infos: list[zipfile.ZipInfo]) -> None:
    deflated = [info for info in infos if info.compress_type == zipfile.ZIP_DEFLATED]
    packed, inflated = sum(info.compress_size for info in deflated), sum(info.file_size for info in deflated)
    if inflated > MAX_WEIGHTS_INFLATED_BYTES + MAX_WEIGHTS_INFLATION * packed:
        raise ArchiveError(
            f"its compressed members are {inflated} bytes in {packed}, more than weights compress. If it is a "
            "checkpoint, zip it without compression."
        )


def _read_manifest(zipped: zipfile.ZipFile) -> tuple[dict[str, Any], dict[str, str]]:
    """The file's `about`, and the digest of every other member."""
    manifest = from_json(_read_member(zipped, _MANIFEST, None), _MANIFEST)
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise ArchiveError(f"its {_MANIFEST} is not that of a model or checkpoint.")
    version = manifest.get("format_version")
    if type(version) is not int or version != _FORMAT_VERSION:
        raise ArchiveError(f"has format version {version!a:.20}; this Hotlap reads version {_FORMAT_VERSION}.")
    about, digests = manifest.get("about"), manifest.get("members")
    if set(manifest) != {"format", "format_version", "about", "members"} or not isinstance(about, dict):
        raise ArchiveError(f"its {_MANIFEST} has other fields than it should.")
    if not isinstance(digests, dict) or set(digests) != set(zipped.namelist()) - {_MANIFEST}:
        raise ArchiveError(f"its {_MANIFEST} lists other members than the file holds.")
    return about, digests


def _read_member(zipped: zipfile.ZipFile, name: str, digest: object, *, is_kept: bool = True) -> bytes:
    """The member, or nothing unless `is_kept`; its digest is compared unless it is the manifest, which has none.

    Read in chunks, so that memory is taken for real bytes only. zipfile stops at the size that the member claims, and
    compares its own checksum.
    """
    chunks, sha = [], hashlib.sha256()
    with zipped.open(name) as file:
        while chunk := file.read(_CHUNK_BYTES):
            sha.update(chunk)
            if is_kept:
                chunks.append(chunk)
    if name != _MANIFEST and sha.hexdigest() != digest:
        raise ArchiveError(f"{name} does not match its digest: it is damaged.")
    return b"".join(chunks)
