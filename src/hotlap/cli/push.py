"""`hotlap push`: a model with its card, evaluation and video, in the layout of the Hugging Face hub."""

import re
from pathlib import Path
from typing import Annotated

import typer

from hotlap.cli.driver_lookup import DRIVER_NAME
from hotlap.cli.output import Json, print_json
from hotlap.errors import ConfigError, DriverError

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


def push(
    driver: Annotated[str, typer.Argument(metavar=DRIVER_NAME, help="A run, which means its best model, or a file.")],
    to: Annotated[str, typer.Option(help="Where to: hub, the Hugging Face hub.")] = "hub",
    out: Annotated[Path | None, typer.Option(help="The folder to write. Default: results/hub/NAME.")] = None,
    repository: Annotated[
        str | None, typer.Option("--repo", metavar="OWNER/NAME", help="Upload the folder there. Default: do not.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make the repository private.")] = False,
    episodes: Annotated[int, typer.Option(min=1, max=100_000, help="Episodes of the evaluation.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the evaluation.")] = 0,
    video: Annotated[str, typer.Option(help="mp4, gif or none.")] = "mp4",
    track: Annotated[str | None, typer.Option(help="The track of a champion. Default: track-01.")] = None,
    as_json: Json = False,
) -> None:
    """Write a model's folder for the Hugging Face hub: card, evaluation, video and model. With --repo, upload it.

    Example: hotlap push results/experiments/ppo_seed42 --to hub --repo you/my-racer
    """
    from hotlap.reports.hub_folder import HubTask, upload_folder, write_hub_folder
    from hotlap.runs.find_driver import find_driver_model

    if to != "hub":
        raise ConfigError(f"--to {to!r:.40}: only hub is known.")
    if repository is not None and not _REPOSITORY.fullmatch(repository):
        raise ConfigError(f"--repo {repository!r:.80}: write OWNER/NAME.")
    if track is not None and driver != "champion":
        raise ConfigError(f"--track {track:.80}: only a champion has a track to choose. Leave it out.")
    model = find_driver_model(driver, track)
    if model is None:
        raise DriverError(f"driver {driver!r:.80}: has no model. Name a run or a model file.")
    name = Path(driver).name.removesuffix(".zip") + (f"-{model.card.track}" if driver == "champion" else "")
    folder = Path("results") / "hub" / name if out is None else out
    task = HubTask(name, episodes, seed, video)
    files = write_hub_folder(model, folder, task, lambda line: typer.echo(f"hotlap: {line}", err=True))
    address = upload_folder(folder, repository, private) if repository is not None else None
    if as_json:
        print_json({"folder": str(folder), "files": [file.name for file in files], "address": address})
        return
    for file in files:
        print(f"{file.stat().st_size / 1e6:8.2f} MB  {file}")
    print(f"uploaded: {address}" if address else "not uploaded: give --repo OWNER/NAME for that")
