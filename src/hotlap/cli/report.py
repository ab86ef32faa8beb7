"""`hotlap report`: a page on training runs, on where a driver loses time against the optimal lap, or on races."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from hotlap.atomic_files import writable
from hotlap.cli import exit_codes
from hotlap.cli.driver_lookup import own_road, say_if_other_road
from hotlap.cli.output import Json, counted, print_json, progress_bar, seconds
from hotlap.cli.report_league import LEAGUE, LEAGUE_RACES, report_league
from hotlap.errors import ConfigError, HotlapError, OptimalError
from hotlap.reports.formatting import lost_or_gained

ROAD_STARTS = 40  # on each road
REPLAY_SUFFIX = ".json"


def report(
    subjects: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…|DRIVER|RACE|races",
            help="Runs, or one model, driver or race replay; or `races`, alone or before the drivers of a league.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page and its pictures; default for one run: RUN/report.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="Track id for a driver; default: the model's own, or track-01.")
    ] = None,
    tracks: Annotated[
        list[Path] | None,
        typer.Option(help="Track files, or folders of them, that one driver is driven on; may be repeated."),
    ] = None,
    starts: Annotated[
        int | None, typer.Option(help=f"Random starts on each of --tracks. Default: {ROAD_STARTS}.")
    ] = None,
    solve: Annotated[
        bool, typer.Option("--solve", help="Solve the optimal laps of --tracks that are not known, and keep them.")
    ] = False,
    races: Annotated[
        int | None, typer.Option(help=f"Number of races of `hotlap report races`. Default: {LEAGUE_RACES}.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the driver's randomness, of random starts and of races.")] = 0,
    as_json: Json = False,
) -> None:
    """Write a page on how a run learned and drives, on several runs compared, or on where a driver loses time.

    A run may still be training. A driver is a model file, champion, generalist, casual or optimal, and needs --out.

    A race is the .json that `hotlap race --replay` wrote; it is driven again and needs --out.

    `races` is a league of the drivers that come with Hotlap, or of those named after it, on the built-in tracks.

    With --tracks the page is on how a driver, or a run's model, drives the roads of track files; none is imported.

    Example: hotlap report results/experiments/ppo_seed1 results/experiments/ppo_seed2 --out out/report
    """
    from hotlap.reports.run_loader import is_run

    if tracks:
        if len(subjects) > 1 or track is not None:
            raise ConfigError("--tracks: it goes with one driver, and without --track. Leave out the rest.")
        _report_roads(subjects[0], tracks, out, ROAD_STARTS if starts is None else starts, seed, solve, as_json)
        return
    if starts is not None or solve:
        raise ConfigError(f"--{'solve' if solve else 'starts'}: it is for track files. Name them with --tracks.")
    if subjects[0] == LEAGUE and not is_run(LEAGUE):
        report_league(subjects[1:], out, track, LEAGUE_RACES if races is None else races, seed, as_json)
        return
    if races is not None:
        raise ConfigError("--races: it is for a league. Write: hotlap report races --races N --out DIR.")
    not_runs = [subject for subject in subjects if not is_run(subject)]
    if len(subjects) == 1 and not_runs and subjects[0].endswith(REPLAY_SUFFIX):
        _report_race(Path(subjects[0]), out, track, as_json)
        return
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


def _report_race(path: Path, out: Path | None, track_id: str | None, as_json: bool) -> None:
    from hotlap.evaluation.race_replay import count_again, read_replay
    from hotlap.reports.classification import classification_table
    from hotlap.reports.html import PAGE_NAME
    from hotlap.reports.json_figures import race_as_dict
    from hotlap.reports.pages.report import write_race_report
    from hotlap.reports.plots.race_chart import RaceHistory
    from hotlap.reports.tables import to_text
    from hotlap.tracks.registry import load_track

    if track_id is not None:
        raise ConfigError(f"--track {track_id:.80}: a race is shown on its own track. Leave it out.")
    replay = read_replay(path)
    if out is None:
        raise ConfigError(f"--out: the report on {path!s:.80} needs a folder. Name one.")
    writable(out / PAGE_NAME)
    history = RaceHistory()
    counts = count_again(replay, lambda fleet, _: history.add(fleet))
    page = write_race_report(replay, counts, history, load_track(replay.track), out)
    if as_json:
        print_json({**race_as_dict(replay, counts), "page": str(page)})
        return
    print(to_text(classification_table(replay.drivers, counts)), end="")
    print(f"page: {page}")


def _report_roads(
    name: str, paths: Sequence[Path], out: Path | None, num_starts: int, seed: int, solve: bool, as_json: bool
) -> None:
    from hotlap.evaluation.evaluate import MAX_EPISODES
    from hotlap.optimal.reference import find_or_solve_reference, find_reference
    from hotlap.reports.html import PAGE_NAME
    from hotlap.reports.json_figures import roads_as_dict
    from hotlap.reports.pages.report import write_road_report
    from hotlap.reports.road_laps import drive_road, road_table, summarise_roads
    from hotlap.reports.tables import to_text
    from hotlap.runs.find_driver import find_driver
    from hotlap.tracks.road_files import load_roads

    if out is None:
        raise ConfigError(f"--out: the report on {name:.80} needs a folder. Name one.")
    if not 1 <= num_starts <= MAX_EPISODES:
        raise ConfigError(f"--starts must be from 1 to {MAX_EPISODES}, got {num_starts}.")
    if name == "optimal":
        raise ConfigError("optimal: on track files others are compared with it. Name a model, a run or casual.")
    files = load_roads(paths)
    driver = find_driver(name, files.tracks[0].track_id)
    writable(out / PAGE_NAME)
    for problem in files.skipped:
        typer.echo(f"hotlap: skipped {problem}", err=True)
    find_optimum = partial(find_or_solve_reference, notify=partial(typer.echo, err=True)) if solve else find_reference
    roads = []
    for track in files.tracks:
        with progress_bar(f"{driver.name} on {track.name}") as progress:
            roads.append(drive_road(driver, track, find_optimum, num_starts=num_starts, seed=seed, progress=progress))
    page = write_road_report(roads, out, driver.name, [f"Skipped {problem}" for problem in files.skipped])
    if as_json:
        found = {"driver": driver.name, **roads_as_dict(roads, files.paths), "skipped": files.skipped}
        print_json({**found, "page": str(page)})
        return
    print(f"{driver.name}, on each track {counted(num_starts, 'random start')}, seed {seed}")
    print(to_text(road_table(roads)), end="")
    print(f"{summarise_roads([road.figures for road in roads])}")
    print(f"page: {page}")
