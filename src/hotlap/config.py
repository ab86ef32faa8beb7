"""Strict loading of settings: JSON or TOML into frozen dataclasses; what is unknown, mistyped or not finite is refused.

Keys are written in camelCase in files (`maxSteps`) and in snake_case in Python (`max_steps`).
"""

import dataclasses
import difflib
import importlib
import json
import math
import sys
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from hotlap.errors import ConfigError, InputFileError

T = TypeVar("T")

MAX_CONFIG_BYTES = 1 << 20


def camel_case(name: str) -> str:
    """`max_steps` as files write it: `maxSteps`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def load_settings(
    kind: type[T], source: Mapping[str, Any] | str | PathLike[str] | T | None, where: str = "config"
) -> T:
    """Settings of dataclass `kind` from a mapping, a JSON or TOML file, or nothing (all defaults)."""
    if source is None:
        return kind()
    if isinstance(source, kind):
        return source
    if isinstance(source, Mapping):
        return build(kind, source, where)
    if isinstance(source, str | PathLike):
        return build(kind, read_mapping(Path(source)), str(source))
    raise ConfigError(f"{where}: must be a mapping or a path to a JSON or TOML file, got {type(source).__name__}.")


def read_mapping(path: Path) -> Mapping[str, Any]:
    """The top-level table of a JSON or TOML file."""
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_CONFIG_BYTES} bytes; that is no settings file.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such settings file. Check the path.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text ({error}).") from None
    try:
        data = _parse_toml(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: the top level must be an object, got {type(data).__name__}.")
    return data


def _parse_toml(text: str) -> dict[str, Any]:
    # Python 3.10 has no tomllib; there the package `tomli` is the same.
    parser = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    return dict(parser.loads(text))


def build(kind: type[T], data: Mapping[str, Any], where: str) -> T:
    """An instance of dataclass `kind` from plain data, every key known and every value of its type."""
    fields = {camel_case(field.name): field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values = {}
    for key, value in data.items():
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {key!r}.{_suggest(str(key), fields)}")
        values[fields[key]] = _convert(hints[fields[key]], value, f"{where}: {key}")
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _suggest(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known keys: {', '.join(known)}."


def _convert(hint: Any, value: Any, where: str) -> Any:
    """`value` as type `hint`, or a ConfigError that names the place."""
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be an object, got {value!r:.40}.")
        return build(hint, value, where)  # type: ignore[arg-type]
    if get_origin(hint) is not None and set(map(type, get_args(hint))) == {str}:  # Literal["a", "b"]
        if value not in get_args(hint):
            raise ConfigError(f"{where} must be one of {', '.join(map(repr, get_args(hint)))}, got {value!r:.40}.")
        return value
    if hint is float:
        return _number(value, where)
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{where} must be a whole number, got {value!r:.40}.")
        return value
    if not isinstance(value, hint):
        raise ConfigError(f"{where} must be of type {hint.__name__}, got {value!r:.40}.")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where} must be a number, got {value!r:.40}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ConfigError(f"{where} must be finite, got {value!r:.40}.")
    return number
