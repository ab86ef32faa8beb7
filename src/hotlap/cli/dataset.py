"""`hotlap dataset`: record drives as a dataset for offline learning, and verify one."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from hotlap.cli.output import Json, counted, print_json, progress_bar

dataset_app = typer.Typer(
    help="Datasets of drives for offline learning, in the format of Minari.", no_args_is_help=True
)


@dataset_app.command("record")
def record(
    drivers: Annotated[
        list[str],
        typer.Argument(
            metavar="DRIVER…",
            help="Runs, model files, drivers that come with Hotlap, replay files (FILE.replay), or leaderboard: "
            "the laps of people on this machine's board.",
        ),
    ],
    track: Annotated[
        list[str] | None,
        typer.Option(
            help="Track id, split (train, test) or pattern (test-00*); may be given several times. Default: "
            "each driver's own track, or track-01."
        ),
    ] = None,
    episodes: Annotated[int, typer.Option(help="Episodes of each driver on each track.")] = 10,
    laps: Annotated[int, typer.Option(help="Laps of an episode.")] = 1,
    start: Annotated[
        str, typer.Option(help="Where episodes start: line or random. Replays start at the line.")
    ] = "random",
    seed: Annotated[int, typer.Option(help="Seed of the first episode; the next ones count on.")] = 0,
    observation: Annotated[
        str | None,
        typer.Option(help="What is observed: rays, road or road-2. Default: what the drivers see, else road."),
    ] = None,
    noise: Annotated[
        float,
        typer.Option(
            help="Noise on the drivers' actions, from 0 to 1: cars leave the driver's line, and it brings them back. "
            "The info driverAction has what the driver asked for."
        ),
    ] = 0.0,
    dataset_id: Annotated[
        str | None, typer.Option("--id", help="The dataset's id. Default: hotlap/TRACK/DRIVER-v0.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of datasets; MINARI_DATASETS_PATH for Minari.")] = Path("datasets"),
    as_json: Json = False,
) -> None:
    """Drive and write a dataset that Minari loads: observations, actions, rewards, and the gap to the optimal lap.

    The same command writes the same bytes.

    Example: hotlap dataset record champion --track track-01 --episodes 100
    """
    from hotlap.datasets.recording import RecordingTask, default_id, record_dataset

    task = RecordingTask(tuple(drivers), tuple(track or ()), episodes, laps, start, seed, observation, noise)
    chosen = default_id(task) if dataset_id is None else dataset_id
    with progress_bar("recording") as progress:
        found = record_dataset(task, out, chosen, lambda line: typer.echo(f"hotlap: {line}", err=True), progress)
    if as_json:
        print_json({**asdict(found), "folder": str(found.folder)})
        return
    print(
        f"{counted(found.episodes, 'episode')}, {found.steps:,} steps, {counted(found.laps, 'lap')}, "
        f"{found.clean_laps} of them clean"
    )
    if found.stuck:
        print(f"{counted(found.stuck, 'episode')} ended because the car was stuck")
    print(f"dataset: {found.folder}")
    print(f"load it: MINARI_DATASETS_PATH={out} python -c \"import minari; minari.load_dataset('{chosen}')\"")


@dataset_app.command("verify")
def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of a dataset.")],
    as_json: Json = False,
) -> None:
    """Drive every episode of a dataset again and compare all its numbers, to the bit.

    Example: hotlap dataset verify datasets/hotlap/track-01/champion-v0
    """
    from hotlap.datasets.recording import verify_dataset

    with progress_bar("verifying") as progress:
        episodes, steps = verify_dataset(folder, progress)
    if as_json:
        print_json({"folder": str(folder), "episodes": episodes, "steps": steps})
        return
    print(f"{counted(episodes, 'episode')}, {steps:,} steps: every number is what the simulator gives")
