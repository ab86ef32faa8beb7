"""Strict loading of settings: JSON or TOML into frozen dataclasses; what is unknown, mistyped or not finite is refused.

The environment's settings are written in camelCase (`maxSteps`) in files and in snake_case (`max_steps`) in Python; a
run's settings are in snake_case in both.
"""

import dataclasses
import difflib
import importlib
import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hotlap.errors import ConfigError, InputFileError

T = TypeVar("T")
Spelling = Callable[[str], str]

MAX_CONFIG_BYTES = 1 << 20

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def camel_case(name: str) -> str:
    """`max_steps` as files write it: `maxSteps`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake_case(name: str) -> str:
    """`max_steps` as Python writes it."""
    return name


def load_settings(
    kind: type[T],
    source: Mapping[str, Any] | str | PathLike[str] | T | None,
    where: str = "config",
    spelling: Spelling = camel_case,
) -> T:
    """Settings of dataclass `kind` from a mapping, a JSON or TOML file, or nothing (all defaults)."""
    if source is None:
        return kind()
    if isinstance(source, kind):
        return source
    if isinstance(source, Mapping):
        return build(kind, source, where, spelling)
    if isinstance(source, str | PathLike):
        return build(kind, read_mapping(Path(source)), str(source), spelling)
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


def build(kind: type[T], data: Mapping[str, Any], where: str, spelling: Spelling = camel_case) -> T:
    """An instance of dataclass `kind` from plain data, every key known and every value of its type."""
    fields = {spelling(field.name): field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values = {}
    for key, value in data.items():
        if key not in fields:
            raise ConfigError(f"{where}: unknown key {key!r:.80}.{_suggest(str(key), fields)}")
        values[fields[key]] = _convert(hints[fields[key]], value, f"{where}: {key}", spelling)
    try:
        return kind(**values)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _suggest(key: str, known: Mapping[str, str]) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f" Did you mean {close[0]!r}?" if close else f" Known keys: {', '.join(known)}."


def _convert(hint: Any, value: Any, where: str, spelling: Spelling) -> Any:
    """`value` as type `hint`, or a ConfigError that names the place."""
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be an object, got {value!r:.40}.")
        return build(hint, value, where, spelling)  # type: ignore[arg-type]
    if origin in (Union, UnionType):  # `float | None`: files leave a key out rather than say none
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else _convert(inner, value, where, spelling)
    if origin is tuple:  # `tuple[int, ...]`
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} must be a list, got {value!r:.40}.")
        return tuple(_convert(arguments[0], item, f"{where}[{place}]", spelling) for place, item in enumerate(value))
    if origin is not None and set(map(type, arguments)) == {str}:  # Literal["a", "b"]
        if value not in arguments:
            raise ConfigError(f"{where} must be one of {', '.join(map(repr, arguments))}, got {value!r:.40}.")
        return value
    if hint is float:
        return _number(value, where)
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{where} must be a whole number, got {value!r:.40}.")
        return value
    expected = origin or hint  # `Mapping[str, Any]` is checked as a mapping
    if not isinstance(value, expected):
        raise ConfigError(f"{where} must be of type {expected.__name__}, got {value!r:.40}.")
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


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings dataclass as plain data in snake_case: lists for tuples, nothing for None."""
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            plain[field.name] = as_plain(value)
        elif value is not None:
            plain[field.name] = list(value) if isinstance(value, tuple) else value
    return plain


def to_toml(data: Mapping[str, Any]) -> str:
    """Plain data as TOML: a table's own values first, then its tables."""
    return "\n".join(_toml_lines(data, ())).strip("\n") + "\n"


def _toml_lines(data: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    lines = [
        f"{_toml_key(key)} = {_toml_value(value)}" for key, value in data.items() if not isinstance(value, Mapping)
    ]
    if place and (lines or not data):
        lines.insert(0, f"[{'.'.join(map(_toml_key, place))}]")
    for key, value in data.items():
        if isinstance(value, Mapping):
            lines += ["", *_toml_lines(value, (*place, key))]
    return lines


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml_string(key)


def _toml_string(text: str) -> str:
    # A JSON string is a TOML basic string, but for the one control character that JSON lets through.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml_value, value))}]"
    if isinstance(value, Mapping):  # within a list; elsewhere it is a table
        return f"{{{', '.join(f'{_toml_key(key)} = {_toml_value(inner)}' for key, inner in value.items())}}}"
    raise ConfigError(f"a setting of type {type(value).__name__} cannot be written: {value!r:.40}.")
