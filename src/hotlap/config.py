"""Settings: frozen dataclasses with documented ranges, and strict loading of them from JSON and TOML.

Unknown keys, wrong types and numbers that are not finite are errors. The environment's settings are written in
camelCase (`maxSteps`) in files and in snake_case (`max_steps`) in Python; a run's settings are in snake_case in both.
Loading is hand-made for its error messages, which name the key as the file spells it and suggest the one meant.
"""

import dataclasses
import importlib
import json
import math
import stat
import sys
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hotlap.errors import ConfigError, InputFileError, closest, did_you_mean

T = TypeVar("T")
Spelling = Callable[[str], str]

MAX_CONFIG_BYTES = 1 << 20
MAX_CONFIG_DEPTH = 32
MAX_LIST_ITEMS = 10_000  # of a setting

_MAX_DOTS = 100  # in one line of TOML


def camel_case(name: str) -> str:
    """`max_steps` as files write it: `maxSteps`."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def snake_case(name: str) -> str:
    """`max_steps` as Python writes it: unchanged."""
    return name


def load_settings(
    kind: type[T],
    source: Mapping[str, Any] | str | PathLike[str] | T | None,
    where: str = "config",
    spelling: Spelling = camel_case,
) -> T:
    """Settings of dataclass `kind` from a mapping, a JSON or TOML file, or None (all defaults)."""
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
    text = _read_text(path)
    kind = "TOML" if path.suffix == ".toml" else "JSON"
    try:
        data = _parse_toml(text) if kind == "TOML" else json.loads(text)
        _check_extent(data)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid {kind}: {error}") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: the top level must be an object, got {type(data).__name__}.")
    return data


def _read_text(path: Path) -> str:
    """The text of a plain file of limited size; a pipe would block and a device might never end."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: not a plain file, but a folder, pipe or device. Name a settings file.")
        with path.open("rb") as file:
            content = file.read(MAX_CONFIG_BYTES + 1)
        if len(content) > MAX_CONFIG_BYTES:
            raise ConfigError(f"{path}: larger than {MAX_CONFIG_BYTES} bytes; that is not a settings file.")
        return content.decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise InputFileError(f"{path}: no such settings file. Check the path.") from None
    except ConfigError:
        raise
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a NUL in the path
        raise ConfigError(f"{str(path)!r:.200}: cannot be read as UTF-8 text ({error!s:.200}).") from None


def _check_extent(data: Any) -> None:
    """Refuse what no settings contain and Python cannot print: deep nesting, and whole numbers beyond 64 bits."""
    level: list[Any] = [data]
    for _ in range(MAX_CONFIG_DEPTH):
        groups = [
            value.values() if isinstance(value, dict) else value for value in level if isinstance(value, dict | list)
        ]
        level = [value for group in groups for value in group]
        if any(isinstance(value, int) and value.bit_length() > 64 for value in level):
            raise ValueError("a whole number has more than 64 bits. Settings are smaller.")
    if level:
        raise ValueError(f"nested more than {MAX_CONFIG_DEPTH} deep. Settings are flatter.")


def _show(value: Any) -> str:
    """A value in an error message, cut to one short line."""
    if isinstance(value, int) and abs(value) > 1 << 64:
        return f"a number of {value.bit_length()} bits"
    return f"{value!r:.40}"


def _parse_toml(text: str) -> dict[str, Any]:
    # The parser's time grows with the square of a key's length: a key of 20,000 parts takes a quarter of a minute.
    if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
        raise ValueError(f"a line has more than {_MAX_DOTS} dots. Write long lists over several lines.")
    # Python 3.10 has no tomllib; the package `tomli` is the same parser.
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


