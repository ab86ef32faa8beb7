"""What a run's model does on its track: laps against the optimum, or why there are none, and their yardsticks."""

from collections.abc import Iterable
from dataclasses import dataclass

from hotlap.drivers.casual import CasualDriver
from hotlap.drivers.driver import make_driver
from hotlap.errors import HotlapError
from hotlap.evaluation.evaluate import Progress, evaluate
from hotlap.evaluation.lap_comparison import Comparison, best_flying_lap, compare
from hotlap.evaluation.telemetry import Telemetry, record_laps
from hotlap.optimal.reference import Reference
from hotlap.reports.run_record import RunRecord
from hotlap.tracks.registry import Track

NUM_LAPS = 3  # a standing one and two flying ones, of which the better clean one is shown
CASUAL_EPISODES = 20


@dataclass(frozen=True)
class Yardsticks:
    """Lap times (s) to measure a learner by, where known."""

    casual_lap_s: float | None = None
    optimal_lap_s: float | None = None


@dataclass(frozen=True)
class Drive:
    """The drive of a run's model and its best lap against the optimum, or why there is none."""

    record: RunRecord
    trace: Telemetry | None = None
    comparison: Comparison | None = None
    model: str | None = None  # who drove
    trouble: str | None = None


def drive_run(
    record: RunRecord, track: Track, reference: Reference | None, *, seed: int = 0, progress: Progress | None = None
) -> Drive:
    """Laps of the run's best model from a standing start.

    A run has more to show than its laps, so what stands in their way is kept as `trouble` and not raised.
    """
    try:
        driver = make_driver(str(record.folder))
    except HotlapError as error:
        return Drive(record, trouble=f"no lap to show. {error}")
    trace = record_laps(driver, track.track_id, num_laps=NUM_LAPS, seed=seed, progress=progress)
    trouble = comparison = None
    if best_flying_lap(trace.laps) is None:
        trouble = f"its model finished {len(trace.laps)} of {NUM_LAPS} laps, none of them flying."
    elif reference is None:
        trouble = f"the optimal lap of {track.track_id} is not known. `hotlap optimal {track.track_id}` solves it."
    else:
        comparison = compare(trace, track, reference.raceline, reference.lap_time_s)
    return Drive(record, trace, comparison, driver.name, trouble)


def fastest_drive(drives: Iterable[Drive]) -> Drive | None:
    """The drive with the fastest clean lap; where none was clean, with the fastest one."""
    ranked = [
        (not drive.comparison.lap.is_clean, drive.comparison.lap.time_s, index, drive)
        for index, drive in enumerate(drives)
        if drive.comparison is not None
    ]
    return min(ranked)[-1] if ranked else None


def measure_yardsticks(track: Track, reference: Reference | None, *, seed: int = 0) -> Yardsticks:
    """The casual driver's median clean flying lap, driven now, and the optimal lap."""
    casual = evaluate(CasualDriver(), track.track_id, episodes=CASUAL_EPISODES, seed=seed)
    return Yardsticks(casual.median_lap_time_sec, reference.lap_time_s if reference else None)
