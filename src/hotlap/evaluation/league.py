"""A league: all drivers race each other on several tracks, and a table says who is better."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from hotlap.envs.race_defaults import DEFAULT_LAPS, DEFAULT_START, RaceStart
from hotlap.errors import ConfigError
from hotlap.evaluation.race_results import DriverResult, PairResult, RaceResults, join_entries, summarise_races
from hotlap.evaluation.races import Entry, OnProgress, RaceCounts, check_entries, race
from hotlap.models.shipped_models import SHIPPED_NAMES

MAX_LEAGUE_RACES = 100_000
CARS_PER_DRIVER = 2
# All that ship but the optimal driver, which needs CasADi and follows a solved plan.
LEAGUE_DRIVERS = ("casual", *SHIPPED_NAMES)
_CARS_AT_ONCE = 1024  # more take more memory and are no faster


@dataclass(frozen=True)
class League:
    """The results of all races, and of those on each track."""

    tracks: list[str]
    laps: int
    races: int
    start: RaceStart
    seed: int
    drivers: list[DriverResult]  # the best rated first; best laps are those of any track
    pairs: list[PairResult]
    by_track: list[RaceResults]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def drive_league(
    entries_on: Callable[[str], Sequence[Entry]],
    tracks: Sequence[str],
    *,
    num_races: int,
    laps: int = DEFAULT_LAPS,
    start: RaceStart = DEFAULT_START,
    seed: int = 0,
    num_threads: int | None = None,
    progress: OnProgress | None = None,
) -> League:
    """Race the drivers that `entries_on` names for each track; the races are shared among the tracks."""
    if not len(tracks) <= num_races <= MAX_LEAGUE_RACES:
        raise ConfigError(
            f"a league has from {len(tracks)} races, one a track, to {MAX_LEAGUE_RACES}, got {num_races}."
        )
    fields_of = {track: entries_on(track) for track in tracks}
    labels, _ = join_entries(fields_of[tracks[0]])
    if len(labels) < 2:
        raise ConfigError(f"a league needs two drivers or more, got {', '.join(labels)}.")
    shares = [num_races // len(tracks) + (number < num_races % len(tracks)) for number in range(len(tracks))]
    counts, done = [], 0
    for track, share in zip(tracks, shares, strict=True):
        parts = []
        for first, size in _batches(share, check_entries(fields_of[track])):

            def report(fraction: float, before: int = done, part: int = size) -> None:
                if progress:
                    progress((before + fraction * part) / num_races)

            task: dict[str, Any] = {"laps": laps, "start": start, "seed": seed + first, "num_threads": num_threads}
            parts.append(race(fields_of[track], track, num_races=size, progress=report, **task))
            done += size
        counts.append(join_counts(parts))
    entries = fields_of[tracks[0]]
    results = summarise_races(", ".join(tracks), laps, entries, join_counts(counts))
    by_track = [summarise_races(track, laps, entries, one) for track, one in zip(tracks, counts, strict=True)]
    drivers = sorted(results.drivers, key=lambda one: -one.elo)
    return League(list(tracks), laps, num_races, start, seed, drivers, results.pairs, by_track)


def _batches(num_races: int, num_cars: int) -> list[tuple[int, int]]:
    """The first race and the number of races of each batch; in all but the last every car has every slot as often."""
    size = max(1, _CARS_AT_ONCE // (num_cars * num_cars)) * num_cars
    return [(first, min(size, num_races - first)) for first in range(0, num_races, size)]


def join_counts(parts: Sequence[RaceCounts]) -> RaceCounts:
    """The counts of races between the same entries as one."""
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(RaceCounts)
        if field.name != "repeat"
    }
    return RaceCounts(**columns, repeat=parts[0].repeat)
