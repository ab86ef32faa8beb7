"""`hotlap report`: a page on training runs, or on where a driver loses time against the optimal lap."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from hotlap.atomic_files import writable
from hotlap.cli import exit_codes
from hotlap.cli.driver_lookup import own_road, say_if_other_road
from hotlap.cli.output import Json, counted, print_json, progress_bar, seconds
from hotlap.errors import ConfigError, HotlapError, OptimalError
from hotlap.reports.formatting import lost_or_gained


def report(
    subjects: Annotated[list[str], typer.Argument(metavar="RUN…|DRIVER", help="Runs, or one model or driver.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and its pictures; default for one run: RUN/report.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Track id for a driver; default: the model's own, or track-01.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the driver's randomness.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a page on how a run learned and drives, on several runs compared, or on where a driver loses time.

    A run may still be training. A driver is a model file, champion, generalist, casual or optimal, and needs --out.

    Example: hotlap report results/experiments/ppo_seed1 results/experiments/ppo_seed2 --out out/report
    """
    from hotlap.reports.run_loader import is_run

    not_runs = [subject for subject in subjects if not is_run(subject)]
    if len(subjects) == 1 and not_runs:
        _report_driver(subjects[0], out, track, seed, as_json)
        return
    if not_runs:
        raise ConfigError(f"{not_runs[0]!r:.80} is not a run. Only runs can be compared; report a driver alone.")
    if track is not None:
        raise ConfigError(f"--track {track:.80}: a run is shown on its own track. Leave it out, or name a model file.")
    _report_runs(subjects, out, seed, as_json)


def _report_runs(runs: Sequence[str], out: Path | None, seed: int, as_json: bool) -> None:
    from hotlap.reports.html import PAGE_NAME
    from hotlap.reports.json_figures import runs_as_dict
    from hotlap.reports.model_laps import Baselines, ModelLaps, drive_runs
    from hotlap.reports.pages.report import write_run_report
    from hotlap.reports.run_loader import read_run
    from hotlap.reports.run_record import group_runs
    from hotlap.reports.tables import run_table, to_text
    from hotlap.runs.find_driver import find_driver_model
    from hotlap.runs.run_folder import REPORT_NAME
    from hotlap.tracks.registry import load_track, one_road

    if out is None and len(runs) > 1:
        raise ConfigError("--out: a report on several runs needs a folder. Name one.")
    groups = group_runs([read_run(run) for run in runs])
    records = [record for group in groups for record in group.runs]
    folder = out or records[0].folder / REPORT_NAME
    writable(folder / PAGE_NAME)
    track = load_track(one_road(records[0].track)) if records[0].track is not None else None
    laps, baselines = [ModelLaps(record) for record in records], Baselines()
    if track is not None:
        for record in records:
            with suppress(HotlapError):  # a run without a sound model is reported as such below
                say_if_other_road(find_driver_model(str(record.folder)), track.track_id)
        laps, baselines = drive_runs(records, track, seed=seed, progress_bar=progress_bar)
    page = write_run_report(groups, laps, track, baselines, folder)
    if as_json:
        print_json(runs_as_dict(laps, baselines, page))
        return
    for group in groups:
        print(group.label)
        print(to_text(run_table(group.runs)), end="")
    for one in laps:
        if one.problem:
            typer.echo(f"hotlap: {one.record.name}: {one.problem}", err=True)
    print(f"page: {page}")


def _report_driver(name: str, out: Path | None, track_id: str | None, seed: int, as_json: bool) -> None:
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.lap_comparison import best_flying_lap, compare
    from hotlap.evaluation.telemetry import record_laps
    from hotlap.optimal.reference import find_reference
    from hotlap.reports.html import PAGE_NAME
    from hotlap.reports.json_figures import lap_as_dict
    from hotlap.reports.model_laps import NUM_LAPS
    from hotlap.reports.pages.report import write_lap_report
    from hotlap.runs.find_driver import find_driver_model
    from hotlap.tracks.registry import load_track

    model = find_driver_model(name, track_id)
    if out is None:
        raise ConfigError(f"--out: the report on {name:.80} needs a folder. Name one.")
    writable(out / PAGE_NAME)
    track = load_track(own_road(model) if track_id is None else track_id)
    driver = make_driver(name, model)
    say_if_other_road(model, track.track_id)
    reference = find_reference(track)
    if reference is None:
        raise OptimalError(
            f"the optimal lap of {track.track_id!r} is not known yet. `hotlap optimal {track.track_id}` solves it."
        )
    with progress_bar(f"{driver.name} on {track.track_id}") as progress:
        trace = record_laps(driver, track.track_id, num_laps=NUM_LAPS, seed=seed, progress=progress)
    if best_flying_lap(trace.laps) is None:
        typer.echo(f"hotlap: {name} finished {len(trace.laps)} of {NUM_LAPS} laps; no flying lap to show.", err=True)
        raise typer.Exit(exit_codes.BELOW_ASKED)
    comparison = compare(trace, track, reference.raceline, reference.lap_time_s)
    page = write_lap_report(comparison, track, out, driver.name)
    if as_json:
        print_json({"driver": name, "track": track.track_id, **lap_as_dict(comparison), "page": str(page)})
        return
    clean = "" if comparison.lap.is_clean else " (not clean)"
    lap, optimum = seconds(comparison.lap.time_s), seconds(reference.lap_time_s)
    flying = counted(sum(lap.number > 1 for lap in trace.laps), "flying lap")
    print(f"{driver.name} on {track.name}: {lap}{clean}, optimum {optimum} (best of {flying})")
    for sector in comparison.sectors:
        print(f"  {sector.label}: {lost_or_gained(sector.lost_s)}")
    print(f"page: {page}")
