"""`hotlap race`: race drivers against each other."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotlap.atomic_files import writable, write_atomically
from hotlap.cli.output import Json, counted, percent, print_json, progress_bar
from hotlap.envs.race_defaults import DEFAULT_LAPS, DEFAULT_START
from hotlap.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hotlap.envs.race_fleet import RaceFleet
    from hotlap.evaluation.race_results import RaceResults
    from hotlap.evaluation.races import Entry, RaceCounts

MAX_RACES = 10_000
_REFRESH_S = 0.1  # of the live table
_WIDTHS = (14, 10, 11, 10, 10, 11)  # of the classification's columns from the time on


def race(
    drivers: Annotated[
        list[str],
        typer.Argument(
            metavar="DRIVER…",
            help="Runs, model files or drivers that come with Hotlap. NAME*4 means four of them, NAME@0.9 one whose "
            "throttle goes to 0.9 at most, NAME@0.9*2 two of those.",
        ),
    ],
    track: Annotated[str, typer.Option(help="Track id (`hotlap tracks list`).")] = "track-01",
    laps: Annotated[int, typer.Option(help="Laps of a race.")] = DEFAULT_LAPS,
    races: Annotated[int, typer.Option(help="Number of races. The grid turns, so that slots are shared fairly.")] = 1,
    start: Annotated[
        str, typer.Option(help="grid: standing; rolling: anywhere on the track, at speed.")
    ] = DEFAULT_START,
    seed: Annotated[int, typer.Option(help="Seed of the grids and of the drivers.")] = 0,
    png: Annotated[Path | None, typer.Option(help="Draw the gaps of all cars to the winner along the race.")] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Write the race's inputs, from which it is driven again to the bit.")
    ] = None,
    video: Annotated[Path | None, typer.Option(help="Write a film of the race, .mp4 or .gif.")] = None,
    as_json: Json = False,
) -> None:
    """Race drivers against each other: one race prints its classification, several a table.

    Drivers that see no others drive as if alone.

    Example: hotlap race champion*2 generalist*4 casual*2 --races 100
    """
    from hotlap.evaluation.race_results import summarise_races
    from hotlap.evaluation.races import race as drive_races
    from hotlap.runs.race_entries import find_entries

    if not 1 <= races <= MAX_RACES:
        raise ConfigError(f"--races must be from 1 to {MAX_RACES}, got {races}.")
    files = {"png": png, "replay": replay, "video": video}
    for name, path in files.items():
        if path is not None and races > 1:
            raise ConfigError(f"--{name}: it shows one race. Leave out --races.")
    places = {name: writable(path) for name, path in files.items() if path is not None}
    entries = find_entries(drivers, track)
    task: dict[str, Any] = {"laps": laps, "start": start, "seed": seed}
    if races == 1:
        names = [entry.label for entry in entries for _ in range(entry.num_cars)]
        counts = _drive_one(entries, names, track, task, places)
    else:
        with progress_bar(f"{counted(races, 'race')} on {track}") as progress:
            counts = drive_races(entries, track, **task, num_races=races, progress=progress)
    results = summarise_races(track, laps, entries, counts)
    if as_json:
        print_json(results.as_dict() | {name: str(path) for name, path in places.items()})
        return
    if races == 1:
        _print_classification(names, counts, track, laps)
    else:
        _print_table(results)
    for name, path in places.items():
        print(f"{'picture' if name == 'png' else name}: {path}")


def _drive_one(
    entries: "list[Entry]", names: list[str], track: str, task: dict[str, Any], places: dict[str, Path]
) -> "RaceCounts":
    """Drive one race with a live table, and write the files that were asked for."""
    from hotlap.envs.race_video import RaceVideo
    from hotlap.evaluation.race_replay import RaceRecorder, write_replay
    from hotlap.evaluation.races import race as drive_races
    from hotlap.reports.plots.race_chart import RaceHistory, draw_race_chart

    history, recorder = RaceHistory(), RaceRecorder()
    filming = RaceVideo(places["video"]) if "video" in places else nullcontext()
    last: list[RaceFleet] = []
    with filming as video, _live_table(names) as show:

        def watch(fleet: "RaceFleet", actions: "NDArray[np.float32] | None") -> None:
            history.add(fleet)
            recorder.add(actions)
            if video:
                video.add(fleet)
            show(fleet)
            last[:] = [fleet]

        counts = drive_races(entries, track, **task, on_step=watch)
    if "png" in places:
        title = f"{track}, {counted(task['laps'], 'lap')}"
        write_atomically(places["png"], draw_race_chart(history, names, counts.positions[0], title))
    if "replay" in places:
        write_replay(places["replay"], recorder.finish(last[0], names, counts.slots[0], counts.repeat, task["seed"]))
    return counts


@contextmanager
def _live_table(names: list[str]) -> "Iterator[Callable[[RaceFleet], None]]":
    """Positions and gaps on stderr while the race is driven; nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield lambda fleet: None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, auto_refresh=False) as live:
        shown_s = 0.0

        def show(fleet: "RaceFleet") -> None:
            nonlocal shown_s
            if time.monotonic() - shown_s > _REFRESH_S:
                shown_s = time.monotonic()
                live.update(_order_as_text(fleet, names), refresh=True)

        yield show


