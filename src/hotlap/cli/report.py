"""`hotlap report`: a page on training runs, or on where a driver loses time against the optimal lap."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.cli.output import print_json, progress_bar, seconds, writable
from hotlap.errors import ConfigError, DriverError, InputFileError

if TYPE_CHECKING:
    from hotlap.evaluation.lap_comparison import Comparison
    from hotlap.reports.model_laps import Drive, Yardsticks
    from hotlap.reports.run_record import RunGroup, RunRecord
    from hotlap.tracks.registry import Track


def report(
    subjects: Annotated[list[str], typer.Argument(metavar="RUN…|DRIVER", help="Runs, or one model or driver.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and its pictures; for one run RUN/report unless given.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Track id for a driver; unless given, its own, or track-01.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of whatever is random about a driver.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")] = False,
) -> None:
    """Show how a run learned and how it drives, runs side by side, or where a driver loses time, as one page.

    A run may still be in progress. A driver is a model file, casual or optimal, and needs --out.

    Example: hotlap report results/experiments/ppo_seed1 results/experiments/ppo_seed2 --out out/report
    """
    from hotlap.reports.run_loader import is_run, read_run
    from hotlap.training.run_files.run_folder import REPORT_NAME

    are_runs = [is_run(subject) for subject in subjects]
    if not any(are_runs) and len(subjects) == 1:
        _report_driver(subjects[0], out, track, seed, as_json)
        return
    for subject, one_is_run in zip(subjects, are_runs, strict=True):
        if not one_is_run:
            raise ConfigError(f"{subject!r:.80} is no run. Only runs are laid side by side; report a driver alone.")
    if track is not None:
        raise ConfigError(f"--track {track:.80}: a run is shown on its own track. Leave it out, or name a model file.")
    if out is None and len(subjects) > 1:
        raise ConfigError("--out: several runs need a folder for their report. Name one.")
    records = [read_run(subject) for subject in subjects]
    _report_runs(records, out or records[0].folder / REPORT_NAME, seed, as_json)


# --- runs ---


def _report_runs(records: "Sequence[RunRecord]", out: Path, seed: int, as_json: bool) -> None:
    from hotlap.reports.model_laps import Drive, Yardsticks
    from hotlap.reports.report import PAGE_NAME, write_run_report
    from hotlap.reports.run_record import group_runs
    from hotlap.tracks.registry import load_track

    groups = group_runs(records)
    writable(out / PAGE_NAME)
    ordered = [record for group in groups for record in group.runs]
    about = load_track(ordered[0].track) if ordered[0].track is not None else None
    drives, yardsticks = [Drive(record) for record in ordered], Yardsticks()
    if about is not None:
        drives, yardsticks = _drive_all(ordered, about, seed)
    page = write_run_report(groups, drives, about, yardsticks, out)
    if as_json:
        print_json(_run_figures(drives, yardsticks, page))
    else:
        _tell_runs(groups, drives, page)


def _drive_all(records: "Sequence[RunRecord]", track: "Track", seed: int) -> "tuple[list[Drive], Yardsticks]":
    """A drive of each run's best model, and what to measure them by."""
    from hotlap.optimal.reference import find_reference
    from hotlap.reports.model_laps import drive_run, measure_yardsticks

    reference = find_reference(track)
    drives = []
    for record in records:
        with progress_bar(f"{record.name} on {track.track_id}") as progress:
            drives.append(drive_run(record, track, reference, seed=seed, progress=progress))
    return drives, measure_yardsticks(track, reference, seed=seed)


def _run_figures(drives: "Sequence[Drive]", yardsticks: "Yardsticks", page: Path) -> dict[str, Any]:
    return {
        "runs": [_figures_of(drive) for drive in drives],
        "optimal_lap_time_sec": yardsticks.optimal_lap_s,
        "casual_lap_time_sec": yardsticks.casual_lap_s,
        "page": str(page),
    }