def set_key(data: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a key of nested tables, `racer.track`; missing tables are made."""
    table = data
    *path, last = key.split(".")
    for part in path:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{where}: {part} must be an object, got {_show(table)}.")
    table[last] = value


def merge_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables with those of `changes` laid over them. The result shares no table with either."""
    merged = {key: merge_tables(value, {}) if isinstance(value, Mapping) else value for key, value in base.items()}
    for key, value in changes.items():
        before = merged.get(key)
        is_table = isinstance(value, Mapping)
        merged[key] = merge_tables(before if isinstance(before, Mapping) else {}, value) if is_table else value
    return merged


def flatten_tables(tables: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one: `{"ppo": {"gamma": 0.99}}` becomes `{"ppo.gamma": 0.99}`."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        flat |= flatten_tables(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _suggest(key: str, known: Mapping[str, str]) -> str:
    return " " + did_you_mean(closest(key, known), f"Known keys: {', '.join(known)}.")


def _convert(hint: Any, value: Any, where: str, spelling: Spelling) -> Any:
    """`value` as type `hint`, or a ConfigError that names the place."""
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be an object, got {_show(value)}.")
        return build(hint, value, where, spelling)  # type: ignore[arg-type]
    if origin in (Union, UnionType):  # `float | None`
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else _convert(inner, value, where, spelling)
    if origin is tuple:  # `tuple[int, ...]`
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} must be a list, got {_show(value)}.")
        if len(value) > MAX_LIST_ITEMS:
            raise ConfigError(f"{where} must have at most {MAX_LIST_ITEMS:,} items, got {len(value):,}.")
        return tuple(_convert(arguments[0], item, f"{where}[{index}]", spelling) for index, item in enumerate(value))
    if origin is not None and set(map(type, arguments)) == {str}:  # Literal["a", "b"]
        if value not in arguments:
            raise ConfigError(f"{where} must be one of {', '.join(map(repr, arguments))}, got {_show(value)}.")
        return value
    if hint is float:
        return _number(value, where)
    if hint is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{where} must be a whole number, got {_show(value)}.")
        return value
    expected = origin or hint  # `Mapping[str, Any]` is checked as a mapping
    if not isinstance(value, expected):
        raise ConfigError(f"{where} must be of type {expected.__name__}, got {_show(value)}.")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"{where} must be a number, got {_show(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ConfigError(f"{where} must be finite, got {_show(value)}.")
    return number


def as_plain(settings: Any) -> dict[str, Any]:
    """A settings dataclass as plain data in snake_case: tuples become lists, fields that are None are left out."""
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            plain[field.name] = as_plain(value)
        elif value is not None:
            plain[field.name] = list(value) if isinstance(value, tuple) else value
    return plain


@dataclasses.dataclass(frozen=True)
class Range:
    """The values that a number may have: from `low`, itself included unless told otherwise, to `high`."""

    low: float
    high: float = math.inf
    excludes_low: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and not (self.excludes_low and value == self.low)

    def __str__(self) -> str:
        if self.excludes_low:
            return f"more than {self.low}"
        return f"{self.low} or more" if math.isinf(self.high) else f"from {self.low} to {self.high}"


POSITIVE = Range(0, excludes_low=True)
NOT_NEGATIVE = Range(0)
FRACTION = Range(0, 1)


def setting(default: Any, meaning: str, allowed: Range | None = None) -> Any:
    """A dataclass field with its meaning and the range of its values, each declared here only.

    `check_ranges` enforces the range; the documentation prints both. A callable default is called for each instance.
    """
    metadata = {"meaning": meaning, "allowed": allowed}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def check_ranges(settings: Any) -> None:
    """Refuse a number, alone or in a list, that is outside the range of its field. NaN is outside every range."""
    for field in dataclasses.fields(settings):
        allowed, value = field.metadata.get("allowed"), getattr(settings, field.name)
        if allowed is None or value is None:
            continue
        named = [(field.name, value)]
        if isinstance(value, tuple):
            named = [(f"{field.name}[{index}]", item) for index, item in enumerate(value)]
        for name, number in named:
            if number not in allowed:
                raise ConfigError(f"{name} must be {allowed}, got {_show(number)}.")
