"""`hotlap drive`: drive a few laps, alone or among others, and draw or film them."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.atomic_files import writable
from hotlap.cli import exit_codes
from hotlap.cli.driver_lookup import DRIVER_HELP, DRIVER_NAME, CarOption, own_road, read_car
from hotlap.cli.output import Json, counted, print_json, progress_bar, seconds
from hotlap.errors import ConfigError

if TYPE_CHECKING:
    from hotlap.envs.fleet import Fleet
    from hotlap.envs.race_video import RaceVideo
    from hotlap.evaluation.races import Entry, RaceCounts
    from hotlap.evaluation.telemetry import Telemetry


def drive(
    driver: Annotated[str, typer.Argument(metavar=DRIVER_NAME, help=DRIVER_HELP)] = "casual",
    track: Annotated[str | None, typer.Option(help="Track id. Default: the model's track, or track-01.")] = None,
    laps: Annotated[int, typer.Option(min=1, max=1000, help="Number of laps.")] = 3,
    rivals: Annotated[
        str | None,
        typer.Option(metavar="DRIVER,…", help="Others on the road, written as for `hotlap race`: casual*2,champion."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the driver, and of the grid.")] = 0,
    car: CarOption = None,
    png: Annotated[Path | None, typer.Option(help="Write a picture of the driven line, coloured by speed.")] = None,
    video: Annotated[Path | None, typer.Option(help="Write a film of the drive, .mp4 or .gif.")] = None,
    as_json: Json = False,
) -> None:
    """Drive laps from a standing start, print their times and draw the line.

    With --rivals the laps are those of a race.

    Example: hotlap drive casual --track track-01 --laps 3 --png out/casual.png
    """
    from hotlap.drivers.driver import make_driver
    from hotlap.envs.race_video import RaceVideo
    from hotlap.evaluation.races import Entry, check_entries
    from hotlap.runs.find_driver import find_driver_model
    from hotlap.runs.race_entries import find_entries

    places = {name: writable(path) for name, path in (("png", png), ("video", video)) if path is not None}
    model = find_driver_model(driver, track)
    track = own_road(model) if track is None else track
    others = find_entries(rivals.split(","), track) if rivals is not None else []
    entries = [Entry(driver, make_driver(driver, model)), *others]
    check_entries(entries)
    domain = read_car(car)
    if others and not domain.is_standard:
        raise ConfigError("--car: the cars of a race are all the standard car. Leave out --car or --rivals.")
    filming = RaceVideo(places["video"]) if "video" in places else nullcontext()
    with filming as film, progress_bar(f"{driver} on {track}") as progress:
        task: dict[str, Any] = {"num_laps": laps, "seed": seed, "progress": progress}
        if others:
            trace, counts = _drive_race(entries, track, film, task)
        else:
            trace, counts = _drive(entries[0], track, film, {**task, "domain": domain}), None
    if "png" in places:
        _draw(trace, track, f"{driver} driver{f', car {domain}' if car else ''}", places["png"])
    if as_json:
        _print_json(driver, track, trace, others, counts, places, str(domain))
    else:
        _print_laps(trace, laps, counts)
        for name, path in places.items():
            print(f"{'picture' if name == 'png' else name}: {path}")
    if len(trace.laps) < laps:
        raise typer.Exit(exit_codes.BELOW_ASKED)


def _drive(entry: "Entry", track: str, film: "RaceVideo | None", task: dict[str, Any]) -> "Telemetry":
    """The laps of one car alone."""
    from hotlap.envs.rendering import draw_frame
    from hotlap.evaluation.telemetry import record_laps

    def show(fleet: "Fleet") -> None:
        if film:
            state, obs = fleet.states[0], fleet.batch.obs[0]
            film.add_frame(int(state["tick"]), lambda: draw_frame(fleet.tracks[0], state, obs, fleet.top_speed_mps))

    return record_laps(entry.driver, track, **task, on_tick=show)


def _drive_race(
    entries: "list[Entry]", track: str, film: "RaceVideo | None", task: dict[str, Any]
) -> "tuple[Telemetry, RaceCounts | None]":
    """The laps of the first car in a race."""
    from hotlap.evaluation.telemetry import record_race

    return record_race(entries, track, **task, on_tick=film.add if film else None)


def _draw(trace: "Telemetry", track: str, who: str, place: Path) -> None:
    from hotlap.tracks.maps.track_map import draw_track
    from hotlap.tracks.registry import load_track

    about = load_track(track)
    best_s = min((lap.time_s for lap in trace.laps), default=None)
    draw_track(
        about.nodes,
        place,
        title=f"{about.name} · {who}",
        subtitle=f"{counted(len(trace.laps), 'lap')}, best {seconds(best_s)}",
        raceline=trace.line,
    )


def _print_json(
    driver: str,
    track: str,
    trace: "Telemetry",
    others: "list[Entry]",
    counts: "RaceCounts | None",
    places: dict[str, Path],
    car: str,
) -> None:
    race = None
    if counts is not None:
        race = {
            "rivals": [entry.label for entry in others for _ in range(entry.num_cars)],
            "cars": counts.positions.shape[1],
            "position": int(counts.positions[0, 0]),
            "contacts": int(counts.contacts[0, 0]),
            "at_fault_contacts": int(counts.faults[0, 0]),
            "overtakes": int(counts.overtakes[0, 0]),
        }
    print_json(
        {
            "driver": driver,
            "track": track,
            "laps": [{"time_sec": lap.time_s, "clean": lap.is_clean} for lap in trace.laps],
            "top_speed_mps": float(trace.speed_mps.max()),
            "race": race,
            **({"car": car} if car else {}),
            **{name: str(places[name]) if name in places else None for name in ("png", "video")},
        }
    )


def _print_laps(trace: "Telemetry", laps: int, counts: "RaceCounts | None") -> None:
    for lap in trace.laps:
        kind = "standing" if lap.number == 1 else "flying  "
        print(f"lap {lap.number}  {kind}  {seconds(lap.time_s)}  {'clean' if lap.is_clean else 'not clean'}")
    if len(trace.laps) < laps:
        print(f"{'stuck' if counts is None else 'out'} after {len(trace.laps)} of {counted(laps, 'lap')}")
    print(f"top speed {float(trace.speed_mps.max()) * 3.6:.0f} km/h")
    if counts is not None:
        contacts, faults = int(counts.contacts[0, 0]), int(counts.faults[0, 0])
        print(
            f"position {counts.positions[0, 0]} of {counts.positions.shape[1]}, "
            f"{counted(contacts, 'contact')} ({faults} at fault), {counted(int(counts.overtakes[0, 0]), 'overtake')}"
        )
