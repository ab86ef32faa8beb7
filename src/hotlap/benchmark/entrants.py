"""Who drives the benchmark: a name, a run or a model file, with the parts that it can drive."""

from dataclasses import dataclass

from hotlap.benchmark.entry_file import MAX_MODEL_BYTES
from hotlap.benchmark.protocol import Protocol
from hotlap.benchmark.recording import DriverOn
from hotlap.benchmark.table import OPTIMUM, parts_of
from hotlap.drivers.driver import make_driver
from hotlap.errors import ConfigError, DriverError
from hotlap.models.shipped_models import CHAMPION
from hotlap.runs.find_driver import find_driver, find_driver_model


@dataclass(frozen=True)
class Entrant:
    """A driver that is about to drive the benchmark."""

    name: str
    parts: tuple[str, ...]
    driver_on: DriverOn
    model: bytes | None  # the file of its model, where one model drives all


def find_entrant(name: str, protocol: Protocol, part: str | None = None) -> Entrant:
    """The driver of a name, a run or a file; DriverError where it cannot drive the benchmark."""
    if name == "optimal":
        raise DriverError(f"driver {name}: its laps are in every table as {OPTIMUM!r}. Enter another driver.")
    parts = parts_of(name, protocol)
    if part is not None:
        wanted = protocol.only(part).parts
        if part not in parts:
            raise ConfigError(f"--part {part}: {name} drives {', '.join(parts)} only. Choose another part.")
        parts = wanted
    tracks = [one.track_id for one in protocol.tracks_of(parts)] or [one.track for one in protocol.scenarios]
    model = find_driver_model(name, tracks[0])
    if model is None:
        return Entrant(name, parts, lambda track: find_driver(name, track), None)
    if not model.card.is_racer:
        raise DriverError(f"driver {name!r:.80}: is a model of {model.card.environment}, not of the racer.")
    if name == CHAMPION:
        return Entrant(name, parts, lambda track: find_driver(name, track), None)
    content = model.path.read_bytes()
    brought = content if len(content) <= MAX_MODEL_BYTES else None  # a checkpoint may be larger
    return Entrant(make_driver(name, model).name, parts, lambda track: make_driver(name, model), brought)
