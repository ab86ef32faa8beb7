"""`hotlap evaluate`: let a driver lap and print how good it was."""

from typing import Annotated

import typer

from hotlap.cli.output import percent, print_json, progress_bar, seconds


def evaluate(
    driver: Annotated[str, typer.Argument(help="A built-in driver: casual or optimal.")],
    track: Annotated[str, typer.Option(help="Track id; `hotlap tracks list` shows all.")] = "track-01",
    episodes: Annotated[int, typer.Option(help="How many episodes.")] = 20,
    start: Annotated[str, typer.Option(help="Where episodes begin: line or random.")] = "line",
    seed: Annotated[int, typer.Option(help="Seed of starts and of whatever is random about the driver.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on the last line.")] = False,
) -> None:
    """Measure a driver: a standing and a flying lap an episode, times of clean flying laps.

    Example: hotlap evaluate casual --track track-01 --episodes 100 --json
    """
    from hotlap.drivers.driver import make_driver
    from hotlap.evaluation.laps import evaluate as measure
    from hotlap.evaluation.reference import get_reference
    from hotlap.tracks.registry import load_track

    with progress_bar(f"{driver} on {track}") as progress:
        result = measure(make_driver(driver), track, episodes=episodes, start=start, seed=seed, progress=progress)
    reference = get_reference(load_track(track), lambda text: typer.echo(text, err=True))
    if reference:
        result = result.against(reference.lap_time_s)
    if as_json:
        print_json(result.as_dict())
        return
    print(f"{result.driver} on {result.track}, {result.episodes} episodes from {result.start}")
    print(f"  completed      {percent(result.completion_rate)}   clean laps {percent(result.clean_lap_rate)}")
    print(
        f"  flying lap     mean {seconds(result.mean_lap_time_sec)}   best {seconds(result.best_lap_time_sec)}"
        f"   spread {seconds(result.std_lap_time_sec)}"
    )
    if reference and result.gap_to_optimal is not None:
        print(f"  optimal lap    {seconds(reference.lap_time_s)}   gap {100.0 * result.gap_to_optimal:.1f} %")
    print(f"  standing lap   mean {seconds(result.standing_lap_time_sec)}")
    contacts = "-" if result.wall_contacts_per_lap is None else f"{result.wall_contacts_per_lap:.2f}"
    print(f"  wall contacts  {contacts} a lap   mean return {result.mean_reward:.3f}")
