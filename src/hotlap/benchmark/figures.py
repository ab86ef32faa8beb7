"""The figures of the benchmark: what an entry's drives come to, by track and by part."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hotlap.benchmark.lap_replays import LapOutcomes
from hotlap.benchmark.overtaking_replays import PassingOutcomes
from hotlap.benchmark.protocol import OVERTAKING, Protocol
from hotlap.errors import ConfigError
from hotlap.evaluation.overtaking import wilson_interval
from hotlap.optimal.reference import find_reference
from hotlap.tracks.registry import load_track

LOST_START = 1.0  # the gap that a start without a clean flying lap counts as


@dataclass(frozen=True)
class LapFigures:
    """The flying laps of a track, or of all tracks of a part; a gap is relative to the optimal lap."""

    starts: int
    completed_rate: float
    clean_rate: float  # of all starts
    median_gap: float | None  # of the clean laps; of a part, the median over its tracks
    worst_gap: float | None  # of a track's slowest clean lap; of a part, that of its worst track's median
    score: float | None  # mean gap over all starts, of which one without a clean lap counts as LOST_START
    median_lap_s: float | None = None  # of a track only


@dataclass(frozen=True)
class PassingFigures:
    """The overtaking scenarios, with the bounds of 95 % intervals of the two rates that count."""

    scenarios: int
    safe_rate: float
    safe_low: float
    safe_high: float
    overtake_rate: float
    overtake_low: float
    overtake_high: float
    contact_rate: float
    at_fault_rate: float
    off_road_rate: float


@dataclass(frozen=True)
class EntryFigures:
    """All figures of an entry."""

    tracks: Mapping[str, LapFigures]
    parts: Mapping[str, LapFigures]
    overtaking: PassingFigures | None

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def measure_entry(
    protocol: Protocol, laps: Mapping[str, LapOutcomes], overtaking: PassingOutcomes | None
) -> EntryFigures:
    """The figures of what was driven."""
    tracks = {track: track_figures(found, optimal_lap_s(track)) for track, found in laps.items()}
    parts = {}
    for part, starts in protocol.laps.items():
        if all(one.track_id in tracks for one in starts):
            parts[part] = part_figures([tracks[one.track_id] for one in starts])
    return EntryFigures(tracks, parts, passing_figures(overtaking) if overtaking is not None else None)


def optimal_lap_s(track_id: str) -> float:
    """The optimal flying lap of a track, which ships for all tracks of the benchmark."""
    found = find_reference(load_track(track_id))
    if found is None:
        raise ConfigError(f"the optimal lap of {track_id} is not known. Solve it: hotlap optimal {track_id}.")
    return found.lap_time_s


def track_figures(found: LapOutcomes, optimal_s: float) -> LapFigures:
    """The figures of one track."""
    gaps = found.times_s.astype(np.float64) / optimal_s - 1.0
    clean, starts = gaps[found.is_clean], len(gaps)
    has_laps = len(clean) > 0
    return LapFigures(
        starts=starts,
        completed_rate=float(found.is_completed.mean()),
        clean_rate=len(clean) / starts,
        median_gap=float(np.median(clean)) if has_laps else None,
        worst_gap=float(clean.max()) if has_laps else None,
        score=float(np.where(found.is_clean, gaps, LOST_START).mean()),
        median_lap_s=float(np.median(found.times_s[found.is_clean])) if has_laps else None,
    )


def part_figures(tracks: list[LapFigures]) -> LapFigures:
    """The figures of all tracks of a part: each counts as much as another."""
    gaps = [one.median_gap for one in tracks if one.median_gap is not None]
    return LapFigures(
        starts=sum(one.starts for one in tracks),
        completed_rate=float(np.mean([one.completed_rate for one in tracks])),
        clean_rate=float(np.mean([one.clean_rate for one in tracks])),
        median_gap=float(np.median(gaps)) if gaps else None,
        worst_gap=max(gaps) if len(gaps) == len(tracks) else None,
        score=float(np.mean([one.score for one in tracks])),
    )


def passing_figures(found: PassingOutcomes) -> PassingFigures:
    """The rates of all scenarios."""
    num, safe, overtake = len(found.is_safe), float(found.is_safe.mean()), float(found.is_overtake.mean())
    others = (float(flags.mean()) for flags in (found.has_contact, found.has_fault, found.has_left_road))
    return PassingFigures(num, safe, *wilson_interval(safe, num), overtake, *wilson_interval(overtake, num), *others)


def read_figures(data: Mapping[str, Any]) -> EntryFigures:
    """Figures that `as_dict` gave."""
    tracks, parts = ({name: LapFigures(**one) for name, one in data[key].items()} for key in ("tracks", "parts"))
    passing = data[OVERTAKING]
    return EntryFigures(tracks, parts, None if passing is None else PassingFigures(**passing))
