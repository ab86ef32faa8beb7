"""The scenarios of the overtaking benchmark: drawn from a seed, and kept in a file that others can repeat."""

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hotlap.atomic_files import write_atomically
from hotlap.config import Range
from hotlap.errors import ConfigError, InputFileError

FORMAT = "hotlap-overtaking-1"
NUM_SCENARIOS, SCENARIO_SEED, DURATION_S = 2400, 30, 8.0
TRACKS = ("track-01", "track-02", "track-03")
KEPT = "kept"  # the car ahead keeps its distance from the centreline
# The champions are not among them: with less throttle than they learned with, they leave the road.
LINES = ("generalist", KEPT)

# From where to where a scenario is drawn.
GAP_M = Range(8.0, 20.0)
MAX_THROTTLE = Range(0.3, 0.8)
OFFSET = Range(-0.5, 0.5)
PACE = Range(0.6, 0.9)
_PLACE = Range(0.0, 1.0)


@dataclass(frozen=True)
class OvertakingScenario:
    """Two cars on a road. Both begin at the same speed, or the car behind at the one that is feasible where it is."""

    track: str
    line: str  # who drives the car ahead: generalist or KEPT
    place: float  # of the car ahead, as a fraction of the lap
    gap_m: float  # between the centres of the cars, along the road
    max_throttle: float  # of the car ahead
    offset: float  # of the car ahead, left of the centreline, as a fraction of the road's half-width
    own_offset: float  # of the car behind
    pace: float  # the speed of the car ahead, as a fraction of the feasible one


COLUMNS = tuple(field.name for field in fields(OvertakingScenario))
_RANGES = {"place": _PLACE, "gap_m": GAP_M, "max_throttle": MAX_THROTTLE, "offset": OFFSET, "pace": PACE}
_RANGES["own_offset"] = OFFSET


def draw_scenarios(num_scenarios: int = NUM_SCENARIOS, seed: int = SCENARIO_SEED) -> list[OvertakingScenario]:
    """The first scenarios of a seed: tracks take turns, and on each track the lines; all else is drawn."""
    rng = np.random.default_rng(seed)

    def draw(between: Range, decimals: int) -> float:
        return round(float(between.low + (between.high - between.low) * rng.random()), decimals)

    return [
        OvertakingScenario(
            track=TRACKS[number % len(TRACKS)],
            line=LINES[number // len(TRACKS) % len(LINES)],
            place=draw(_PLACE, 5) % 1.0,
            gap_m=draw(GAP_M, 2),
            max_throttle=draw(MAX_THROTTLE, 3),
            offset=draw(OFFSET, 3),
            own_offset=draw(OFFSET, 3),
            pace=draw(PACE, 3),
        )
        for number in range(num_scenarios)
    ]


def digest_scenarios(scenarios: Sequence[OvertakingScenario]) -> str:
    """Twelve digits that tell scenarios from others."""
    return sha256(json.dumps([astuple(one) for one in scenarios]).encode()).hexdigest()[:12]


def write_scenarios(path: Path, scenarios: Sequence[OvertakingScenario]) -> None:
    """Write scenarios as JSON, one a line."""
    head = json.dumps({"format": FORMAT, "duration_s": DURATION_S, "columns": COLUMNS})
    rows = ",\n".join(json.dumps(astuple(one)) for one in scenarios)
    write_atomically(path, f'{head[:-1]}, "scenarios": [\n{rows}\n]}}\n'.encode())


def read_scenarios(path: Path) -> list[OvertakingScenario]:
    """Read scenarios; a file that has none gets one line that says why."""
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise InputFileError(f"{path}: there is no such file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: has no scenarios ({type(error).__name__}).") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or data.get("columns") != list(COLUMNS):
        raise ConfigError(f"{path}: has no scenarios of the format {FORMAT}.")
    rows = data.get("scenarios")
    if not isinstance(rows, list) or not rows:
        raise ConfigError(f"{path}: has no scenarios. Draw some: python benchmarks/overtaking.py --draw FILE.")
    return [_read_row(path, number, row) for number, row in enumerate(rows)]


def _read_row(path: Path, number: int, row: Any) -> OvertakingScenario:
    values = dict(zip(COLUMNS, row, strict=True)) if isinstance(row, list) and len(row) == len(COLUMNS) else {}
    is_sane = values and values["track"] in TRACKS and values["line"] in LINES
    if not is_sane or not all(_is_in(values[name], between) for name, between in _RANGES.items()):
        raise ConfigError(f"{path}: scenario {number} is out of its ranges, got {row!r:.120}.")
    return OvertakingScenario(**values)


def _is_in(value: object, between: Range) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value in between
