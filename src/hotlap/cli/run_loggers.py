"""The option `--log` of commands that train."""

from typing import Annotated

import typer

Log = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Log to csv, wandb or mlflow, too; may be given several times."),
]


def chosen_loggers(names: list[str] | None) -> tuple[str, ...]:
    """The loggers that were asked for; an error for one that is not known or not installed."""
    from hotlap.training.loggers import check_loggers

    return check_loggers(names or ())
