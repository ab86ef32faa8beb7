"""Settings: frozen dataclasses whose fields are declared by `setting`, and strict loading of them from JSON and TOML.

Unknown keys, wrong types, numbers that are not finite and numbers out of range are errors. Recipes and Python write
settings in snake_case with units (`max_ticks`), `ai-config.json` and the bridge in camelCase (`maxSteps`). Loading is
hand-made for its error messages, which name the key as the file spells it and suggest the one meant.
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
Spelling = Callable[["dataclasses.Field[Any]"], str]

MAX_CONFIG_BYTES = 1 << 20
MAX_CONFIG_DEPTH = 32
MAX_LIST_ITEMS = 10_000  # of a setting

_MAX_DOTS = 100  # in one line of TOML


def camel_case(field: "dataclasses.Field[Any]") -> str:
    """The key of a setting in `ai-config.json` and over the bridge: the one declared, or `speedBonus`."""
    first, *rest = field.name.split("_")
    return field.metadata.get("camel") or first + "".join(part.capitalize() for part in rest)


def snake_case(field: "dataclasses.Field[Any]") -> str:
    """The key of a setting in recipes and in Python: `speed_bonus`."""
    return field.name


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
    """An instance of dataclass `kind` from plain data, every key known, every value of its type and in its range.

    `REPLACED_KEYS` of the dataclass says what to write instead of a key that there is no more.
    """
    fields = {spelling(field): field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    values = {}
    for key, value in data.items():
        if key not in fields:
            hint = getattr(kind, "REPLACED_KEYS", {}).get(key) or _suggest(str(key), fields)
            raise ConfigError(f"{where}: unknown key {key!r:.80}. {hint}")
        field = fields[key]
        values[field.name] = convert(hints[field.name], value, f"{where}: {key}", spelling)
        _check_range(field, values[field.name], f"{where}: {key}")
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


def _suggest(key: str, known: "Mapping[str, dataclasses.Field[Any]]") -> str:
    """The key probably meant: that of the same setting in the other spelling, or the most similar one."""
    same = [spelled for spelled, field in known.items() if key in (snake_case(field), camel_case(field))]
    return did_you_mean(same[0] if same else closest(key, known), f"Known keys: {', '.join(known)}.")


def convert(hint: Any, value: Any, where: str, spelling: Spelling = snake_case) -> Any:
    """`value` as type `hint`, or a ConfigError that names the place."""
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be an object, got {_show(value)}.")
        return build(hint, value, where, spelling)  # type: ignore[arg-type]
    if origin in (Union, UnionType):  # `float | None`
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return None if value is None else convert(inner, value, where, spelling)
    if origin is tuple:  # `tuple[int, ...]`
        if not isinstance(value, list | tuple):
            raise ConfigError(f"{where} must be a list, got {_show(value)}.")
        if len(value) > MAX_LIST_ITEMS:
            raise ConfigError(f"{where} must have at most {MAX_LIST_ITEMS:,} items, got {len(value):,}.")
        return tuple(convert(arguments[0], item, f"{where}[{index}]", spelling) for index, item in enumerate(value))
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


def as_plain(settings: Any, spelling: Spelling = snake_case) -> dict[str, Any]:
    """A settings dataclass as plain data: tuples become lists, fields that are None are left out."""
    plain: dict[str, Any] = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            plain[spelling(field)] = as_plain(value, spelling)
        elif value is not None:
            plain[spelling(field)] = list(value) if isinstance(value, tuple) else value
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


def setting(default: Any, meaning: str, allowed: Range | None = None, *, unit: str = "", camel: str = "") -> Any:
    """A dataclass field with its meaning, the range of its values and their unit, each declared here only.

    `build` and `check_ranges` enforce the range; the documentation prints all of them. `camel` is the key in camelCase
    where the field's name does not give it. A callable default is called for each instance.
    """
    metadata = {"meaning": meaning, "allowed": allowed, "unit": unit, "camel": camel}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def check_ranges(settings: Any) -> None:
    """Refuse a number, alone or in a list, that is outside the range of its field. NaN is outside every range."""
    for field in dataclasses.fields(settings):
        _check_range(field, getattr(settings, field.name), field.name)


def _check_range(field: "dataclasses.Field[Any]", value: Any, name: str) -> None:
    """Refuse a value of a field that is outside its range; `name` is the key as it was written."""
    allowed = field.metadata.get("allowed")
    if allowed is None or value is None:
        return
    named = [(name, value)]
    if isinstance(value, tuple):
        named = [(f"{name}[{index}]", item) for index, item in enumerate(value)]
    for one, number in named:
        check_number(one, number, allowed, field.metadata["unit"])


def check_count(name: str, value: object, allowed: Range, unit: str = "") -> None:
    """Refuse an argument that is no whole number or outside its range, in the words of a setting."""
    check_number(name, convert(int, value, name), allowed, unit)


def check_number(name: str, number: float, allowed: Range, unit: str = "") -> None:
    """Refuse a number outside its range."""
    if number not in allowed:
        raise ConfigError(f"{name} must be {in_unit(allowed, unit)}, got {_show(number)}.")


def in_unit(allowed: Range, unit: str) -> str:
    """A range with its unit: `from 0 to 100 m/s`."""
    return f"{allowed} {unit}".rstrip()
