"""Several processes of one command, started by `torchrun`: how they join, and who of them prints."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import typer

from hotlap.cli import exit_codes
from hotlap.errors import DivergedError, HotlapError, ProcessLostError

if TYPE_CHECKING:
    from hotlap.learning.distributed.processes import Processes


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
    from hotlap.learning.distributed.processes import join_processes

    processes = join_processes()
    if processes.is_alone:
        yield processes
        return

    def report(error: HotlapError) -> int:
        """Print the error if this process is the one to do so; returns the exit code."""
        if processes.may_report(error):
            typer.echo("hotlap: " + " ".join(str(error).split()), err=True)
        return exit_codes.BELOW_ASKED if isinstance(error, DivergedError) else exit_codes.COULD_NOT_RUN

    def end_at_once(error: HotlapError) -> NoReturn:
        """End without Python's clean-up, which would wait for a GPU that waits for a process that is gone."""
        code = exit_codes.COULD_NOT_RUN
        try:
            code = report(error)
            processes.let_others_ask()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)

    processes.on_stuck, is_in_order = end_at_once, False
    try:
        yield processes
        is_in_order = True
    except typer.Exit:  # all of them stop
        is_in_order = True
        raise
    except HotlapError as error:
        if isinstance(error, ProcessLostError) and processes.uses_gpu:
            end_at_once(error)
        raise typer.Exit(report(error)) from None
    finally:
        processes.leave(in_order=is_in_order)
