"""Several processes of one command, started by `torchrun`: how they join, and who of them prints."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from hotlap.cli import exit_codes
from hotlap.errors import DivergedError, HotlapError

if TYPE_CHECKING:
    from hotlap.training.processes import Processes


def silence_torch() -> None:
    """Keep torch from printing its own warnings where another process is gone. Call it before torch is imported."""
    if "WORLD_SIZE" in os.environ:
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")


def is_follower() -> bool:
    """Whether `torchrun` started this process beside a first one, which prints what all of them find."""
    return "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("RANK", "0") != "0"


@contextlib.contextmanager
def joined_processes() -> Iterator["Processes"]:
    """Join the other processes of a training, if there are any; an error of any of them becomes one line."""
    from hotlap.training.processes import join_processes

    processes = join_processes()
    if processes.is_alone:
        yield processes
        return
    try:
        yield processes
    except HotlapError as error:
        if processes.may_report(error):
            typer.echo("hotlap: " + " ".join(str(error).split()), err=True)
        is_diverged = isinstance(error, DivergedError)
        raise typer.Exit(exit_codes.BELOW_ASKED if is_diverged else exit_codes.COULD_NOT_RUN) from None
    finally:
        processes.leave()
