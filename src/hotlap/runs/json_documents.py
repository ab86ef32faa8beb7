"""The JSON documents of a run: written whole or not at all, and read back with every key and type checked."""

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.errors import InputFileError, ModelError

T = TypeVar("T")
D = TypeVar("D", bound="Document")

MAX_DOCUMENT_BYTES = 1 << 30
# ISO 8601 in UTC: 2026-01-02T03:04:05.678Z.
UtcTime = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")]


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a document; types and keys are checked when it is read, not when it is constructed."""


class Document(Record, frozen=True):
    """A record with a file of its own: a JSON object whose only key is the document's title."""

    title: ClassVar[str]
    indent: ClassVar[int | None] = None  # spaces; None: everything on one line

    def to_dict(self) -> dict[str, Any]:
        """Plain data as the JSON file holds it."""
        return dict(to_plain({self.title: self}))

    @classmethod
    def from_dict(cls: type[D], data: Mapping[str, Any], where: str = "document") -> D:
        """The document in `to_dict`'s plain data."""
        if set(data) != {cls.title}:
            raise ModelError(
                f"{where}: must be an object with the one key {cls.title!r}, got {', '.join(map(str, data))!r:.80}. "
                "Is it another document?"
            )
        return build_record(cls, data[cls.title], where)

    def save(self, path: Path | str) -> None:
        """Write the document, whole or not at all."""
        content = encode({self.title: self})
        if self.indent is not None:
            content = msgspec.json.format(content, indent=self.indent)
        write_atomically(Path(path), content + b"\n")

    @classmethod
    def load(cls: type[D], path: Path | str) -> D:
        """Read the document from its file."""
        return cls.from_dict(read_json(Path(path)), str(path))


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise ModelError(f"{path}: larger than {MAX_DOCUMENT_BYTES} bytes; that is not a document of a run.")
        data = msgspec.json.decode(path.read_bytes())
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}). Check the path and its permissions.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"{path}: not valid JSON ({error}). Is it damaged?") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path}: the top level must be an object, got {type(data).__name__}.")
    return data


def build_record(kind: type[T], data: Any, where: str) -> T:
    """A record from plain data, with a ModelError that names the key where it does not fit."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise ModelError(f"{where}: {error}. Is it damaged, or of another version?") from None


def to_plain(value: Any) -> Any:
    """Records, mappings and sequences as JSON holds them: lists for tuples, None for NaN and infinity."""
    return msgspec.json.decode(encode(value))


def utc_text(unix_s: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the millisecond: 2026-01-02T03:04:05.678Z."""
    return datetime.fromtimestamp(unix_s, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain_number(value: Any) -> Any:
    """What msgspec cannot encode by itself: numpy's scalars."""
    if isinstance(value, np.generic):
        return value.item()
    raise ModelError(f"document: {value!r:.40} is of type {type(value).__name__}, which JSON cannot hold.")


# JSON as bytes; NaN and infinity become null. One encoder for all: making one costs more than encoding a record.
encode = msgspec.json.Encoder(enc_hook=_plain_number).encode
