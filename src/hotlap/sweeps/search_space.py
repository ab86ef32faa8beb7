"""The search space of a sweep: ranges and choices for the keys of a run's configuration, checked on construction."""

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args, get_type_hints

from hotlap.errors import ConfigError, closest, did_you_mean
from hotlap.runs.run_config import RunConfig

RECIPE_KEY = "recipe"  # beside the keys of a run's configuration, a sweep may search over recipes
MAX_GRID = 100_000  # combinations
_RANGE_KEYS = {"low", "high", "log", "step"}
_EXAMPLE = "Write { low = 1e-4, high = 1e-3, log = true } or { choices = [4, 6, 8] }."

Params = Mapping[str, Any]  # dotted key to value


@dataclass(frozen=True)
class RangeParameter:
    """A number from `low` to `high`, both included, uniform or log-uniform; with a `step`, low plus multiples of it."""

    key: str
    low: float
    high: float
    log: bool = False
    step: float | None = None
    is_whole: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ConfigError(f"the range is empty: low is {self.low} and high is {self.high}. low must be smaller.")
        if self.log and self.low <= 0:
            raise ConfigError(f"a log range must start above 0, got low = {self.low}.")
        if self.log and self.step is not None:
            raise ConfigError("a log range has no step. Leave one of the two out.")
        if self.step is not None and not 0 < self.step <= self.high - self.low:
            raise ConfigError(f"step must be above 0 and fit into the range, got {self.step}.")

    @property
    def ends(self) -> tuple[float, float]:
        """The values to check before a sweep starts."""
        return self.low, self.high

    def grid(self) -> list[float]:
        """Every value, for a grid search."""
        if self.log or (self.step is None and not self.is_whole):
            raise ConfigError("a grid needs a finite set of values. Give choices, or a range with a step.")
        step = self.step or 1
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        if count > MAX_GRID:
            raise ConfigError(f"the range has {count} values; a grid has at most {MAX_GRID}. Give a larger step.")
        return [self.low + index * step for index in range(count)]


@dataclass(frozen=True)
class ChoiceParameter:
    """One of several values."""

    key: str
    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.choices:
            raise ConfigError("choices is empty. List at least one value.")
        texts = [json.dumps(choice, sort_keys=True, default=str) for choice in self.choices]
        for index, text in enumerate(texts):
            if text in texts[:index]:
                raise ConfigError(f"the choice {text:.40} is given twice. List each value once.")

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values to check before a sweep starts: all of them."""
        return self.choices

    def grid(self) -> list[Any]:
        """Every value, for a grid search."""
        return list(self.choices)


Parameter = RangeParameter | ChoiceParameter


def read_space(data: Mapping[str, Any], where: str) -> tuple[Parameter, ...]:
    """The parameters of a table `[space]`, in its order."""
    return tuple(_read_parameter(key, entry, f"{where}: space: {key!r:.80}") for key, entry in data.items())


def _read_parameter(key: str, entry: Any, where: str) -> Parameter:
    hint = _hint_of(key, where)
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{where}: must be a range or choices, got {entry!r:.40}. {_EXAMPLE}")
    try:
        if set(entry) == {"choices"}:
            if not isinstance(entry["choices"], list):
                raise ConfigError(f"choices must be a list, got {entry['choices']!r:.40}.")
            return ChoiceParameter(key, tuple(entry["choices"]))
        if unknown := set(entry) - _RANGE_KEYS:
            raise ConfigError(f"unknown key {min(unknown)!r:.40}. {_EXAMPLE}")
        return _read_range(key, entry, hint)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _read_range(key: str, entry: Mapping[str, Any], hint: Any) -> RangeParameter:
    if hint not in (int, float, Any):
        raise ConfigError("takes no numbers from a range. Give choices.")
    if not {"low", "high"} <= set(entry):
        raise ConfigError(f"a range needs low and high. {_EXAMPLE}")
    numbers = {name: entry[name] for name in ("low", "high", "step") if name in entry}
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ConfigError(f"{name} must be a finite number, got {value!r:.40}.")
    are_whole = all(isinstance(value, int) for value in numbers.values())
    if hint is int and not are_whole:
        raise ConfigError("takes whole numbers. Write low, high and step without a point.")
    if not isinstance(log := entry.get("log", False), bool):
        raise ConfigError(f"log must be true or false, got {log!r:.40}.")
    is_whole = are_whole and hint is not float
    return RangeParameter(key, numbers["low"], numbers["high"], log, numbers.get("step"), is_whole)


def _hint_of(key: str, where: str) -> Any:
    """The type of a configuration key (`ppo.gamma`: float); Any inside a table with free keys."""
    if key == RECIPE_KEY:
        return str
    if key.split(".")[0] == "seed":
        raise ConfigError(f"{where}: is not searched; every trial runs all seeds. List them in `seeds`.")
    kind: Any = RunConfig
    for part in key.split("."):
        if not dataclasses.is_dataclass(kind):
            return Any if getattr(kind, "__origin__", None) is not None else _refuse(key, where, {})
        hints = get_type_hints(kind)
        if part not in hints or part not in {field.name for field in dataclasses.fields(kind)}:
            _refuse(key, where, hints)
        kind = hints[part]
        inner = [argument for argument in get_args(kind) if argument is not NoneType]
        kind = inner[0] if len(inner) == 1 else kind  # `float | None`
    if dataclasses.is_dataclass(kind):
        raise ConfigError(f"{where}: is a table. Name a key in it, such as '{key}.{dataclasses.fields(kind)[0].name}'.")
    return kind


def _refuse(key: str, where: str, known: Mapping[str, Any]) -> None:
    table, _, last = key.rpartition(".")
    close = closest(last, known)
    if close and table:
        close = f"{table}.{close}"
    hint = did_you_mean(close, "See docs/recipes.md for every key.")
    raise ConfigError(f"{where}: is not a key of a run's configuration. {hint}")


def grid_size(space: tuple[Parameter, ...]) -> int:
    """The number of combinations."""
    size = 1
    for parameter in space:
        try:
            size *= len(parameter.grid())
        except ConfigError as error:
            raise ConfigError(f"space: {parameter.key!r}: {error}") from None
        if size > MAX_GRID:
            raise ConfigError(f"space: the grid has more than {MAX_GRID} combinations. Use fewer values.")
    return size


def grid_points(space: tuple[Parameter, ...]) -> Iterator[dict[str, Any]]:
    """Every combination, the last parameter changing fastest."""
    keys = [parameter.key for parameter in space]
    for values in itertools.product(*(parameter.grid() for parameter in space)):
        yield dict(zip(keys, values, strict=True))


def end_points(space: tuple[Parameter, ...]) -> Iterator[dict[str, Any]]:
    """Settings in which every end of a range and every choice occurs, the other parameters at their first value."""
    first = {parameter.key: parameter.ends[0] for parameter in space}
    yield first
    for parameter in space:
        for value in parameter.ends[1:]:
            yield {**first, parameter.key: value}
