"""The arguments that name a driver and its car, a model's own track, and whether that is still the same road."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hotlap.envs.domain import DomainRules
    from hotlap.models.model_file import ModelFile


DRIVER_NAME = "RUN|MODEL|DRIVER"
DRIVER_HELP = "A run, a model file, or a driver that comes with Hotlap: champion, generalist, casual, optimal."

CarOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=NUMBER,…",
        help="Another car: factors of grip, mass and power, delay in ticks, noise. LOW:HIGH draws for each start.",
    ),
]


def read_car(text: str | None) -> "DomainRules":
    """The car that `--car` asks for; the standard one without it."""
    from hotlap.envs.domain import DomainRules, parse_domain

    return DomainRules() if text is None else parse_domain(text, "--car")


def own_track(model: "ModelFile | None") -> str:
    """The track that a model was trained on, which may be `generated`; the default one for a built-in driver."""
    from hotlap.tracks.registry import DEFAULT_TRACK

    return (model and model.card.track) or DEFAULT_TRACK


def own_road(model: "ModelFile | None") -> str:
    """The track that a model was trained on; for `generated` the first of the roads on which it is evaluated."""
    from hotlap.tracks.registry import one_road

    return one_road(own_track(model))


def say_if_other_road(model: "ModelFile | None", track: str) -> None:
    """Say so if the track that the model was trained on has another road now; another track is the user's choice."""
    from hotlap.tracks.digest import track_digest
    from hotlap.tracks.registry import load_track, one_road

    if model is None or model.card.track is None or model.card.track_digest is None:
        return
    if one_road(model.card.track) != one_road(track):
        return
    digest = track_digest(load_track(one_road(track)).nodes)
    if digest != model.card.track_digest:
        typer.echo(
            f"hotlap: {model.path}: was trained on another road of the name {track!r} "
            f"(digest {model.card.track_digest!a:.40}); the track has digest {digest!r} now. "
            "The figures are of the present road.",
            err=True,
        )
