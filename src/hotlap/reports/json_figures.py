"""The figures of a report as plain dictionaries, for `hotlap report --json`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hotlap.evaluation.lap_comparison import Comparison
from hotlap.evaluation.race_replay import RaceReplay
from hotlap.evaluation.races import RaceCounts
from hotlap.reports.model_laps import Baselines, ModelLaps
from hotlap.reports.road_laps import RoadLaps, summarise_roads


def runs_as_dict(laps: Sequence[ModelLaps], baselines: Baselines, page: Path) -> dict[str, Any]:
    """The figures of a report on runs."""
    return {
        "runs": [_run_as_dict(one) for one in laps],
        "optimal_lap_time_sec": baselines.optimal_lap_s,
        "casual_lap_time_sec": baselines.casual_lap_s,
        "page": str(page),
    }


def lap_as_dict(comparison: Comparison) -> dict[str, Any]:
    """The figures of a lap compared with the optimum."""
    return {
        "lap_time_sec": comparison.lap.time_s,
        "clean": comparison.lap.is_clean,
        "optimal_lap_time_sec": comparison.optimal_lap_s,
        "gap_to_optimal": comparison.gap,
        "corners": _corners_as_dicts(comparison),
    }


def roads_as_dict(roads: Sequence[RoadLaps], files: Sequence[Path]) -> dict[str, Any]:
    """The figures of a report on roads."""
    summary = summarise_roads([road.figures for road in roads])
    return {
        "tracks": [_road_as_dict(road, file) for road, file in zip(roads, files, strict=True)],
        "completed_tracks": summary.num_completed,
        "median_gap_to_optimal": summary.median_gap,
        "worst_gap_to_optimal": summary.worst_gap,
    }


def race_as_dict(replay: RaceReplay, counts: RaceCounts) -> dict[str, Any]:
    """A race, with a row for each car in the order in which they came in; what does not exist is not finite."""
    cars = [
        {
            "driver": replay.drivers[car],
            "position": int(counts.positions[0, car]),
            "slot": int(counts.slots[0, car]) + 1,
            "race_time_sec": float(counts.race_times_s[0, car]),
            "best_lap_time_sec": float(counts.best_laps_s[0, car]),
            "contacts": int(counts.contacts[0, car]),
            "at_fault_contacts": int(counts.faults[0, car]),
            "overtakes": int(counts.overtakes[0, car]),
            "clean_overtakes": int(counts.clean_overtakes[0, car]),
        }
        for car in counts.positions[0].argsort(kind="stable")
    ]
    return {"track": replay.track, "laps": replay.laps, "start": replay.start, "seed": replay.seed, "cars": cars}


def _road_as_dict(road: RoadLaps, file: Path) -> dict[str, Any]:
    return {
        **road.figures.as_dict(),
        "file": str(file),
        "length_m": road.track.nodes.length_m,
        "optimal_lap_time_sec": road.optimal_lap_s,
        "corners": _corners_as_dicts(road.comparison) if road.comparison else None,
        **asdict(road.failures),
    }


def _run_as_dict(laps: ModelLaps) -> dict[str, Any]:
    record, figures, comparison = laps.record, laps.record.figures, laps.comparison
    return {
        "run": str(record.folder),
        "algorithm": record.algorithm,
        "environment": record.environment,
        "track": record.track,
        "seed": record.seed,
        "finished": record.is_finished,
        "steps": record.step,
        "training_time_seconds": record.training_s,
        "mean_reward": figures.mean_return if figures else None,
        "completion_rate": figures.completion_rate if figures else None,
        "clean_lap_rate": figures.clean_lap_rate if figures else None,
        "median_lap_time_sec": figures.median_lap_s if figures else None,
        "gap_to_optimal": figures.gap if figures else None,
        "best_lap_time_sec": comparison.lap.time_s if comparison else None,
        "corners": _corners_as_dicts(comparison) if comparison else None,
    }


def _corners_as_dicts(comparison: Comparison) -> list[dict[str, Any]]:
    return [{"corner": sector.number, "name": sector.label, "lost_sec": sector.lost_s} for sector in comparison.sectors]
