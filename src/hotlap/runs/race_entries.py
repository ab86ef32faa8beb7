"""The drivers of a race, as a person writes them: NAME, NAME*4, NAME@0.9 or NAME@0.9*2."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotlap.drivers.driver import make_driver
from hotlap.errors import ConfigError, DriverError
from hotlap.evaluation.races import Entry, check_entries
from hotlap.runs.find_driver import find_driver_model
from hotlap.sim.race import MAX_CARS_PER_RACE

_FORM = re.compile(r"(?P<name>.+?)(?:@(?P<throttle>[-+0-9.eE]+))?(?:\*(?P<cars>[^*]*))?")


@dataclass(frozen=True)
class WrittenEntry:
    """One argument: a driver's name, how many cars it has, and how far its throttle goes."""

    name: str
    num_cars: int
    max_throttle: float

    @property
    def label(self) -> str:
        """What the driver is called in results."""
        return self.name if self.max_throttle == 1.0 else f"{self.name}@{self.max_throttle:g}"


def read_entry(text: str) -> WrittenEntry:
    """What an argument says; ConfigError for a number that makes no sense."""
    found = _FORM.fullmatch(text)
    if not found:
        raise ConfigError(f"driver {text!r:.80}: write NAME, NAME*4, NAME@0.9 or NAME@0.9*2.")
    cars, throttle = found["cars"] or ("1" if found["cars"] is None else ""), found["throttle"] or "1"
    if not (cars.isascii() and cars.isdigit() and 1 <= int(cars[:9]) <= MAX_CARS_PER_RACE):
        raise ConfigError(
            f"driver {text!r:.80}: the number of cars after * must be from 1 to {MAX_CARS_PER_RACE}, got {cars!r:.20}."
        )
    try:
        max_throttle = float(throttle)
    except ValueError:
        max_throttle = -1.0
    if not 0.0 < max_throttle <= 1.0:
        raise ConfigError(
            f"driver {text!r:.80}: the throttle after @ must be more than 0 and at most 1, got {throttle!r:.20}."
        )
    return WrittenEntry(found["name"], int(cars), max_throttle)


def find_entries(texts: Sequence[str], track: str) -> list[Entry]:
    """The drivers of a race on a track; each argument has a driver of its own, with its own memory."""
    written = [read_entry(text) for text in texts]
    models = {name: find_driver_model(name, track) for name in {one.name for one in written}}
    for name, model in models.items():
        if model is not None and not model.card.is_racer:
            raise DriverError(f"driver {name!r:.80}: is a model of {model.card.environment}, not of the racer.")
    entries = [
        Entry(one.label, make_driver(one.name, models[one.name]), one.num_cars, one.max_throttle) for one in written
    ]
    check_entries(entries)
    return entries