def _figures_of(drive: "Drive") -> dict[str, Any]:
    record, figures, lap = drive.record, drive.record.figures, drive.comparison
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
        "best_lap_time_sec": lap.lap.time_s if lap else None,
        "corners": _corners(lap) if lap else None,
    }


def _tell_runs(groups: "Sequence[RunGroup]", drives: "Sequence[Drive]", page: Path) -> None:
    from hotlap.reports.tables import run_table

    for group in groups:
        print(group.label)
        table = run_table(group.runs)
        widths = [max(len(row[index]) for row in (table.heads, *table.rows)) for index in range(len(table.heads))]
        for row in (table.heads, *table.rows):
            first, *others = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            print("  " + "  ".join([row[0].ljust(len(first)), *others]).rstrip())
    for drive in drives:
        if drive.trouble:
            typer.echo(f"hotlap: {drive.record.name}: {drive.trouble}", err=True)
    print(f"page: {page}")


# --- drivers ---


def _report_driver(driver: str, out: Path | None, track: str | None, seed: int, as_json: bool) -> None:
    from hotlap.drivers.driver import make_driver
    from hotlap.errors import OptimalError
    from hotlap.evaluation.lap_comparison import best_flying_lap, compare
    from hotlap.evaluation.telemetry import record_laps
    from hotlap.optimal.reference import find_reference
    from hotlap.reports.model_laps import NUM_LAPS
    from hotlap.reports.report import PAGE_NAME, write_report
    from hotlap.tracks.registry import load_track

    own_track = _find_own_track(driver)
    if out is None:
        raise ConfigError(f"--out: the report on {driver:.80} needs a folder. Name one.")
    writable(out / PAGE_NAME)
    who = make_driver(driver)
    track_id = own_track if track is None else track
    about = load_track(track_id)
    reference = find_reference(about)
    if reference is None:
        raise OptimalError(f"the optimal lap of {track_id!r} is not known yet. `hotlap optimal {track_id}` solves it.")
    with progress_bar(f"{who.name} on {track_id}") as progress:
        trace = record_laps(who, track_id, num_laps=NUM_LAPS, seed=seed, progress=progress)
    if best_flying_lap(trace.laps) is None:
        typer.echo(f"hotlap: {driver} finished {len(trace.laps)} of {NUM_LAPS} laps; no flying lap to show.", err=True)
        raise typer.Exit(1)
    result = compare(trace, about, reference.raceline, reference.lap_time_s)
    page = write_report(trace, about, reference.raceline, reference.lap_time_s, out, who.name)
    if as_json:
        print_json({"driver": driver, "track": track_id, **_lap_figures(result), "page": str(page)})
        return
    clean = "" if result.lap.is_clean else " (not clean)"
    print(f"{who.name} on {about.name}: {seconds(result.lap.time_s)}{clean}, optimum {seconds(reference.lap_time_s)}")
    for sector in result.sectors:
        print(f"  {sector.label}: {seconds(sector.lost_s)} lost")
    print(f"page: {page}")


def _find_own_track(driver: str) -> str:
    """The track a model was trained on, for the built-in drivers the default one; who is not known is refused."""
    from hotlap.cli.evaluate import BUILT_IN
    from hotlap.envs.racer import DEFAULT_TRACK
    from hotlap.models.model_file import find_model, read_model

    if driver in BUILT_IN:
        return DEFAULT_TRACK
    try:
        path = find_model(driver)
    except InputFileError as error:
        raise DriverError(f"driver {error} Built in: {', '.join(BUILT_IN)}.") from None
    return read_model(path).card.track or DEFAULT_TRACK


def _lap_figures(result: "Comparison") -> dict[str, Any]:
    return {
        "lap_time_sec": result.lap.time_s,
        "clean": result.lap.is_clean,
        "optimal_lap_time_sec": result.optimal_lap_s,
        "gap_to_optimal": result.gap,
        "corners": _corners(result),
    }


def _corners(result: "Comparison") -> list[dict[str, Any]]:
    return [{"corner": sector.number, "name": sector.label, "lost_sec": sector.lost_s} for sector in result.sectors]
