"""`hotlap drive`: drive a few laps and draw the driven line."""

from pathlib import Path
from typing import Annotated

import typer

from hotlap.atomic_files import writable
from hotlap.cli import exit_codes
from hotlap.cli.driver_lookup import DRIVER_HELP, DRIVER_NAME, own_road
from hotlap.cli.output import Json, counted, print_json, progress_bar, seconds


def drive(
    driver: Annotated[str, typer.Argument(metavar=DRIVER_NAME, help=DRIVER_HELP)] = "casual",
    track: Annotated[str | None, typer.Option(help="Track id. Default: the model's track, or track-01.")] = None,
    laps: Annotated[int, typer.Option(min=1, max=1000, help="Number of laps.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the driver.")] = 0,
    png: Annotated[Path | None, typer.Option(help="Write a picture of the driven line, coloured by speed.")] = None,
    as_json: Json = False,
) -> None:
    """Drive laps from a standing start, print their times and draw the line.

    Example: hotlap drive casual --track track-01 --laps 3 --png out/casual.png
    """
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.telemetry import record_laps
    from hotlap.runs.find_driver import find_driver_model
    from hotlap.tracks.registry import load_track

    place = writable(png) if png else None
    model = find_driver_model(driver, track)
    if track is None:
        track = own_road(model)
    with progress_bar(f"{driver} on {track}") as progress:
        trace = record_laps(make_driver(driver, model), track, num_laps=laps, seed=seed, progress=progress)
    if place:
        from hotlap.tracks.maps.track_map import draw_track

        about = load_track(track)
        best_s = min((lap.time_s for lap in trace.laps), default=None)
        draw_track(
            about.nodes,
            place,
            title=f"{about.name} · {driver} driver",
            subtitle=f"{counted(len(trace.laps), 'lap')}, best {seconds(best_s)}",
            raceline=(trace.x_m, trace.y_m, trace.speed_mps),
        )
    if as_json:
        print_json(
            {
                "driver": driver,
                "track": track,
                "laps": [{"time_sec": lap.time_s, "clean": lap.is_clean} for lap in trace.laps],
                "top_speed_mps": float(trace.speed_mps.max()),
                "png": str(place) if place else None,
            }
        )
    else:
        for lap in trace.laps:
            kind = "standing" if lap.number == 1 else "flying  "
            print(f"lap {lap.number}  {kind}  {seconds(lap.time_s)}  {'clean' if lap.is_clean else 'not clean'}")
        if len(trace.laps) < laps:
            print(f"stuck after {len(trace.laps)} of {counted(laps, 'lap')}")
        print(f"top speed {float(trace.speed_mps.max()) * 3.6:.0f} km/h")
        if place:
            print(f"picture: {place}")
    if len(trace.laps) < laps:
        raise typer.Exit(exit_codes.BELOW_ASKED)
