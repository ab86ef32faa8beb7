"""The model that a command's driver argument names, and whether the road it was trained on is still the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from hotlap.models.model_file import ModelCard


DRIVER_NAME = "RUN|MODEL|DRIVER"
DRIVER_HELP = "A run, a model file, or a driver that comes with Hotlap: champion, generalist, casual, optimal."


@dataclass(frozen=True)
class DriverModel:
    """The file of a trained model, and its card."""

    path: Path
    card: "ModelCard"


def find_driver_model(driver: str, track: str | None = None) -> DriverModel | None:
    """The model of a shipped driver, a run or a file; None for one without a model, DriverError for an unknown name."""
    from hotlap.drivers.driver import BUILT_IN, find_driver_file
    from hotlap.envs.racer import DEFAULT_TRACK
    from hotlap.models.model_file import read_model

    if driver in BUILT_IN:
        return None
    path = find_driver_file(driver, DEFAULT_TRACK if track is None else track)
    return DriverModel(path, read_model(path).card)


def own_track(model: DriverModel | None) -> str:
    """The track that a model was trained on; the default one for a built-in driver."""
    from hotlap.envs.racer import DEFAULT_TRACK

    return (model and model.card.track) or DEFAULT_TRACK


def say_if_other_road(model: DriverModel | None, track: str) -> None:
    """Say so if the track that the model was trained on has another road now; another track is the user's choice."""
    from hotlap.tracks.digest import track_digest
    from hotlap.tracks.registry import load_track

    if model is None or model.card.track != track or model.card.track_digest is None:
        return
    road = track_digest(load_track(track).nodes)
    if road != model.card.track_digest:
        typer.echo(
            f"hotlap: {model.path}: was trained on another road of the name {track!r} "
            f"(digest {model.card.track_digest!a:.40}); the track has digest {road!r} now. "
            "The figures are of the present road.",
            err=True,
        )
