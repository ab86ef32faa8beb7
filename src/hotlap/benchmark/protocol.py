"""The protocol of the benchmark: its tracks, starts and scenarios, in a file with a digest that never changes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files

from hotlap.errors import ConfigError
from hotlap.evaluation.overtaking_scenarios import OvertakingScenario, digest_scenarios, draw_scenarios
from hotlap.tracks.digest import track_digest
from hotlap.tracks.registry import load_track

VERSION = 1
DIGEST = "40be0f30ebf631a5"  # of the shipped protocol
BUILT_IN, TEST, OVERTAKING = "built-in", "test", "overtaking"
START = "random"  # anywhere on the lap, drawn from the seed
MAX_TICKS = 36_000  # of one start: ten minutes
FORMAT = "hotlap-benchmark"


@dataclass(frozen=True)
class TrackStarts:
    """The starts on a track: one for each seed."""

    track_id: str
    road: str  # the digest of the track's road
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Protocol:
    """What every entry drives: the laps of its parts, and the overtaking scenarios."""

    laps: Mapping[str, tuple[TrackStarts, ...]]  # by part
    scenarios: tuple[OvertakingScenario, ...]
    version: int = VERSION

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts."""
        return (*self.laps, OVERTAKING) if self.scenarios else tuple(self.laps)

    @property
    def digest(self) -> str:
        """Sixteen digits that tell this protocol from every other."""
        return sha256(encode_protocol(self)).hexdigest()[:16]

    def tracks_of(self, parts: Sequence[str]) -> list[TrackStarts]:
        """The tracks of some parts, in the order of the protocol."""
        return [starts for name, tracks in self.laps.items() if name in parts for starts in tracks]

    def only(self, part: str) -> "Protocol":
        """The protocol of one part."""
        if part not in self.parts:
            raise ConfigError(f"--part {part!r:.40}: the parts are {', '.join(self.parts)}. Name one of them.")
        laps = {name: tracks for name, tracks in self.laps.items() if name == part}
        return replace(self, laps=laps, scenarios=self.scenarios if part == OVERTAKING else ())


def encode_protocol(protocol: Protocol) -> bytes:
    """The protocol as its file: a line for each track."""
    head = {"format": FORMAT, "version": protocol.version, "start": START, "max_ticks": MAX_TICKS}
    scenarios = {"count": len(protocol.scenarios), "digest": digest_scenarios(protocol.scenarios)}
    lines = [f'{json.dumps(head)[:-1]}, "{OVERTAKING}": {json.dumps(scenarios)}, "laps": {{']
    parts = []
    for part, tracks in protocol.laps.items():
        rows = [f'  "{one.track_id}": {json.dumps({"road": one.road, "seeds": one.seeds})}' for one in tracks]
        parts.append(f'"{part}": {{\n' + ",\n".join(rows) + "\n}")
    return ("\n".join([*lines, ",\n".join(parts)]) + "}}\n").encode()


@lru_cache(maxsize=1)
def load_protocol() -> Protocol:
    """The protocol that ships; ConfigError where its file is not the one that was published."""
    content = files("hotlap.benchmark").joinpath(f"data/protocol-{VERSION}.json").read_bytes()
    if (found := sha256(content).hexdigest()[:16]) != DIGEST:
        raise ConfigError(f"the protocol of the benchmark has digest {found}, not {DIGEST}. Install Hotlap again.")
    data = json.loads(content)
    laps = {
        part: tuple(TrackStarts(track, one["road"], tuple(one["seeds"])) for track, one in tracks.items())
        for part, tracks in data["laps"].items()
    }
    protocol = Protocol(laps, tuple(draw_scenarios(data[OVERTAKING]["count"])), data["version"])
    if digest_scenarios(protocol.scenarios) != data[OVERTAKING]["digest"]:
        raise ConfigError("the overtaking scenarios are not those of the benchmark. Install Hotlap again.")
    return protocol


def check_road(starts: TrackStarts) -> None:
    """Raise ConfigError where the track has another road than that of the protocol."""
    if (found := track_digest(load_track(starts.track_id).nodes)) != starts.road:
        raise ConfigError(
            f"{starts.track_id}: its road is {found}, that of the benchmark {starts.road}. Install Hotlap again."
        )
