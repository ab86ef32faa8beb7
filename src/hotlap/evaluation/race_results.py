"""The results of races: a row for each driver, and how often drivers came in ahead of each other."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotlap.evaluation.elo import elo_intervals, fit_elo
from hotlap.evaluation.races import Entry, RaceCounts


@dataclass(frozen=True)
class DriverResult:
    """What one driver's cars did in all races."""

    driver: str
    cars: int
    wins: int
    win_rate: float
    mean_position: float
    elo: float
    elo_low: float
    elo_high: float
    finish_rate: float
    contacts_per_km: float
    at_fault_contacts_per_km: float
    hard_at_fault_contacts_per_km: float
    overtakes_per_race: float
    clean_overtake_rate: float | None  # None without an overtake
    best_lap_time_sec: float | None  # None without a clean lap


@dataclass(frozen=True)
class PairResult:
    """How often a car of `driver` came in ahead of a car of `against`."""

    driver: str
    against: str
    ahead_rate: float


@dataclass(frozen=True)
class RaceResults:
    """The table of all races."""

    track: str
    laps: int
    races: int
    drivers: list[DriverResult]
    pairs: list[PairResult]

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def join_entries(entries: Sequence[Entry]) -> tuple[list[str], NDArray[np.int64]]:
    """The drivers' labels, each once, and for each car of a race the number of its driver."""
    labels = list(dict.fromkeys(entry.label for entry in entries))
    owners = np.repeat([labels.index(entry.label) for entry in entries], [entry.num_cars for entry in entries])
    return labels, owners.astype(np.int64)


def summarise_races(track: str, laps: int, entries: Sequence[Entry], counts: RaceCounts) -> RaceResults:
    """The results of races between these entries."""
    labels, owners = join_entries(entries)
    wins = _wins(counts.positions, owners, len(labels))
    ratings, (low, high) = fit_elo(wins.sum(axis=0)), elo_intervals(wins)
    drivers = [
        _driver_result(label, counts, owners == number, (ratings[number], low[number], high[number]))
        for number, label in enumerate(labels)
    ]
    total = wins.sum(axis=0)
    pairs = [
        PairResult(labels[one], labels[two], float(total[one, two] / (total[one, two] + total[two, one])))
        for one in range(len(labels))
        for two in range(len(labels))
        if one != two
    ]
    return RaceResults(track, laps, len(counts.positions), drivers, pairs)


def _wins(positions: NDArray[np.int32], owners: NDArray[np.int64], num_drivers: int) -> NDArray[np.float64]:
    """(races, drivers, drivers): pairs of cars of two drivers of which the first one's came in ahead."""
    is_ahead = positions[:, :, None] < positions[:, None, :]
    one_hot = np.eye(num_drivers)[owners]
    wins: NDArray[np.float64] = np.einsum("rij,ia,jb->rab", is_ahead.astype(np.float64), one_hot, one_hot)
    wins[:, np.arange(num_drivers), np.arange(num_drivers)] = 0.0
    return wins


def _driver_result(
    label: str, counts: RaceCounts, own: NDArray[np.bool_], elo: tuple[float, float, float]
) -> DriverResult:
    num_races, num_cars = len(counts.positions), int(own.sum())
    km = float(counts.distances_m[:, own].sum()) / 1000.0
    overtakes, clean = int(counts.overtakes[:, own].sum()), int(counts.clean_overtakes[:, own].sum())
    best_s, wins = float(counts.best_laps_s[:, own].min()), int((counts.positions[:, own] == 1).sum())

    def per_km(column: NDArray[np.int64]) -> float:
        return float(column[:, own].sum()) / km if km > 0.0 else 0.0

    return DriverResult(
        driver=label,
        cars=num_cars,
        wins=wins,
        win_rate=wins / num_races,
        mean_position=float(counts.positions[:, own].mean()),
        elo=elo[0],
        elo_low=elo[1],
        elo_high=elo[2],
        finish_rate=float(counts.has_finished[:, own].mean()),
        contacts_per_km=per_km(counts.contacts),
        at_fault_contacts_per_km=per_km(counts.faults),
        hard_at_fault_contacts_per_km=per_km(counts.hard_faults),
        overtakes_per_race=overtakes / num_races,
        clean_overtake_rate=clean / overtakes if overtakes else None,
        best_lap_time_sec=best_s if np.isfinite(best_s) else None,
    )
