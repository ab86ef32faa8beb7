"""`hotlap report`: a page that shows where a driver loses time against the optimal lap."""

from pathlib import Path
from typing import Annotated

import typer

from hotlap.cli.output import print_json, progress_bar, seconds, writable

NUM_LAPS = 3  # a standing one and two flying ones, of which the better clean one is shown


def report(
    driver: Annotated[str, typer.Argument(help="A built-in driver: casual or optimal.")],
    out: Annotated[Path, typer.Option(help="Folder for the page and its pictures.")],
    track: Annotated[str, typer.Option(help="Track id; `hotlap tracks list` shows all.")] = "track-01",
    seed: Annotated[int, typer.Option(help="Seed of whatever is random about the driver.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")] = False,
) -> None:
    """Compare a driver's best flying lap with the optimal one, corner by corner, as a page with pictures.

    Example: hotlap report casual --track track-01 --out out/report
    """
    from hotlap.drivers.driver import make_driver
    from hotlap.errors import OptimalError
    from hotlap.evaluation.comparison import best_flying_lap, compare
    from hotlap.evaluation.report import PAGE_NAME, write_report
    from hotlap.evaluation.trace import record_laps
    from hotlap.optimal.store import find_reference
    from hotlap.tracks.registry import load_track

    writable(out / PAGE_NAME)
    about = load_track(track)
    who = make_driver(driver)
    reference = find_reference(about)
    if reference is None:
        raise OptimalError(f"the optimal lap of {track!r} is not known yet. `hotlap optimal {track}` solves it.")
    with progress_bar(f"{driver} on {track}") as progress:
        trace = record_laps(who, track, num_laps=NUM_LAPS, seed=seed, progress=progress)
    if best_flying_lap(trace.laps) is None:
        typer.echo(f"hotlap: {driver} finished {len(trace.laps)} of {NUM_LAPS} laps; no flying lap to show.", err=True)
        raise typer.Exit(1)
    result = compare(trace, about, reference.raceline, reference.lap_time_s)
    page = write_report(trace, about, reference.raceline, reference.lap_time_s, out, driver)
    if as_json:
        print_json(
            {
                "driver": driver,
                "track": track,
                "lap_time_sec": result.lap.time_s,
                "clean": result.lap.is_clean,
                "optimal_lap_time_sec": reference.lap_time_s,
                "gap_to_optimal": result.gap,
                "corners": [
                    {"corner": sector.number, "name": sector.label, "lost_sec": sector.lost_s}
                    for sector in result.sectors
                ],
                "page": str(page),
            }
        )
        return
    clean = "" if result.lap.is_clean else " (not clean)"
    print(f"{driver} on {about.name}: {seconds(result.lap.time_s)}{clean}, optimum {seconds(reference.lap_time_s)}")
    for sector in result.sectors:
        print(f"  {sector.label}: {seconds(sector.lost_s)} lost")
    print(f"page: {page}")
