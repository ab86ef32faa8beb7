"""The JSON documents of a run: written whole or not at all, and read back with every key and type checked."""

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.config import build, snake_case
from hotlap.errors import ConfigError, InputFileError, ModelError

T = TypeVar("T")

MAX_DOCUMENT_BYTES = 1 << 30
_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def write_document(path: Path, document: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Write plain data as JSON, whole or not at all."""
    write_atomically(path, (json.dumps(document, allow_nan=False, indent=indent) + "\n").encode())


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file; what is no JSON, says a key twice or holds a number that is none is refused."""
    try:
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise ModelError(f"{path}: larger than {MAX_DOCUMENT_BYTES} bytes; that is no document of a run.")
        data = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such file. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}). Check the path and its permissions.") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{path}: not valid JSON ({error}). Is it damaged?") from None
    if not isinstance(data, dict):
        raise ModelError(f"{path}: the top level must be an object, got {type(data).__name__}.")
    return data


def parse_json(text: bytes) -> Any:
    """JSON as the standard has it, or a ValueError: Python's own parser takes NaN, 1e999 and a key said twice."""
    return json.loads(
        text.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse_constant, parse_float=_finite_float
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a key is there twice among {', '.join(key for key, _ in pairs)!r:.80}")
    return found


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.40} is too large a number")
    return number


def open_section(document: Mapping[str, Any], title: str, where: str) -> Mapping[str, Any]:
    """What stands under `title`, the one key that a document of its kind has."""
    if set(document) != {title} or not isinstance(document[title], Mapping):
        raise ModelError(
            f"{where}: must be an object with the one key {title!r}, got {', '.join(map(str, document))!r:.80}. Is it "
            "another document?"
        )
    content: Mapping[str, Any] = document[title]
    return content


def build_record(kind: type[T], data: Any, where: str) -> T:
    """Dataclass `kind` from plain data: nothing missing, nothing unknown, every value of its type."""
    try:
        if not isinstance(data, Mapping):
            raise ConfigError(f"{where} must be an object, got {data!r:.40}.")
        return build(kind, data, where, snake_case)
    except ConfigError as error:
        raise ModelError(str(error)) from None
    except TypeError as error:  # a key is missing, here or further in; the dataclass says which
        raise ModelError(f"{where}: incomplete ({error}). Is it damaged, or of another version?") from None


def plain(value: Any, where: str = "document") -> Any:
    """Dataclasses, numpy's scalars and tuples as JSON has them; a number that is none is None."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.bool_ | np.integer | np.floating):
        return plain(value.item(), where)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name), where) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item, f"{where}: {key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, where) for item in value]
    raise ModelError(f"{where}: {value!r:.40} is a {type(value).__name__}, which JSON has no word for. Give its name.")


def utc_text(unix_s: float) -> str:
    """Seconds since 1970 as ISO 8601 in UTC, to the millisecond: 2026-01-02T03:04:05.678Z."""
    return datetime.fromtimestamp(unix_s, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def check_utc(name: str, text: str) -> None:
    """Refuse a time that is not ISO 8601 in UTC."""
    if not _UTC.fullmatch(text):
        raise ConfigError(f"{name} must be a time in UTC like 2026-01-02T03:04:05Z, got {text!r:.40}.")
