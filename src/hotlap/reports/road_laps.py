"""Drives a driver on many roads: its figures from random starts, a lap of its own, and where starts fail."""

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hotlap.drivers.driver import Driver
from hotlap.evaluation.evaluate import Evaluation, OnProgress, evaluate
from hotlap.evaluation.failures import Failures, TrackPlace, find_failures
from hotlap.evaluation.lap_comparison import Comparison, best_flying_lap, compare
from hotlap.evaluation.telemetry import Telemetry, record_laps
from hotlap.optimal.reference import Reference
from hotlap.reports.formatting import MISSING, counted, gap_percent, percent, seconds, signed_percent
from hotlap.reports.model_laps import NUM_LAPS
from hotlap.reports.tables import Table
from hotlap.tracks.geometry.corners import find_corners, name_corners
from hotlap.tracks.registry import Track

NOT_SOLVED = "not solved"  # the gap where the optimal lap is not known


@dataclass(frozen=True)
class RoadLaps:
    """What a driver did on a road; without an optimal lap, or without a flying one, there is no comparison."""

    track: Track
    figures: Evaluation
    failures: Failures
    trace: Telemetry
    optimal_lap_s: float | None
    comparison: Comparison | None


@dataclass(frozen=True)
class RoadsSummary:
    """Tracks completed from every start, and the gaps to the optimal laps; None where no gap is known."""

    num_tracks: int
    num_completed: int
    num_gaps: int
    median_gap: float | None
    worst_gap: float | None

    def __str__(self) -> str:
        text = f"{self.num_completed} of {counted(self.num_tracks, 'track')} completed from every start"
        if self.median_gap is None:
            return f"{text}; no gap to an optimal lap is known"
        some = "" if self.num_gaps == self.num_tracks else f" over {counted(self.num_gaps, 'track')}"
        gaps = f"median {gap_percent(self.median_gap)}, worst {gap_percent(self.worst_gap)}"
        return f"{text}; gap to the optimal lap: {gaps}{some}"


def drive_road(
    driver: Driver,
    track: Track,
    find_optimum: Callable[[Track], Reference | None],
    *,
    num_starts: int,
    seed: int = 0,
    progress: OnProgress | None = None,
) -> RoadLaps:
    """Drive a road from random starts, and laps from the line, and compare the best one with the optimal lap."""
    figures = evaluate(driver, track, episodes=num_starts, start="random", seed=seed, progress=progress)
    failures = find_failures(driver, track, figures)
    trace = record_laps(driver, track, num_laps=NUM_LAPS, seed=seed)
    reference = find_optimum(track)
    if reference is None:
        return RoadLaps(track, figures, failures, trace, None, None)
    has_lap = best_flying_lap(trace.laps) is not None
    comparison = compare(trace, track, reference.raceline, reference.lap_time_s) if has_lap else None
    optimal_s = reference.lap_time_s
    return RoadLaps(track, figures.against(optimal_s), failures, trace, optimal_s, comparison)


def summarise_roads(figures: Sequence[Evaluation]) -> RoadsSummary:
    """The summary of a driver's figures on several tracks."""
    gaps = [one.gap_to_optimal for one in figures if one.gap_to_optimal is not None]
    median, worst = (statistics.median(gaps), max(gaps)) if gaps else (None, None)
    completed = sum(one.completion_rate == 1.0 for one in figures)
    return RoadsSummary(len(figures), completed, len(gaps), median, worst)


def road_table(roads: Sequence[RoadLaps]) -> Table:
    """One row per track."""
    heads = ["track", "length", "completed", "clean laps", "median lap", "optimal lap", "gap"]
    return Table(heads, [_row(road) for road in roads])


def _row(road: RoadLaps) -> list[str]:
    figures = road.figures
    return [
        road.track.name,
        f"{road.track.nodes.length_m:,.0f} m",
        percent(figures.completion_rate),
        percent(figures.clean_lap_rate),
        seconds(figures.median_lap_time_sec),
        seconds(road.optimal_lap_s),
        gap_text(road),
    ]


def describe_failures(road: RoadLaps) -> str:
    """How many cars failed, near which corners, the most frequent first, and their marks on the map; empty if none."""
    kinds = (
        ("left the road or touched a wall", "dots", road.failures.left_road),
        ("stopped", "crosses", road.failures.stopped),
    )
    texts = [
        f"{counted(len(places), 'car')} {what}{_near(road.track, places)} ({marks})"
        for what, marks, places in kinds
        if places
    ]
    return f"Of {counted(road.figures.episodes, 'start')}, {'; '.join(texts)}." if texts else ""


def _near(track: Track, places: Sequence[TrackPlace]) -> str:
    """The corners nearest to these places; empty on a track without corners."""
    nodes, corners = track.nodes, find_corners(track.nodes)
    if not corners:
        return ""
    apexes_m = np.array([corner.apex for corner in corners]) * nodes.step_m
    half_m = 0.5 * nodes.length_m
    away_m = [np.abs((place.arc_m - apexes_m + half_m) % nodes.length_m - half_m) for place in places]
    found = Counter(int(np.argmin(each)) for each in away_m).most_common()
    names = name_corners(nodes, corners)
    return " near " + ", ".join(
        f"T{index + 1} {names[index]}" + (f" ({number})" if len(found) > 1 else "") for index, number in found
    )


def gap_text(road: RoadLaps) -> str:
    """The gap of the median lap, or a word where there is none."""
    if road.optimal_lap_s is None:
        return NOT_SOLVED
    gap = road.figures.gap_to_optimal
    return MISSING if gap is None else signed_percent(gap)
