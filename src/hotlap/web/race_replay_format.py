"""The replay of a race against rivals: its field, the person's inputs and the times it claims, as bytes and as text.

The rivals' inputs are not in it: whoever checks it lets the same drivers drive. `docs/web-api.md` describes it.
"""

import re
import struct
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hotlap.errors import ReplayError
from hotlap.sim.version import RACE_VERSION
from hotlap.web.replay_format import (
    MAX_REPLAY_BYTES,
    MAX_TICKS,
    QUANTISED,
    Actions,
    check_encoding,
    from_text,
    pack_inputs,
    to_text,
    unpack_inputs,
)

RACE_MAGIC = b"HRC1"
MAX_RACE_CARS = 12  # the person's and eleven rivals
MAX_RACE_LAPS = 10
_HEAD = struct.Struct("<4sBBH6s8sIHH")
_GROUP = re.compile(r"([A-Za-z0-9][A-Za-z0-9._:@-]{0,150})(?:#([0-9a-f]{8}))?\*([1-9]\d?)", re.ASCII)


@dataclass(frozen=True)
class RivalGroup:
    """Neighbours in the list of cars with one driver; `digest`: CRC-32 of its policy file, or the casual's version."""

    driver_id: str
    digest: int
    num_cars: int


@dataclass(frozen=True, eq=False)
class RivalRace:
    """A race of a person, car 0, against rivals; `actions` are the person's until the end of its own race."""

    track_digest: str
    laps: int
    rivals: tuple[RivalGroup, ...]
    slots: tuple[int, ...]  # each car's place on the grid, from 0
    actions: Actions
    race_times_s: NDArray[np.float32]  # each car's, as claimed; NaN of those that did not finish
    race_version: str = RACE_VERSION

    @property
    def num_cars(self) -> int:
        """The number of cars."""
        return len(self.slots)

    def to_bytes(self) -> bytes:
        """The race as a file."""
        edition, _, digest = self.race_version.partition("-")
        field = ",".join(_group_text(group) for group in self.rivals).encode("ascii")
        head = _HEAD.pack(
            RACE_MAGIC,
            QUANTISED,
            self.num_cars,
            int(edition),
            bytes.fromhex(digest),
            bytes.fromhex(self.track_digest),
            len(self.actions),
            self.laps,
            len(field),
        )
        times = np.where(np.isnan(self.race_times_s), np.float32(np.nan), self.race_times_s).astype("<f4").tobytes()
        return head + field + bytes(self.slots) + times + pack_inputs(self.actions, is_quantised=True)

    def to_text(self) -> str:
        """The race as text."""
        return to_text(self.to_bytes())

    @classmethod
    def from_text(cls, text: str) -> "RivalRace":
        """The race in text."""
        return cls.from_bytes(from_text(text))

    @classmethod
    def from_bytes(cls, content: bytes) -> "RivalRace":
        """The race in a file; a ReplayError if any byte of it is not as the format says."""
        if len(content) < _HEAD.size or content[: len(RACE_MAGIC)] != RACE_MAGIC:
            raise ReplayError("race: it does not begin like one (HRC1). Is it another file?")
        if len(content) > MAX_REPLAY_BYTES:
            raise ReplayError(f"race: it has at most {MAX_REPLAY_BYTES} bytes, this has {len(content)}.")
        _, encoding, num_cars, edition, digest, road, num_ticks, laps, field_bytes = _HEAD.unpack_from(content)
        check_encoding(encoding)
        if not (2 <= num_cars <= MAX_RACE_CARS and 1 <= laps <= MAX_RACE_LAPS and 1 <= num_ticks <= MAX_TICKS):
            raise ReplayError(
                f"race: it has 2 to {MAX_RACE_CARS} cars, 1 to {MAX_RACE_LAPS} laps and 1 to {MAX_TICKS} ticks, got "
                f"{num_cars}, {laps} and {num_ticks}."
            )
        slots_at = _HEAD.size + field_bytes
        times_at, body_at = slots_at + num_cars, slots_at + 5 * num_cars
        if len(content) < body_at:
            raise ReplayError("race: it is cut off.")
        slots = tuple(content[slots_at:times_at])
        if sorted(slots) != list(range(num_cars)):
            raise ReplayError(f"race: the places on the grid must be 0 to {num_cars - 1}, each once.")
        times_s = np.frombuffer(content, "<f4", num_cars, times_at).astype(np.float32)
        if np.isinf(times_s).any() or (times_s <= 0.0).any():
            raise ReplayError("race: it claims a time that no race takes.")
        rivals = _read_groups(content[_HEAD.size : slots_at], num_cars - 1)
        actions = unpack_inputs(content[body_at:], encoding, num_ticks)
        return cls(road.hex(), laps, rivals, slots, actions, times_s, f"{edition}-{digest.hex()}")

    def names(self) -> list[str]:
        """The cars' drivers in order: the person, then the rivals' ids."""
        return ["you", *chain.from_iterable([group.driver_id] * group.num_cars for group in self.rivals)]


def _group_text(group: RivalGroup) -> str:
    digest = f"#{group.digest:08x}" if group.digest else ""
    return f"{group.driver_id}{digest}*{group.num_cars}"


def _read_groups(field: bytes, num_rivals: int) -> tuple[RivalGroup, ...]:
    matches = [_GROUP.fullmatch(part) for part in field.decode("ascii", "replace").split(",")]
    groups = tuple(RivalGroup(one[1], int(one[2] or "0", 16), int(one[3])) for one in matches if one)
    is_whole = len(groups) == len(matches) == len({group.driver_id for group in groups})
    if not is_whole or sum(group.num_cars for group in groups) != num_rivals:
        raise ReplayError("race: its list of rivals is damaged.")
    return groups