def _order_as_text(fleet: "RaceFleet", names: list[str]) -> str:
    """The cars in order, with metres to the leader."""
    from hotlap.envs.race_infos import OUT_OF_RACE

    entrants, progress_m = fleet.entrants, fleet.progress_m
    leader = int(entrants["position"].argmin())
    lap = min(max(int(entrants["laps_done"][leader]) + 1, 1), fleet.laps)
    lines = [f"lap {lap} of {fleet.laps}"]
    for car in entrants["position"].argsort(kind="stable"):
        state = OUT_OF_RACE.get(int(entrants["status"][car]))
        gap = state or ("" if car == leader else f"+{progress_m[leader] - progress_m[car]:.0f} m")
        lines.append(f"{entrants['position'][car]:>3}  {names[car]:<24.24}{gap:>10}")
    return "\n".join(lines)


def _print_classification(names: list[str], counts: "RaceCounts", track: str, laps: int) -> None:
    """One race: order, gaps, best laps, contacts."""
    from hotlap.reports.classification import HEADS, classify

    print(f"{track}, {counted(laps, 'lap')}, {counted(len(names), 'car')}")
    for position, driver, start, *others in [list(HEADS), *classify(names, counts)]:
        print(f"{position:>3}  {driver:<24.24}{start:>7}" + "".join(map(str.rjust, others, _WIDTHS)))


def _print_table(results: "RaceResults") -> None:
    """Several races: a row for each driver, then how they did against each other."""
    races, laps = counted(results.races, "race"), counted(results.laps, "lap")
    print(f"{results.track}, {races} of {laps}")
    columns = "cars    wins  position               Elo  finished  contacts/km  at fault/km  overtakes   clean"
    print(f"{'driver':<26}{columns}")
    for row in sorted(results.drivers, key=lambda one: one.mean_position):
        elo = f"{row.elo:.0f} ({row.elo_low:.0f}–{row.elo_high:.0f})"
        print(
            f"{row.driver:<24.24}{row.cars:>6}{percent(row.win_rate):>8}{row.mean_position:>10.2f}{elo:>18}"
            f"{percent(row.finish_rate):>10}{row.contacts_per_km:>13.2f}{row.at_fault_contacts_per_km:>13.2f}"
            f"{row.overtakes_per_race:>11.1f}{percent(row.clean_overtake_rate):>8}"
        )
    for pair in results.pairs:
        print(f"{pair.driver} ahead of {pair.against}: {percent(pair.ahead_rate)}")
