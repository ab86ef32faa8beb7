"""Drives the models of training runs on their track, and the baselines their lap times are compared with."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hotlap.errors import HotlapError
from hotlap.evaluation.baseline import measure_casual_lap
from hotlap.evaluation.evaluate import OnProgress
from hotlap.evaluation.lap_comparison import Comparison, best_flying_lap, compare
from hotlap.evaluation.telemetry import Telemetry, record_laps
from hotlap.optimal.reference import Reference, find_reference
from hotlap.reports.run_record import RunRecord
from hotlap.runs.find_driver import find_driver
from hotlap.tracks.registry import Track

NUM_LAPS = 3  # one standing and two flying laps, of which the faster clean one is shown

ProgressBar = Callable[[str], AbstractContextManager[OnProgress]]  # opens a progress bar with a title


@dataclass(frozen=True)
class Baselines:
    """Lap times (s) to compare a learned policy with, where known."""

    casual_lap_s: float | None = None
    optimal_lap_s: float | None = None


@dataclass(frozen=True)
class ModelLaps:
    """The laps of a run's model and the best one compared with the optimum, or the reason why there is none."""

    record: RunRecord
    trace: Telemetry | None = None
    comparison: Comparison | None = None
    driver_name: str | None = None
    problem: str | None = None


def drive_runs(
    records: Sequence[RunRecord], track: Track, *, seed: int, progress_bar: ProgressBar
) -> tuple[list[ModelLaps], Baselines]:
    """Drive the model of every run on the runs' common track, and measure the baselines there."""
    reference = find_reference(track)
    laps = []
    for record in records:
        with progress_bar(f"{record.name} on {track.track_id}") as progress:
            laps.append(drive_model(record, track, reference, seed=seed, progress=progress))
    return laps, measure_baselines(track, reference, seed=seed)


def drive_model(
    record: RunRecord, track: Track, reference: Reference | None, *, seed: int = 0, progress: OnProgress | None = None
) -> ModelLaps:
    """Drive laps from a standing start with the run's best model.

    A report has other content than laps, so a failure is returned as `problem` instead of raised.
    """
    try:
        driver = find_driver(str(record.folder))
    except HotlapError as error:
        return ModelLaps(record, problem=f"no lap to show. {error}")
    trace = record_laps(driver, track.track_id, num_laps=NUM_LAPS, seed=seed, progress=progress)
    problem = comparison = None
    if best_flying_lap(trace.laps) is None:
        problem = f"its model finished {len(trace.laps)} of {NUM_LAPS} laps, none of them flying."
    elif reference is None:
        problem = f"the optimal lap of {track.track_id} is not known. `hotlap optimal {track.track_id}` solves it."
    else:
        comparison = compare(trace, track, reference.raceline, reference.lap_time_s)
    return ModelLaps(record, trace, comparison, driver.name, problem)


def fastest_laps(laps: Iterable[ModelLaps]) -> ModelLaps | None:
    """The entry with the fastest clean lap; if no lap was clean, with the fastest one."""
    ranked = [
        (not one.comparison.lap.is_clean, one.comparison.lap.time_s, index, one)
        for index, one in enumerate(laps)
        if one.comparison is not None
    ]
    return min(ranked)[-1] if ranked else None


def measure_baselines(track: Track, reference: Reference | None, *, seed: int = 0) -> Baselines:
    """The casual driver's lap, driven now, and the optimal lap."""
    return Baselines(measure_casual_lap(track.track_id, seed), reference.lap_time_s if reference else None)
