"""Laps of track-01 with known answers: on the centreline at nine tenths of the optimum's speed."""

from dataclasses import dataclass
from functools import cache

from evaluation.synthetic import centreline_raceline, clock, follow
from hotlap.evaluation.lap_comparison import Comparison, compare
from hotlap.evaluation.telemetry import Telemetry
from hotlap.tracks.files.raceline_file import Raceline
from hotlap.tracks.registry import Track, load_track


@dataclass(frozen=True)
class KnownReference:
    """Stands in for the solved optimal lap."""

    raceline: Raceline
    lap_time_s: float


@cache
def known_track() -> Track:
    return load_track("track-01")


@cache
def known_reference() -> KnownReference:
    raceline = centreline_raceline(known_track())
    return KnownReference(raceline, float(clock(raceline, known_track())[1][-1]))


@cache
def known_trace(num_laps: int = 3) -> Telemetry:
    return follow(known_reference().raceline, known_track(), 0.9, num_laps=num_laps)


@cache
def known_comparison() -> Comparison:
    return compare(known_trace(), known_track(), known_reference().raceline, known_reference().lap_time_s)
